"""Order the picture that a race is saved as, from its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.packed_frame import thinned
from gpu_studio.core.race.contestant import contestant_name
from gpu_studio.core.race.shared_race import (
    LONGEST_TEXT,
    MOST_DOUBTS,
    MOST_POINTS,
    PictureOrder,
    RacePoint,
    SharedRace,
    SharedRun,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.frames import RaceTrack
    from gpu_studio.core.race.verdict import Verdict


def picture_order(
    picture: WorkloadDescription,
    verdict: Verdict,
    runs: Sequence[Run],
    tracks: Sequence[RaceTrack],
    *,
    made_at: str,
    cpu_name: str,
    torch_version: str,
    names: Sequence[str] = (),
) -> PictureOrder:
    """Return the order: every contestant at the moment when the first one finished.

    Args:
        picture: the workload of the runs.
        verdict: on the runs.
        runs: one for each contestant.
        tracks: the frames of each run.
        made_at: the present time in ISO 8601.
        cpu_name: the name of this PC's CPU.
        torch_version: the engine's.
        names: the contestants' names on the picture; by default those of the sentence.
    """
    names = names or [contestant_name(run, runs) for run in runs]
    traits = picture.race
    assert traits is not None
    results = [run.result for run in runs if run.result is not None]
    cards = [result.device_name for result in results if not is_cpu(result.device)]
    shared = SharedRace(
        race=verdict.finished,
        runs=tuple(
            _shared_run(name, run, track)
            for name, run, track in zip(names, runs, tracks, strict=True)
        ),
        made_at=made_at[:40],
        cpu_name=_clipped(cpu_name),
        card_name=_clipped(short_name(cards[0])) if cards else "",
        torch_version=_clipped(torch_version),
        tone="amber" if verdict.doubts else "good",
        doubts=tuple(map(_clipped, verdict.doubts[:MOST_DOUBTS])),
        measure_title=traits.measure_title,
        unit=traits.unit,
    )
    ends = [one.seconds for one in verdict.finished.contestants if one.reached]
    first_s = min(ends, default=float("inf"))
    return PictureOrder(
        shared=shared,
        pictures=tuple(
            frame and frame.picture for frame in (track.at(first_s) for track in tracks)
        ),
    )


def _shared_run(name: str, run: Run, track: RaceTrack) -> SharedRun:
    points, result = _points(track), run.result
    if points and result is not None:
        # The points say the same in few: with the curves, a race of many would be too large.
        result = msgspec.structs.replace(result, curves={})
    return SharedRun(name=_clipped(name), points=points, result=result)


def _points(track: RaceTrack) -> tuple[RacePoint, ...]:
    points = (
        RacePoint(frame.elapsed_s, frame.steps, frame.measure, frame.progress)
        for frame in track.frames
    )
    return thinned(tuple(points), MOST_POINTS)


def _clipped(text: str) -> str:
    return text[:LONGEST_TEXT]
