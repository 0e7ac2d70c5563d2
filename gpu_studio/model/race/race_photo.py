"""The picture to learn: the one of this program, or a photo of yours; and what else is opened.

A picture is opened in a child process, because it may be a stranger's.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.race.photo import (
    DECODER,
    LONGEST_S,
    MEMORY_BYTES,
    MOST_ANSWER_BYTES,
    Photo,
    opened_picture,
)
from gpu_studio.core.race.pictures import lake
from gpu_studio.core.race.shared_race import SharedRace
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.model.benchmark.recording import RECORDING_ENDING
from gpu_studio.model.race.ghosts import RecordedRace, recorded_race
from gpu_studio.model.task_queue import TaskQueue
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.model.studio import Studio

OWN_NAME = "Mountain lake"
_log = logging.getLogger(__name__)


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


class RacePhoto(QObject):
    """Opens a picture file in the background and keeps it for the races of this session.

    Signals:
        changed(): another picture is to be learned, or it can be shown now.
        race_opened(SharedRace): the opened file was a saved race.
        recording_opened(RecordedRace): the opened file was a recording.
        notified(Notice): why a file cannot be opened; empty once another one is being opened.

    Args:
        studio: says when the window closes.
        parent: owns it.
        opener: makes the opening of a file.

    Attributes:
        opening_name: the name of the file that is being opened; empty if none is.
    """

    changed = Signal()
    race_opened = Signal(object)
    recording_opened = Signal(object)
    notified = Signal(object)

    def __init__(
        self,
        studio: Studio,
        parent: QObject | None = None,
        opener: Callable[[Path], FileOpening] = FileOpening,
    ) -> None:
        super().__init__(parent)
        self._opener = opener
        self._opening: FileOpening | None = None
        self._photo: Photo | None = None
        self._is_own = True
        self._identity = ""
        self.opening_name = ""
        self._files = TaskQueue(self)
        self._files.failed.connect(self._on_failed)
        self._files.idled.connect(self.changed)
        studio.closing.connect(self.close)

    @property
    def names(self) -> tuple[str, ...]:
        """The pictures to choose from."""
        return (OWN_NAME, self._photo.name) if self._photo is not None else (OWN_NAME,)

    @property
    def chosen(self) -> int:
        """The place of the chosen one in `names`."""
        return 0 if self._is_own else 1

    @property
    def picture(self) -> Photo | None:
        """What is to be learned; None if the program's own file cannot be read."""
        if not self._is_own:
            return self._photo
        try:
            return Photo(OWN_NAME, lake())
        except (MissingResourceError, OSError) as error:
            _log.warning("%s", error)
            return None

    @property
    def identity(self) -> str:
        """The photo's identity in a request; empty for the picture of this program."""
        return "" if self._is_own else self._identity

    @property
    def learned(self) -> PackedFrame | None:
        """The photo in a request; None for the picture of this program."""
        return None if self._is_own or self._photo is None else self._photo.picture

    @property
    def is_reading(self) -> bool:
        """Whether a file is being opened."""
        return self._files.is_busy

    def choose(self, place: int) -> None:
        """Choose a picture by its place in `names`."""
        is_own = place == 0 or self._photo is None
        if is_own is not self._is_own:
            self._is_own = is_own
            self.changed.emit()

    def open_file(self, path: Path) -> None:
        """Open a file; the one that is still being opened is no longer wanted."""
        self._cancel()
        opening = self._opening = self._opener(path)
        self._files.add(partial(_run, opening), partial(self._on_opened, opening), keeps=False)
        self.opening_name = file_name(path)
        self.notified.emit(Notice())
        self.changed.emit()

    def close(self) -> None:
        """End the opening, and wait for the threads: none must outlive the window."""
        self._cancel()
        self._files.close()

    def _cancel(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None

    def _on_opened(
        self, opening: FileOpening, opened: Photo | SharedRace | RecordedRace | Failure
    ) -> None:
        if opening is not self._opening:
            return
        self.opening_name = ""
        if isinstance(opened, Failure):
            self._on_failed(opened)
            return
        if isinstance(opened, SharedRace):
            self.race_opened.emit(opened)
            return
        if not isinstance(opened, Photo):
            self.recording_opened.emit(opened)
            return
        self._photo, self._is_own = opened, False
        self._identity = opened.picture.identity
        self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        self.opening_name = ""
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


def _run(opening: FileOpening) -> Photo | SharedRace | RecordedRace | Failure:
    """Return what a file holds, or why it cannot be opened."""
    try:
        return opening.run()
    except StudioError as error:
        return failure_from(error)
