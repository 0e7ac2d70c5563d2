"""Saves a race as an animation, painted by a child: the window stays free meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.animation_order import encode_animation
from gpu_studio.model.task_queue import TaskQueue

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.race.animation_order import AnimationOrder
    from gpu_studio.model.studio import Studio

_PAINTER = "gpu_studio.ui.race.animation"
_LONGEST_PAINTING_S = 120.0
# "python -m" imports from the present folder first, which may have a file named like a library.
_HOME = Path(__file__).resolve().parent.parent.parent.parent


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

    @property
    def is_painting(self) -> bool:
        """Whether an animation is being painted."""
        return self._painting.is_busy

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
        painter = subprocess.run(
            [sys.executable, "-m", _PAINTER, str(path.absolute())],
            input=encode_animation(order),
            capture_output=True,
            timeout=_LONGEST_PAINTING_S,
            cwd=_HOME,
            env={**os.environ, "PYTHONUTF8": "1"},
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"The animation could not be painted: {error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    if painter.returncode:
        last = painter.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StudioError(FailureKind.NOT_SAVED, last or "The animation could not be painted.")
    return path
