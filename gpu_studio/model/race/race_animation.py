"""Saves a race as an animation, painted by a child: the window stays free meanwhile."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.atomic_file import write_atomically
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.settings import LONGEST_TEXT
from gpu_studio.model.task_queue import TaskQueue
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.model.studio import Studio

PAINTER = "gpu_studio.ui.race.painter"
_LONGEST_PAINTING_S = 120.0
_MOST_BYTES = 16 << 20


class RaceAnimation(QObject):
    """Saves one animation after the other. A window that closes ends them, and names them later.

    Signals:
        notified(Notice): where it was saved, or why not.
    """

    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = studio.settings
        self._films: deque[_Film] = deque()
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
        """Paint an animation and write it to a path.

        Args:
            order: a `FilmOrder` in MessagePack.
            path: its file.
        """
        film = _Film(path)
        self._films.append(film)
        self._painting.add(partial(film.paint, order), self._on_saved, keeps=False)

    def close(self) -> None:
        """End the painters at once."""
        for film in self._films:
            film.call.cancel()
        self._painting.close()
        unsaved = [str(film.path) for film in self._films if not film.is_saved]
        self._films.clear()
        if unsaved:
            self._settings.change(unsaved=", ".join(unsaved)[:LONGEST_TEXT])

    def _on_saved(self, _: object) -> None:
        self.notified.emit(Notice(f"Saved as {self._films.popleft().path}"))

    def _on_failed(self, failure: Failure) -> None:
        self._films.popleft()
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


class _Film:
    """One animation, painted in a thread that waits for its child."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.call = ChildCall(PAINTER)
        self.is_saved = False

    def paint(self, order: bytes) -> None:
        """Paint it and write its file."""
        try:
            painted = self.call.run(order, longest_s=_LONGEST_PAINTING_S, most_bytes=_MOST_BYTES)
            if painted.exit_code == 0:
                write_atomically(self.path, painted.content)
                self.is_saved = True
        except OSError as error:
            message = f"The animation could not be written: {error.strerror or error}"
            raise StudioError(FailureKind.NOT_SAVED, message) from error
        if not self.is_saved:
            message = (
                f"The animation could not be painted: {painted.reason or 'its painter ended'}."
            )
            raise StudioError(FailureKind.NOT_SAVED, message)
