"""Files of the Race page: what is opened, and pictures and animations that a child paints."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core import limits
from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.picture_file import DECODER, MEMORY_BYTES, NO_LOG, Photo, open_picture
from gpu_studio.core.race.side import recorded_sides
from gpu_studio.core.texts import file_name
from gpu_studio.core.user_file import write_atomically
from gpu_studio.model.benchmark.recording import RECORDING_ENDING
from gpu_studio.model.latest import Latest, opening
from gpu_studio.model.settings import LONGEST_TEXT
from gpu_studio.model.worker import TaskQueue
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.race.side import RaceSide
    from gpu_studio.model.studio import Studio

PAINTER = "gpu_studio.ui.race.painter"
_MOST_BYTES = 16 << 20


class OpenedRace(NamedTuple):
    """A race from a file: both sides of a recorded one, with its label, or a ghost, or neither."""

    sides: tuple[RaceSide, ...]
    label: str = ""


class RaceFiles(QObject):
    """Opens the newest file, and saves one after the other. A window that closes ends both.

    Signals:
        opened(Photo | OpenedRace): what the file holds.
        notified(Notice): that a file is being opened, what became of one, or why not.
    """

    opened = Signal(object)
    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = studio.settings
        self._call: ChildCall | None = None
        self._name = ""
        self._reading = Latest(self)
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self.opened)
        self._reading.failed.connect(self._on_failed)
        self._waiting: deque[tuple[ChildCall, Path]] = deque()
        self._painting = TaskQueue(self)
        self._painting.failed.connect(self._on_not_painted)
        studio.closing.connect(self.close)

    @property
    def is_reading(self) -> bool:
        """Whether a file is being opened."""
        return self._reading.is_busy

    def open_file(self, path: Path) -> None:
        """Open a file; the one that is still being opened is no longer wanted."""
        self._cancel()
        self._name = opening(path)
        call = self._call = ChildCall(DECODER, memory_bytes=MEMORY_BYTES, log_path=NO_LOG)
        self._reading.ask(lambda is_over: _opened(path, call, is_over))

    def take_unsaved(self) -> Notice:
        """Return what was not saved when the window closed last; empty if it was said before."""
        unsaved = self._settings.choices.unsaved
        self._settings.change(unsaved="")
        text = f"The window closed before this was saved: {unsaved}" if unsaved else ""
        return Notice(text, Tone.AMBER)

    def save(self, order: bytes, path: Path) -> None:
        """Paint a `PaintOrder` in MessagePack, and write its picture or animation to a path."""
        call = ChildCall(PAINTER)
        self._waiting.append((call, path))
        self._painting.add(partial(_paint, call, order, path), self._on_saved, keeps=False)

    def close(self) -> None:
        """End the children, keep the names of what is not saved, and wait for the threads."""
        self._cancel()
        for call, _ in self._waiting:
            call.cancel()
        self._reading.close()
        self._painting.close()
        unsaved = ", ".join(str(path) for _, path in self._waiting)
        self._waiting.clear()
        if unsaved:
            self._settings.change(unsaved=unsaved[:LONGEST_TEXT])

    def _cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()

    def _on_delayed(self) -> None:
        self.notified.emit(Notice(self._name))

    def _on_saved(self, path: Path) -> None:
        self._waiting.popleft()
        self.notified.emit(Notice(f"Saved as {path}"))

    def _on_not_painted(self, failure: Failure) -> None:
        self._waiting.popleft()
        self._on_failed(failure)

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


def _paint(call: ChildCall, order: bytes, path: Path) -> Path:
    """Paint, write the file and return its path; in a thread."""
    try:
        painted = call.run(order, longest_s=limits.current.painting_s, most_bytes=_MOST_BYTES)
        if painted.exit_code == 0:
            write_atomically(path, painted.content)
            return path
    except OSError as error:
        message = f"It could not be written: {error.strerror or error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    message = f"It could not be painted: {painted.reason or 'its painter ended'}."
    raise StudioError(FailureKind.NOT_SAVED, message)
