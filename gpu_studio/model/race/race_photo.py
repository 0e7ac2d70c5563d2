"""The picture to learn: the one of this program, or a photo of yours, as a file for the engine."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import Failure, StudioError, failure_from
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.race.photo import Photo
from gpu_studio.core.race.pictures import lake
from gpu_studio.core.race.shared_race import SharedRace
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.model.task_queue import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.model.race.ghosts import RecordedRace
    from gpu_studio.model.studio import Studio

    Opener = Callable[[Path], "Opening"]

OWN_NAME = "Mountain lake"
_log = logging.getLogger(__name__)


class Opening(Protocol):
    """One opening of a file, such as a `FileOpening`."""

    def cancel(self) -> None:
        """End the opening at once."""

    def run(self) -> Photo | SharedRace | RecordedRace:
        """Return what the file holds; called in a thread."""


class RacePhoto(QObject):
    """Opens a picture file in the background and keeps it for the races of this session.

    Signals:
        changed(): another picture is to be learned, or it can be shown now.
        race_opened(SharedRace): the opened file was a saved race.
        recording_opened(RecordedRace): the opened file was a recording.
        notified(Notice): why a file cannot be opened; empty once another one is being opened.

    Args:
        studio: says when the window closes.
        opener: makes the opening of a file.
        parent: owns it.

    Attributes:
        opening_name: the name of the file that is being opened; empty if none is.
    """

    changed = Signal()
    race_opened = Signal(object)
    recording_opened = Signal(object)
    notified = Signal(object)

    def __init__(self, studio: Studio, opener: Opener, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opener = opener
        self._opening: Opening | None = None
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
        self, opening: Opening, opened: Photo | SharedRace | RecordedRace | Failure
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


def _run(opening: Opening) -> Photo | SharedRace | RecordedRace | Failure:
    """Return what a file holds, or why it cannot be opened."""
    try:
        return opening.run()
    except StudioError as error:
        return failure_from(error)
