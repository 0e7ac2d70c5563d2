"""Work that the window does bit by bit after its first paint, so that it answers meanwhile."""

from __future__ import annotations

import sys
import time
from collections import deque
from functools import partial
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING
from weakref import WeakMethod

from PySide6 import QtCore, QtGui, QtWidgets
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from gpu_studio.model.turn_timer import TurnTimer
from gpu_studio.model.worker import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_END = object()
_LONGEST_S = 0.008  # of a turn that makes classes; all take 65 ms on a PC with two cores


class Steps(QObject):
    """Runs one step in each turn of the event loop, in the order in which they were added.

    With a timer of its own for each step, all steps that wait would run in the same turn. Between
    two steps, a turn is left to what the first of them has posted: layouts, paints.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[WeakMethod[Callable[[], object]] | str] = deque()
        self._classes = _make_classes()
        self._import: Task | None = None
        self._rests = False
        self._turns = TurnTimer(self)
        self._turns.timeout.connect(self._run_next)

    def add(self, *steps: Callable[[], object]) -> None:
        """Run each of these methods once; a step is left out if its object is gone by then."""
        self._waiting.extend(WeakMethod(step) for step in steps)
        self._go_on()

    def load(self, *modules: str) -> None:
        """Import modules in a thread; the steps that are added after it wait for that.

        In the window's thread, numpy and pyqtgraph would hold the event loop for half a second on
        a PC with two cores; from another thread, at most for a tenth of that.
        """
        self._waiting.extend(modules)
        self._go_on()

    @property
    def is_done(self) -> bool:
        """Whether nothing waits or is under way."""
        return self._import is None and not self._waiting

    def wait(self, longest_ms: int | None = None) -> None:
        """Wait for the import under way: the program ends."""
        if self._import is not None:
            self._import.wait(longest_ms)

    def _go_on(self) -> None:
        if self._import is None and self._waiting:
            self._turns.start()

    def _run_next(self) -> None:
        self._rests = not self._rests
        if not self._rests:
            return
        # A step may let the event loop run, or raise: it is taken off the list before.
        step = self._waiting.popleft() if self._waiting else None
        if not self._waiting:
            self._turns.stop()
        if isinstance(step, str):
            self._start_import(step)
        elif step is not None:
            method = step()
            if isinstance(method, MethodType) and isValid(method.__self__):
                method()

    def _start_import(self, module: str) -> None:
        if module in sys.modules:
            return
        if next(self._classes, _END) is not _END:
            self._waiting.appendleft(module)
            self._go_on()
        else:
            self._turns.stop()
            self._import = Task(partial(import_module, module), self)
            self._import.finished.connect(self._end_import)
            self._import.start()

    def _end_import(self) -> None:
        """Go on, also after a failed import: the step that needs it raises the error again."""
        self._import = None
        self._go_on()


def _make_classes() -> Iterator[None]:
    """Make Qt's classes for Python; each ``yield`` is a place for a turn of the event loop.

    PySide makes a class when it is first asked for. Two threads that ask at the same time damage
    its tables, and the program ends with a segmentation fault. pyqtgraph asks for all classes:
    where it was imported in a thread, 4 of 110 starts ended so (PySide 6.11.3,
    `sys.setswitchinterval(1e-5)`), and none of 110 with the classes made before.
    """
    began_s = time.perf_counter()
    for module in (QtCore, QtGui, QtWidgets):
        for name in dir(module):
            getattr(module, name)
            if time.perf_counter() - began_s > _LONGEST_S:
                yield
                began_s = time.perf_counter()


def steps() -> Steps:
    """Return the steps of the application: those of all windows wait in one line."""
    return _line("steps")


def follow_ups() -> Steps:
    """Return the line of what follows a resize: it is short, and waits for no import."""
    return _line("follow_ups")


class Resizes(QObject):
    """Lets a widget follow a resize in a later turn, or at once if nobody has seen it yet."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._is_seen = False  # painted since it was last shown
        widget.installEventFilter(self)

    def follow(self, step: Callable[[], object]) -> None:
        """Run a method: the turn of a resize that is seen has the whole page to lay out."""
        if self._is_seen:
            follow_ups().add(step)
        else:
            step()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note a paint and the end of a show."""
        if event.type() is QEvent.Type.Paint:
            self._is_seen = True
        elif event.type() is QEvent.Type.Hide:
            self._is_seen = False
        return super().eventFilter(watched, event)


def _line(name: str) -> Steps:
    application = QApplication.instance()
    assert application is not None
    # PySide would look for a child in all of them, and build QStyle for the style: 5 ms.
    known = application.property(name)
    if isinstance(known, Steps):
        return known
    made = Steps(application)
    application.setProperty(name, made)
    return made
