"""Whether the engine still responds: it sends heartbeats unless something blocks its process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.messages.engine_messages import Heartbeat

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event

_log = logging.getLogger(__name__)
_BEAT_MS = 1000
_MOST_MISSED = 10  # heartbeats, before an engine counts as not responding


class EnginePulse(QObject):
    """Counts the heartbeats that an engine misses.

    Signals:
        silence_changed(bool): the engine stopped responding, or responds again.

    Attributes:
        is_silent: whether a driver or the system blocks the engine's process.
    """

    silence_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_silent = False
        self._has_beaten = False
        self._missed = 0
        self._timer = QTimer(self)
        self._timer.setInterval(_BEAT_MS)
        self._timer.timeout.connect(self._on_missed)

    def note_event(self, event: Event | Heartbeat) -> None:
        """Note an event as a sign of life."""
        self._missed = 0
        self._set_silent(False)
        self._has_beaten = self._has_beaten or isinstance(event, Heartbeat)

    def start(self) -> None:
        """Expect heartbeats from now on, unless this engine has never sent one."""
        if self._has_beaten and not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        """Expect no heartbeats until the next `start`."""
        self._timer.stop()

    def reset(self) -> None:
        """Start anew, for another engine."""
        self.stop()
        self._has_beaten = False
        self._set_silent(False)

    def _on_missed(self) -> None:
        # Counted, not timed: a PC that slept for an hour has missed one.
        self._missed += 1
        if self._missed >= _MOST_MISSED:
            self._set_silent(True)

    def _set_silent(self, silent: bool) -> None:
        if silent is not self.is_silent:
            self.is_silent = silent
            if silent:
                _log.warning("The engine has given no sign of life for a while")
            self.silence_changed.emit(silent)
