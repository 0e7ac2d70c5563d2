"""Runs from elsewhere to race against: of a saved picture, a recording or an earlier day."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.benchmark.kept_run import KeptRun, run_of
from gpu_studio.core.moments import shown_moment
from gpu_studio.core.race.contestant import Contestant, is_raceable
from gpu_studio.core.race.frames import RaceFrame, RaceTrack, track_of_recorded
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S
from gpu_studio.model.race.race_entries import RaceEntry, name_of
from gpu_studio.model.race.race_side import RaceSide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.core.race.shared_race import SharedRace


class RecordedRace(NamedTuple):
    """What a recording holds for the Race tab.

    Attributes:
        label: the recording's own.
        sides: its contestants, at most two (`recorded_sides`).
    """

    label: str
    sides: tuple[RaceSide, ...]


def ghost_of(shared: SharedRace) -> RaceSide | None:
    """Return the fastest contestant of a saved race as a ghost; None if none can be raced.

    Older versions drew other pictures, to another finish line.
    """
    leader = shared.race.leader
    order = sorted(
        range(len(shared.runs)),
        key=lambda index: (index != leader, shared.race.contestants[index].seconds),
    )
    index = next((one for one in order if is_raceable(shared.runs[one].result)), None)
    if index is None:
        return None
    run, result = shared.runs[index], shared.runs[index].result
    assert result is not None
    track = RaceTrack(
        tuple(
            RaceFrame(point.elapsed_s, point.steps, point.measure, point.progress)
            for point in run.points
        )
    )
    return ghost_side(result, run.name, f"saved {shown_moment(shared.made_at)[:10]}", track)


def ghost_side(result: RunFinished, name: str, origin: str, track: RaceTrack) -> RaceSide:
    """Return a finished run from elsewhere as a side of a race.

    Args:
        result: its result.
        name: the contestant's name.
        origin: where it comes from, in words: ``saved 2026-11-22``.
        track: its way to the finish line.
    """
    # Whatever this PC claims of it says that it comes from elsewhere.
    labeled = msgspec.structs.replace(result, recording=result.recording or origin)
    finished = run_of(KeptRun(kept_at="", budget_s=DEFAULT_BUDGET_S, result=labeled))
    race = result.race
    contestant = Contestant(
        device=result.device,
        threads=race.threads if race is not None else None,
        dtype=result.dtype,
    )
    entry = RaceEntry(contestant, f"{name}, {origin}")
    return RaceSide(entry, finished, track, origin=origin)


def recorded_race(recording: Recording) -> RecordedRace:
    """Return the race in a recording."""
    return RecordedRace(recording.label, recorded_sides(recording))


def recorded_sides(recording: Recording) -> tuple[RaceSide, ...]:
    """Return the contestants of the first race in a recording, at most two.

    Of more than two, the fastest and the slowest are returned, in the order of their runs. The
    last run of each contestant counts. Without a finished run of a race, there are none.
    """
    found: dict[tuple[object, ...], tuple[RecordedRun, RunFinished]] = {}
    races = [(run, run.result) for run in recording.runs if _is_of_race(run.result)]
    for run, result in races:
        assert result is not None
        first = races[0][0].request
        if (run.request.workload, run.request.size) == (first.workload, first.size):
            found[(result.device, result.race, result.dtype)] = run, result
    shown = list(found.values())
    if len(shown) > 2:
        by_time = sorted(shown, key=lambda one: _seconds_of(one[1]))
        shown = [one for one in shown if one in (by_time[0], by_time[-1])]
    return tuple(_recorded_side(recording, run, result) for run, result in shown)


def _recorded_side(recording: Recording, run: RecordedRun, result: RunFinished) -> RaceSide:
    pictures = track_of_recorded(run)
    day = shown_moment(recording.header.recorded_at)[:10]
    labeled = msgspec.structs.replace(result, recording=recording.label)
    origin = f"recorded {day}" if day else "recorded"
    return ghost_side(
        labeled, name_of(result), origin, pictures if len(pictures) else track_of(result)
    )


def _is_of_race(result: RunFinished | None) -> bool:
    return result is not None and result.race is not None and result.outcome is not None


def _seconds_of(result: RunFinished) -> float:
    assert result.outcome is not None
    return result.outcome.seconds


def track_of(result: RunFinished) -> RaceTrack:
    """Return a run's way to the finish line from its curves; empty if it kept none."""
    return RaceTrack(
        tuple(
            RaceFrame(seconds, int(steps), measure, progress)
            for seconds, steps, measure, progress in _way(result)
        )
    )


def _way(result: RunFinished) -> Iterator[tuple[float, float, float, float]]:
    curves = dict(result.details.curves)
    seconds, steps = curves.pop("seconds", ()), curves.pop("steps", ())
    measures = next(iter(curves.values()), ())
    last = result.outcome
    if last is None:
        return
    first = measures[0] if measures else 0.0
    span = last.measure - first
    for elapsed_s, count, measure in zip(seconds, steps, measures, strict=False):
        share = (measure - first) / span if span else 1.0
        yield elapsed_s, count, measure, min(max(share, 0.0), 1.0) * last.progress
