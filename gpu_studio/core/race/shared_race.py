"""A race as it travels in a picture: the text chunk of the PNG that a race is saved as.

The chunk is JSON. A picture comes from anywhere, so everything in it has a range, and a file that
does not hold them is refused with a sentence.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.benchmark.kept_run import check_result, check_texts, check_way
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Amount,
    Count,
    Seconds,
)
from gpu_studio.core.messages.race_messages import (
    MOST_CONTESTANTS,
    ContestantResult,
    Fraction,
    RaceFinished,
)
from gpu_studio.core.messages.run_messages import RunFinished  # noqa: TC001  # for msgspec
from gpu_studio.core.packed_frame import PackedFrame, thinned
from gpu_studio.core.plain_text import with_plain_texts
from gpu_studio.core.race.contestant import contestant_name
from gpu_studio.core.record_json import decode_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.frames import RaceTrack
    from gpu_studio.core.race.verdict import Verdict

SCHEMA = 1
CHUNK = "gpu-studio-race"
"""The keyword of the text chunk; Qt reads no keyword with a space."""
LARGEST_BYTES = 1 << 20
MOST_POINTS = 200
MOST_DOUBTS = 50
LONGEST_TEXT = 200

Name = Annotated[str, Meta(max_length=LONGEST_TEXT)]


class RacePoint(msgspec.Struct, frozen=True, array_like=True):
    """A moment of a run: a frame without its picture."""

    elapsed_s: Seconds
    steps: Count
    measure: Amount
    progress: Fraction


class SharedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A contestant: its name on the picture, and its way to the finish line, oldest first.

    ``result`` is null if the run did not finish. It has no curves if there are ``points``.
    """

    name: Name
    result: RunFinished | None = None
    points: Annotated[tuple[RacePoint, ...], Meta(max_length=MOST_POINTS)] = ()


class SharedRace(msgspec.Struct, frozen=True, kw_only=True):
    """A race with all that stands on its picture; a run for each of the race's contestants.

    ``tone`` is ``good`` or ``amber``, with the ``doubts`` in sentences. ``measure_title`` and
    ``unit`` name the quantity of the finish line. ``made_at`` is a time in ISO 8601.
    """

    schema: int = SCHEMA
    race: RaceFinished
    runs: Annotated[tuple[SharedRun, ...], Meta(max_length=MOST_CONTESTANTS)]
    made_at: Annotated[str, Meta(max_length=40)]
    cpu_name: Name = ""
    card_name: Name = ""
    torch_version: Name = ""
    tone: Annotated[str, Meta(pattern=r"\A(good|amber)\Z")] = "good"
    doubts: Annotated[tuple[Name, ...], Meta(max_length=MOST_DOUBTS)] = ()
    measure_title: Name = ""
    unit: Annotated[str, Meta(max_length=20)] = ""


class PictureOrder(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What the painter of the shared picture needs.

    ``headline`` is the result in large type. ``pictures`` has one for each contestant, at the
    moment when the first one finished; None if it showed none. ``roles`` has the color roles of
    their devices; if it is empty, the devices' numbers decide.
    """

    shared: SharedRace
    headline: str = ""
    pictures: tuple[PackedFrame | None, ...] = ()
    roles: tuple[str, ...] = ()


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
    roles: tuple[str, ...] = (),
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
        roles: as in `PictureOrder`.
    """
    names = names or [contestant_name(run, runs) for run in runs]
    traits = picture.race
    assert traits is not None
    results = [run.result for run in runs if run.result is not None]
    cards = [result.device_name for result in results if not is_cpu(result.device)]
    shared = SharedRace(
        race=verdict.finished,
        runs=tuple(map(_shared_run, names, runs, tracks)),
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
    shown = [track.at(min(ends, default=float("inf"))) for track in tracks]
    return PictureOrder(
        shared=shared,
        headline=verdict.headline,
        pictures=tuple(frame.picture if frame is not None else None for frame in shown),
        roles=roles,
    )


def _shared_run(name: str, run: Run, track: RaceTrack) -> SharedRun:
    points = tuple(RacePoint(*frame[:4]) for frame in thinned(track.frames, MOST_POINTS))
    result = run.result
    if points and result is not None:
        # The points say the same in few: with the curves, a race of many would be too large.
        details = msgspec.structs.replace(result.details, curves={})
        result = msgspec.structs.replace(result, details=details)
    return SharedRun(name=_clipped(name), points=points, result=result)


def _clipped(text: str) -> str:
    return text[:LONGEST_TEXT]


def encode_shared(shared: SharedRace) -> str:
    """Return the text of the chunk, in ASCII: Qt replaces the narrow spaces of other texts."""
    return json.dumps(msgspec.to_builtins(shared), separators=(",", ":"), allow_nan=False)


def decode_shared(text: str) -> SharedRace:
    """Return the race in a chunk.

    Raises:
        StudioError: it is damaged, too large, or from a newer version.
    """
    if len(text) > LARGEST_BYTES:
        raise _refused("it is too large")
    try:
        shared = with_plain_texts(decode_results(text.encode(), SharedRace))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _refused("it is damaged") from error
    if shared.schema != SCHEMA:
        raise _refused("a newer version of GPU Studio made it")
    if len(shared.runs) != len(shared.race.contestants):
        raise _refused("it is damaged")
    runs = tuple(
        msgspec.structs.replace(run, result=check_result(run.result) if run.result else None)
        for run in shared.runs
    )
    for contestant, run in zip(shared.race.contestants, runs, strict=True):
        _check_times(contestant, run)
    return msgspec.structs.replace(shared, runs=runs, race=check_texts(shared.race))


def _check_times(contestant: ContestantResult, run: SharedRun) -> None:
    """Raise `StudioError` if a contestant's times contradict its result or its way."""
    result = run.result
    outcome = result.outcome if result is not None else None
    if result is None or outcome is None:
        return
    received = (contestant.seconds, contestant.steps, contestant.reached)
    if received != (outcome.seconds, outcome.steps, outcome.reached):
        raise _refused("its seconds and steps contradict a contestant's result")
    if contestant.step_median_s not in (None, result.median_s):
        raise _refused("the time of a step contradicts a contestant's result")
    check_way([point.elapsed_s for point in run.points], outcome.seconds)


def _refused(reason: str) -> StudioError:
    return StudioError(
        FailureKind.FILE_REFUSED, f"The race in this picture cannot be opened: {reason}."
    )
