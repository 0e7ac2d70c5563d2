"""The engine that a session has: one after another, and whether the present one still responds.

Each engine has ended before the next one gets a request, so the card is free of the old engine's
context when the new one uses it. An engine sends heartbeats unless something blocks its process.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.messages.engine_messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PySide6.QtCore import QDeadlineTimer

    from gpu_studio.core.engine import Engine, EngineEnvironment, EngineFactory
    from gpu_studio.core.messages.message import Event

_log = logging.getLogger(__name__)
_LONGEST_SUCCESSION_S = 5.0  # the next engine does not wait longer for a call of the old one
_BEAT_MS = 1000
_MOST_MISSED = 10  # heartbeats, before an engine counts as not responding


class EngineEvent(NamedTuple):
    """An event of one engine; None is the end of its events."""

    engine: Engine
    event: Event | Heartbeat | None


class EngineSlot:
    """Creates engines by a factory when they are needed.

    Attributes:
        environment: the environment of the current engine.
        current: the engine in use; None until it is needed.
        previous: the engine before it, until the current one is read.
    """

    def __init__(self, factory: EngineFactory, environment: EngineEnvironment) -> None:
        self._factory = factory
        self.environment = environment
        self.current: Engine | None = None
        self.previous: Engine | None = None
        self._is_over = threading.Event()  # for the engine that was read last
        self._is_over.set()

    def renew(self, environment: EngineEnvironment | None = None) -> Engine | None:
        """Retire the engine; the next one gets another environment if one is given.

        Returns:
            The previous engine; None if there was none.
        """
        if environment is not None:
            self.environment = environment
        # Called twice before the old engine has ended: there was no other in between.
        self.previous, self.current = self.previous or self.current, None
        return self.previous

    def listening(self) -> Callable[[], Iterator[EngineEvent]]:
        """Create the engine if there is none, and return a function that yields all its events.

        Call the function in a worker's thread: it ends the old engine first, which may take a
        while.
        """
        engine = self.current = self.current or self._factory(self.environment)
        previous, was_over = self.previous, self._is_over
        self.previous, is_over = None, threading.Event()
        self._is_over = is_over

        def listen() -> Iterator[EngineEvent]:
            try:
                if previous is not None:
                    previous.close()
                was_over.wait(_LONGEST_SUCCESSION_S)  # a hung driver may keep it forever
                for event in engine.events():
                    yield EngineEvent(engine, event)
            finally:
                is_over.set()
            yield EngineEvent(engine, None)

        return listen

    def close(self, limit: QDeadlineTimer) -> None:
        """End all engines, and wait for a current call until a deadline."""
        for engine in (self.previous, self.current):
            if engine is not None:
                engine.close()
        self._is_over.wait(limit.remainingTime() / 1000)


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
        self._timer.timeout.connect(self._miss)

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

    def _miss(self) -> None:
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
