"""A picture from a file: a photo to learn, or a race that was saved as a PNG with its data inside.

A child decodes what a stranger made, so its answer is as untrusted as the file. The text chunk of a
saved race is JSON in which everything has a range; one that does not hold it is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from gpu_studio.core.benchmark.kept_run import check_result, check_texts, check_way
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
from gpu_studio.core.race.side import RaceSide, RaceTrack, frame_of, ghost_side
from gpu_studio.core.record_json import decode_results
from gpu_studio.core.texts import file_name, plain_text, with_plain_texts
from gpu_studio.core.units import shown_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = 1
CHUNK = "gpu-studio-race"
"""The keyword of the text chunk; Qt reads no keyword with a space."""
LARGEST_BYTES = 1 << 20
MOST_POINTS = 200
LONGEST_TEXT = 200

DECODER = "gpu_studio.ui.race.picture_decoder"
MEMORY_BYTES = 512 << 20
"""How much memory a picture may take, with the program that decodes it."""
NO_LOG = Path(os.devnull)
"""Where libraries complain about a stranger's file."""
NO_PICTURE = "it is not a PNG, JPEG, WebP, BMP or GIF picture"
DAMAGED = "it is damaged"
NEEDS_MEMORY = f"it needs more than {MEMORY_BYTES >> 20} MiB of memory"
DAMAGED_OR_LARGE = f"{DAMAGED}, or {NEEDS_MEMORY}"
_LONGEST_S = 5.0
_MOST_ANSWER_BYTES = 4 << 20
_LATE = (
    f"opening it takes longer than {_LONGEST_S:.0f} seconds. Make it smaller, or copy it to this "
    "PC first"
)

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
    """A saved race; a run for each of its contestants. ``made_at`` is a time in ISO 8601."""

    schema: int = SCHEMA
    race: RaceFinished
    runs: Annotated[tuple[SharedRun, ...], Meta(max_length=MOST_CONTESTANTS)]
    made_at: Annotated[str, Meta(max_length=40)]

    @property
    def ghost(self) -> RaceSide | None:
        """The fastest contestant as a ghost; None if none of them can be raced.

        Older versions drew other pictures, to another finish line.
        """
        order = sorted(
            range(len(self.runs)),
            key=lambda index: (index != self.race.leader, self.race.contestants[index].seconds),
        )
        origin = f"saved {shown_moment(self.made_at)[:10]}"
        for run in (self.runs[index] for index in order):
            if run.result is not None:
                track = RaceTrack(frame_of(*msgspec.structs.astuple(point)) for point in run.points)
                side = ghost_side(run.result, run.name, origin, track)
                if side.is_raceable:
                    return side
        return None


class Photo(NamedTuple):
    """A picture to learn: its file's name, and at most 512 pixels on each side."""

    name: str
    picture: PackedFrame


class DecodedPicture(msgspec.Struct, frozen=True, tag=True):
    """A picture that could be opened."""

    picture: PackedFrame


class FoundRace(msgspec.Struct, frozen=True, tag=True):
    """The text of a race that was saved in a picture."""

    text: Annotated[str, Meta(max_length=LARGEST_BYTES + 1)]


class RefusedPicture(msgspec.Struct, frozen=True, tag=True):
    """Why a file is not opened: “it does not exist”."""

    reason: Annotated[str, Meta(max_length=200)]


PictureAnswer = DecodedPicture | FoundRace | RefusedPicture
_decoder = msgspec.msgpack.Decoder(PictureAnswer)


class _Call(Protocol):
    """A call of `DECODER` with at most `MEMORY_BYTES`: `process.child_call.ChildCall`."""

    def run(
        self, content: bytes, *, longest_s: float, most_bytes: int
    ) -> tuple[bytes, int | None, bool]:
        """Return the answer, the exit code, and whether the child was too late."""


def encode_answer(answer: PictureAnswer) -> bytes:
    """Return an answer for the child's standard output."""
    return msgspec.msgpack.encode(answer)


def open_picture(path: Path, call: _Call) -> Photo | SharedRace:
    """Return the picture or the race in a file, which a child decodes.

    Raises:
        StudioError: there is none.
    """
    try:
        content, exit_code, is_late = call.run(
            os.fsencode(path.absolute()), longest_s=_LONGEST_S, most_bytes=_MOST_ANSWER_BYTES
        )
    except OSError as error:
        raise refused(path, "no process can be started for it") from error
    if is_late:
        raise refused(path, _LATE)
    if exit_code != 0 or len(content) > _MOST_ANSWER_BYTES:
        raise refused(path, DAMAGED_OR_LARGE)
    try:
        found = _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise refused(path, DAMAGED) from error
    if isinstance(found, FoundRace):
        return decode_shared(found.text)
    if isinstance(found, RefusedPicture):
        raise refused(path, plain_text(found.reason, "") or DAMAGED)
    if found.picture.rows is None:
        raise refused(path, DAMAGED)
    return Photo(file_name(path), found.picture)


def refused(path: Path, reason: str) -> StudioError:
    """Return the error for a picture that cannot be learned."""
    return StudioError(FailureKind.FILE_REFUSED, f"{file_name(path)} cannot be learned: {reason}.")


def shared_text(race: RaceFinished, sides: Sequence[RaceSide], made_at: str) -> str:
    """Return the text of the chunk, in ASCII: Qt replaces the narrow spaces of other texts.

    Args:
        race: the end of the race.
        sides: its contestants.
        made_at: the present time in ISO 8601.
    """
    shared = SharedRace(race=race, runs=tuple(map(_shared_run, sides)), made_at=made_at[:40])
    return json.dumps(msgspec.to_builtins(shared), separators=(",", ":"), allow_nan=False)


def _shared_run(side: RaceSide) -> SharedRun:
    points = tuple(
        RacePoint(frame.elapsed_s, frame.steps, frame.measure, frame.progress)
        for frame in thinned(side.track.frames, MOST_POINTS)
    )
    result = side.run.result
    if points and result is not None:
        # The points say the same in few: with the curves, a race of many would be too large.
        details = msgspec.structs.replace(result.details, curves={})
        result = msgspec.structs.replace(result, details=details)
    return SharedRun(name=side.label[:LONGEST_TEXT], points=points, result=result)


def decode_shared(text: str) -> SharedRace:
    """Return the race in a chunk.

    Raises:
        StudioError: it is damaged, too large, or from a newer version.
    """
    if len(text) > LARGEST_BYTES:
        raise _refused_race("it is too large")
    try:
        shared = with_plain_texts(decode_results(text.encode(), SharedRace))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise _refused_race(DAMAGED) from error
    if shared.schema != SCHEMA:
        raise _refused_race("a newer version of GPU Studio made it")
    if len(shared.runs) != len(shared.race.contestants):
        raise _refused_race(DAMAGED)
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
        raise _refused_race("its seconds and steps contradict a contestant's result")
    if contestant.step_median_s not in (None, result.median_s):
        raise _refused_race("the time of a step contradicts a contestant's result")
    check_way([point.elapsed_s for point in run.points], outcome.seconds)


def _refused_race(reason: str) -> StudioError:
    return StudioError(
        FailureKind.FILE_REFUSED, f"The race in this picture cannot be opened: {reason}."
    )
