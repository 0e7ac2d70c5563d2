"""How long the window waits: while the PC sleeps, or the window is stopped, no time passes."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.pause import EVERY_S, PauseWatch

_TICKS = 10
_LONGEST_TICK_MS = 1000


class AwakeTimer(QObject):
    """A deadline, counted in ticks: a window that was stopped for an hour has missed one.

    Args:
        parent: owns it.
        wait_ms: how long to wait, unless `start` says so.

    Signals:
        ended(): the time is over.
    """

    ended = Signal()

    def __init__(self, parent: QObject, wait_ms: int = 0) -> None:
        super().__init__(parent)
        self.wait_ms = wait_ms
        self._ticks = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._tick)

    @property
    def is_active(self) -> bool:
        """Whether the time is running."""
        return self._timer.isActive()

    def start(self, wait_ms: int | None = None) -> None:
        """Let the time run from now on, again if it runs already."""
        wait_ms = self.wait_ms if wait_ms is None else wait_ms
        tick_ms = min(max(wait_ms // _TICKS, 1), _LONGEST_TICK_MS)
        self._ticks = -(-wait_ms // tick_ms)
        self._timer.start(tick_ms)

    def stop(self) -> None:
        """Wait no longer."""
        self._timer.stop()

    def _tick(self) -> None:
        self._ticks -= 1
        if self._ticks <= 0:
            self.stop()
            self.ended.emit()


class PauseTimer(QObject):
    """Notices pauses while it runs.

    Args:
        parent: owns it.

    Signals:
        resumed(float): the PC or this window goes on after a pause of that many seconds.
    """

    resumed = Signal(float)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._watch = PauseWatch()
        self._timer = QTimer(self)
        self._timer.setInterval(round(1000 * EVERY_S))
        self._timer.timeout.connect(self.look)

    def start(self) -> None:
        """Look for pauses from now on."""
        self._watch.tick()
        self._timer.start()

    def stop(self) -> None:
        """Look for pauses no longer."""
        self._timer.stop()

    def look(self) -> None:
        """Look now: what arrives after a pause may come before the next tick."""
        if self._timer.isActive() and (pause_s := self._watch.tick()):
            self.resumed.emit(pause_s)
