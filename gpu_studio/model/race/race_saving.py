"""Saves a race as a picture or an animation, which a child paints."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.user_file import write_atomically
from gpu_studio.model.settings import LONGEST_TEXT
from gpu_studio.model.worker import TaskQueue
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.model.studio import Studio

PAINTER = "gpu_studio.ui.race.painter"
_LONGEST_PAINTING_S = 120.0
_MOST_BYTES = 16 << 20


class RaceSaving(QObject):
    """Saves one picture or animation after the other. A window that closes names those it ends.

    Signals:
        notified(Notice): where it was saved, or why not.
    """

    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = studio.settings
        self._waiting: deque[tuple[ChildCall, Path]] = deque()
        self._painting = TaskQueue(self)
        self._painting.failed.connect(self._on_failed)
        studio.closing.connect(self.close)

    def take_unsaved(self) -> Notice:
        """Return what was not saved when the window closed last; empty if it was said before."""
        unsaved = self._settings.choices.unsaved
        self._settings.change(unsaved="")
        text = f"The window closed before this was saved: {unsaved}" if unsaved else ""
        return Notice(text, Tone.AMBER)

    def save(self, order: bytes, path: Path) -> None:
        """Paint a picture or an animation and write it to a path.

        Args:
            order: a `PaintOrder` in MessagePack.
            path: its file.
        """
        call = ChildCall(PAINTER)
        self._waiting.append((call, path))
        self._painting.add(partial(_paint, call, order, path), self._on_saved, keeps=False)

    def close(self) -> None:
        """End the painters at once, and keep the names of their files."""
        for call, _ in self._waiting:
            call.cancel()
        self._painting.close()
        unsaved = ", ".join(str(path) for _, path in self._waiting)
        self._waiting.clear()
        if unsaved:
            self._settings.change(unsaved=unsaved[:LONGEST_TEXT])

    def _on_saved(self, path: Path) -> None:
        self._waiting.popleft()
        self.notified.emit(Notice(f"Saved as {path}"))

    def _on_failed(self, failure: Failure) -> None:
        self._waiting.popleft()
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


def _paint(call: ChildCall, order: bytes, path: Path) -> Path:
    """Paint, write the file and return its path; in a thread."""
    try:
        painted = call.run(order, longest_s=_LONGEST_PAINTING_S, most_bytes=_MOST_BYTES)
        if painted.exit_code == 0:
            write_atomically(path, painted.content)
            return path
    except OSError as error:
        message = f"It could not be written: {error.strerror or error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    message = f"It could not be painted: {painted.reason or 'its painter ended'}."
    raise StudioError(FailureKind.NOT_SAVED, message)
