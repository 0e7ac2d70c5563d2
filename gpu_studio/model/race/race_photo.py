"""The picture to learn: the one of this program, or a photo of yours; and what else is opened."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.failure import StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.picture_file import DECODER, MEMORY_BYTES, NO_LOG, Photo, open_picture
from gpu_studio.core.race.pictures import lake
from gpu_studio.core.race.side import recorded_sides
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.texts import file_name
from gpu_studio.model.benchmark.recording import RECORDING_ENDING
from gpu_studio.model.latest import Latest, opening
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.core.race.side import RaceSide
    from gpu_studio.model.studio import Studio

OWN_NAME = "Mountain lake"
_log = logging.getLogger(__name__)


class OpenedRace(NamedTuple):
    """A race from a file: both sides of a recorded one, with its label, or a ghost, or neither."""

    sides: tuple[RaceSide, ...]
    label: str = ""


class RacePhoto(QObject):
    """Opens a file in the background and keeps its picture for the races of this session.

    Signals:
        changed(): another picture is to be learned.
        race_opened(OpenedRace): the opened file was a saved race or a recording.
        notified(Notice): that a file is being opened, or why it cannot be.
    """

    changed = Signal()
    race_opened = Signal(object)
    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._call: ChildCall | None = None
        self._photo: Photo | None = None
        self._is_own = True
        self._name = self._identity = ""
        self._files = Latest(self)
        self._files.delayed.connect(self._on_delayed)
        self._files.succeeded.connect(self._on_opened)
        self._files.failed.connect(self._on_failed)
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
    def picture(self) -> PackedFrame | None:
        """What is to be learned; None if the program's own file cannot be read."""
        if self.learned is not None:
            return self.learned
        try:
            return lake()
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
        self._name = opening(path)
        call = self._call = ChildCall(DECODER, memory_bytes=MEMORY_BYTES, log_path=NO_LOG)
        self._files.ask(lambda is_over: _opened(path, call, is_over))

    def close(self) -> None:
        """End the opening, and wait for the threads: none must outlive the window."""
        self._cancel()
        self._files.close()

    def _cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def _on_delayed(self) -> None:
        self.notified.emit(Notice(self._name))

    def _on_opened(self, opened: Photo | OpenedRace) -> None:
        self.notified.emit(Notice())
        if isinstance(opened, OpenedRace):
            self.race_opened.emit(opened)
        else:
            self._photo, self._is_own = opened, False
            self._identity = opened.picture.identity
            self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


def _opened(path: Path, call: ChildCall, is_over: Callable[[], bool]) -> Photo | OpenedRace:
    """Return what a file holds; in a thread."""
    if path.suffix.lower() != RECORDING_ENDING:
        found = open_picture(path, call)
        if isinstance(found, Photo):
            return found
        return OpenedRace((found.ghost,) if found.ghost is not None else ())
    try:
        recording = read_recording(path, is_over)
    except StudioError as error:
        raise StudioError(error.kind, f"{file_name(path)}: {error}") from error
    return OpenedRace(recorded_sides(recording), recording.label)
