"""Work that the window does bit by bit after its first paint, so that it answers meanwhile."""

from __future__ import annotations

from collections import deque
from types import MethodType
from typing import TYPE_CHECKING
from weakref import WeakMethod

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

if TYPE_CHECKING:
    from collections.abc import Callable


class Steps(QObject):
    """Runs one step in each turn of the event loop, in the order in which they were added.

    With a timer of its own for each step, all steps that wait would run in the same turn.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[WeakMethod[Callable[[], object]]] = deque()
        self._turns = QTimer(self)
        self._turns.setInterval(0)
        self._turns.timeout.connect(self._run_next)

    def add(self, *steps: Callable[[], object]) -> None:
        """Run each of these methods once; a step is left out if its object is gone by then."""
        self._waiting.extend(WeakMethod(step) for step in steps)
        self._turns.start()

    def _run_next(self) -> None:
        # A step may let the event loop run, or raise: it is taken off the list before.
        step = self._waiting.popleft()() if self._waiting else None
        if not self._waiting:
            self._turns.stop()
        if isinstance(step, MethodType) and isValid(step.__self__):
            step()


def steps() -> Steps:
    """Return the steps of the application: those of all windows wait in one line."""
    application = QApplication.instance()
    assert application is not None
    return application.findChild(Steps) or Steps(application)
