"""Opens what is dropped on the race: a picture in a child process, the rest in this thread."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.moments import shown_moment
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.race.frames import track_of_recorded
from gpu_studio.core.race.photo import (
    DECODER,
    LONGEST_S,
    MEMORY_BYTES,
    MOST_ANSWER_BYTES,
    opened_picture,
)
from gpu_studio.model.benchmark.recording import RECORDING_ENDING
from gpu_studio.model.race.race_entries import name_of
from gpu_studio.model.race.race_history import track_of
from gpu_studio.model.race.race_side import RecordedRace
from gpu_studio.model.race.sharing import ghost_side
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.core.race.photo import Photo
    from gpu_studio.core.race.shared_race import SharedRace
    from gpu_studio.model.race.race_side import RaceSide


class FileOpening:
    """One opening of a file. Any thread may cancel it.

    Args:
        path: the file, which may be a stranger's.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._call = ChildCall(DECODER, memory_bytes=MEMORY_BYTES)

    def cancel(self) -> None:
        """End the opening at once; wait for nothing."""
        self._call.cancel()

    def run(self) -> Photo | SharedRace | RecordedRace:
        """Return what the file holds; call it once, in a thread.

        Raises:
            StudioError: it cannot be read, or is neither a picture nor a recording.
        """
        if self._path.suffix.lower() == RECORDING_ENDING:
            return self._recording()
        try:
            answer = self._call.run(
                os.fsencode(self._path), longest_s=LONGEST_S, most_bytes=MOST_ANSWER_BYTES
            )
        except OSError as error:
            message = f"{file_name(self._path)} cannot be opened: no process can be started for it."
            raise StudioError(FailureKind.FILE_REFUSED, message) from error
        return opened_picture(
            self._path, answer.content,
            is_answered=answer.exit_code == 0, is_late=answer.is_late,
        )  # fmt: skip

    def _recording(self) -> RecordedRace:
        try:
            return recorded_race(read_recording(self._path, lambda: self._call.is_cancelled))
        except StudioError as error:
            raise StudioError(error.kind, f"{file_name(self._path)}: {error}") from error


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
