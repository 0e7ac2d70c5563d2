"""How long the event loop of a window was away at most."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Qt, QTimer

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

_PERIOD_MS = 2


class Gap(NamedTuple):
    """The longest time between two beats, and the longest that the thread itself worked in one.

    The first is what a person feels. The second leaves out the time in which other programs had
    the processor: on a busy machine it alone tells what the window does.
    """

    on_the_wall_s: float
    own_work_s: float


class Heartbeat(QObject):
    """A timer every 2 ms that notes how late it comes; one turn of the loop serves it once."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._wall_s, self._work_s = time.perf_counter(), time.thread_time()
        self._longest = Gap(0.0, 0.0)
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(_PERIOD_MS)

    def take_longest(self) -> Gap:
        """Return the longest gap since the last call."""
        self._beat()
        longest, self._longest = self._longest, Gap(0.0, 0.0)
        return longest

    def _beat(self) -> None:
        wall_s, work_s = time.perf_counter(), time.thread_time()
        self._longest = Gap(
            max(self._longest.on_the_wall_s, wall_s - self._wall_s),
            max(self._longest.own_work_s, work_s - self._work_s),
        )
        self._wall_s, self._work_s = wall_s, work_s
