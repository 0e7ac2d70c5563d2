"""What is made when it is needed or when the window is idle, not before the first paint."""

from __future__ import annotations

import sys
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

_IDLE_WORK = "idle work"


def imported(path: str) -> Any:
    """Return what a path names: ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class LazyPage(QObject):
    """A page that is imported and made on first use.

    Signals:
        created(QWidget): the page, once.

    Attributes:
        page: the page; None before it is made.

    Args:
        path: what makes the page: ``package.module:name``.
        arguments: its arguments.
        parent: the owner.
    """

    created = Signal(object)

    def __init__(self, path: str, *arguments: object, parent: QObject) -> None:
        super().__init__(parent)
        self._path, self._arguments = path, arguments
        self.page: QWidget | None = None

    def make(self) -> Any:
        """Return the page; the first call makes it."""
        if self.page is None:
            self.page = imported(self._path)(*self._arguments)
            self.created.emit(self.page)
        return self.page

    def make_next(self) -> None:
        """Import the page's module; the next call makes the page. Each takes about as long."""
        module = self._path.partition(":")[0]
        if module in sys.modules:
            self.make()
        else:
            import_module(module)


class IdleWork(QObject):
    """Does what can wait, one piece in each turn of the event loop, in order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._turns = QTimer(self)
        self._turns.setInterval(0)
        self._turns.timeout.connect(self._do_next)

    @property
    def is_done(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def add(self, owner: QObject, *pieces: Callable[[], object]) -> None:
        """Do each of these once, but not after the end of their owner."""
        self._waiting.extend((owner, piece) for piece in pieces)
        self._turns.start()

    def _do_next(self) -> None:
        # A piece may let the event loop run, or raise: it is taken off the list before.
        owner, piece = self._waiting.popleft()
        if not self._waiting:
            self._turns.stop()
        if isValid(owner):
            piece()


def idle_work() -> IdleWork:
    """Return the work of the application: that of all windows waits in one line."""
    application = QApplication.instance()
    assert application is not None
    known = application.property(_IDLE_WORK)
    if isinstance(known, IdleWork):
        return known
    made = IdleWork(application)
    application.setProperty(_IDLE_WORK, made)
    return made
