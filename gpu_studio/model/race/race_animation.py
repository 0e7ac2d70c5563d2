"""Saves a race as an animation, painted by a child: the window stays free meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.atomic_file import write_atomically
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.animation_order import encode_animation
from gpu_studio.model.task_queue import TaskQueue
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.race.animation_order import AnimationOrder
    from gpu_studio.model.studio import Studio

_PAINTER = "gpu_studio.ui.race.animation"
_LONGEST_PAINTING_S = 120.0
_MOST_BYTES = 16 << 20


class RaceAnimation(QObject):
    """Saves one animation after the other.

    Signals:
        notified(Notice): where it was saved, or why not.
    """

    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._painting = TaskQueue(self)
        self._painting.failed.connect(self._fail)
        studio.closing.connect(self.close)

    def save(self, order: AnimationOrder, path: Path) -> None:
        """Paint an animation and write it to a path."""
        self._painting.add(lambda: _painted(order, path), self._show)

    def close(self) -> None:
        """Wait for the thread: it must not outlive the window."""
        self._painting.close()

    def _show(self, path: Path) -> None:
        self.notified.emit(Notice(f"Saved as {path}"))

    def _fail(self, failure: Failure) -> None:
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


def _painted(order: AnimationOrder, path: Path) -> Path:
    try:
        painted = ChildCall(_PAINTER).run(
            encode_animation(order), longest_s=_LONGEST_PAINTING_S, most_bytes=_MOST_BYTES
        )
    except OSError as error:
        message = f"The animation could not be painted: {error.strerror or error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    if painted.exit_code != 0:
        message = f"The animation could not be painted: {painted.reason or 'the painter ended'}."
        raise StudioError(FailureKind.NOT_SAVED, message)
    try:
        write_atomically(path, painted.content)
    except OSError as error:
        message = f"The animation could not be written: {error.strerror or error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    return path
