"""The time of the race that is shown: it follows the race, and runs again for a replay."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

_REPLAY_MS = 50
# Of what is known, this share is caught up with at each frame. Nearer, there is nothing more to
# see; further ahead, the frames come too seldom to run evenly.
_FOLLOWS, _NEAR_S, _FAR_S = 0.15, 0.02, 1.0
_LONGEST_REPLAY_S = 12.0


class RaceClock(QObject):
    """The race's clock.

    Signals:
        changed(): it stands at another time: other frames are to be shown.
        replay_changed(): a replay began or ended.

    Attributes:
        now_s: the time of the race that is shown.
    """

    changed = Signal()
    replay_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.now_s = 0.0
        self._step_s = self._last_s = self._rest_s = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(_REPLAY_MS)
        self._timer.timeout.connect(self._go_on)

    @property
    def is_replaying(self) -> bool:
        """Whether the race that is over is shown again."""
        return self._timer.isActive()

    def set(self, now_s: float) -> None:
        """Show this time."""
        self.now_s = now_s
        self.changed.emit()

    def follow(self, known_s: float) -> None:
        """Go on towards a time up to which the race is known.

        A side's frames come only in its turns: so the clock runs evenly, a part of a turn later.
        """
        ahead_s = known_s - self.now_s
        if ahead_s > 0:
            is_even = _NEAR_S < ahead_s < _FAR_S
            self.set(self.now_s + ahead_s * _FOLLOWS if is_even else known_s)

    def replay(self, last_s: float, rest_s: float) -> None:
        """Show the race again, faster than it was if that takes too long.

        Args:
            last_s: where the replay ends.
            rest_s: the time to show afterwards.
        """
        self._last_s, self._rest_s = last_s, rest_s
        speed = max(last_s / _LONGEST_REPLAY_S, 1.0)
        self._step_s = speed * _REPLAY_MS / 1000
        self.now_s = 0.0
        self._timer.start()
        self.replay_changed.emit()
        self.changed.emit()

    def end_replay(self) -> None:
        """End the replay; does nothing without one."""
        if self.is_replaying:
            self._timer.stop()
            self.now_s = self._rest_s
            self.replay_changed.emit()
            self.changed.emit()

    def _go_on(self) -> None:
        now_s = self.now_s + self._step_s
        if now_s >= self._last_s:
            self.end_replay()
        else:
            self.set(now_s)
