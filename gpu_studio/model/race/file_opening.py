"""Opens what is dropped on the race: a picture in a child process, the rest in this thread."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.race.photo import (
    DECODER,
    LONGEST_S,
    MEMORY_BYTES,
    MOST_ANSWER_BYTES,
    opened_picture,
)
from gpu_studio.model.benchmark.recording import RECORDING_ENDING
from gpu_studio.model.race.ghosts import RecordedRace, recorded_race
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.race.photo import Photo
    from gpu_studio.core.race.shared_race import SharedRace


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
