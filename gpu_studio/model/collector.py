"""Python's cycle collector, kept in the window's thread.

Python collects in whichever thread happens to allocate, so a worker's thread may find itself
destroying QObjects of the window, whose timers may only be destroyed in their own thread: the
program would crash. So automatic collection is off while a window lives, and a timer of the
window's thread does it instead, generation by generation as Python would.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_PERIOD_MS = 500


class Collector(QObject):
    """Collects garbage in the thread it lives in, from `start` to `stop`.

    There may be several, one a window; Python takes over again when the last has stopped.
    """

    _started = 0
    _was_enabled = False

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self)
        self._timer.setInterval(_PERIOD_MS)
        self._timer.timeout.connect(self._collect)

    def start(self) -> None:
        """Take over from Python."""
        if not self._timer.isActive():
            if not Collector._started:
                Collector._was_enabled = gc.isenabled()
            Collector._started += 1
            gc.disable()
            # What the start has made stays: looking through it each time would hold the window.
            gc.freeze()
            self._timer.start()

    def stop(self) -> None:
        """Give back to Python what it had."""
        if self._timer.isActive():
            self._timer.stop()
            Collector._started -= 1
            if not Collector._started:
                gc.unfreeze()
                if Collector._was_enabled:
                    gc.enable()

    def _collect(self) -> None:
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
