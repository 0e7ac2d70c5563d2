"""Python's cycle collector, kept in the window's thread.

Python collects in any thread that allocates, so a worker's thread may destroy QObjects of the
window. Their timers may only be destroyed in their own thread: the program would crash. So
automatic collection is off while a window lives, and a timer of the window's thread collects.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_PERIOD_MS = 500


class Collector(QObject):
    """Collects garbage in its own thread, from `start` to `stop`.

    Each window has its own; Python takes over again when the last one has stopped.
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
            self.freeze()
            self._timer.start()

    def freeze(self) -> None:
        """Leave out what there is now: it stays, and scanning it each time would block the window.

        The window calls this again once all its pages are made.
        """
        gc.freeze()

    def stop(self) -> None:
        """Give collection back to Python."""
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
