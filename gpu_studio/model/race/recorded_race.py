"""The race in a recording: its contestants, with the label of the recording on each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.moments import shown_moment
from gpu_studio.core.race.kept_frames import track_of_recorded
from gpu_studio.model.race.race_entries import name_of
from gpu_studio.model.race.race_history import track_of
from gpu_studio.model.race.race_side import RecordedRace
from gpu_studio.model.race.sharing import ghost_side

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.race.race_side import RaceSide


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
    return tuple(_side(recording, run, result) for run, result in shown)


def _side(recording: Recording, run: RecordedRun, result: RunFinished) -> RaceSide:
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
