"""Work that has a turn of the event loop to itself."""

from __future__ import annotations

import time

from PySide6.QtCore import QAbstractEventDispatcher, QCoreApplication, QObject, QTimer, Signal

_LATE_S = 0.003
_MOST_WAITS = 3  # on a PC so busy that every turn begins late, the work is done all the same
_PROPERTY = "turn clock"


class TurnClock(QObject):
    """Tells how long the present turn of the application's event loop has lasted."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._begun_s = time.perf_counter()
        dispatcher = QAbstractEventDispatcher.instance()
        if dispatcher is not None:
            dispatcher.awake.connect(self._begin)

    @property
    def is_late(self) -> bool:
        """Whether this turn has done enough: what can wait is for another one."""
        return time.perf_counter() - self._begun_s > _LATE_S

    def _begin(self) -> None:
        self._begun_s = time.perf_counter()


def turn_clock() -> TurnClock:
    """Return the clock of the application."""
    application = QCoreApplication.instance()
    assert application is not None
    known = application.property(_PROPERTY)
    if isinstance(known, TurnClock):
        return known
    clock = TurnClock(application)
    application.setProperty(_PROPERTY, clock)
    return clock


class TurnTimer(QObject):
    """Ends once in each turn of the event loop that has not lasted long, from start to stop.

    Timers without an interval end in the same turn, which also has what threads and the system have
    sent. Each may take only some milliseconds, and together they are a stumble. One that ends late
    in its turn waits for another turn.

    Signals:
        timeout(): it is time.
    """

    timeout = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._clock = turn_clock()
        self._waits = 0
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._on_turn)

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._timer.isActive()

    def start(self) -> None:
        """End in the coming turns."""
        self._timer.start()

    def stop(self) -> None:
        """End no longer."""
        self._timer.stop()

    def _on_turn(self) -> None:
        if self._clock.is_late and self._waits < _MOST_WAITS:
            self._waits += 1
            return
        self._waits = 0
        self.timeout.emit()
