"""One engine after another: each has ended before the next one gets a request.

So the card is free of the old engine's context when the new one uses it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PySide6.QtCore import QDeadlineTimer

    from gpu_studio.core.engine import Engine, EngineEnvironment, EngineFactory
    from gpu_studio.core.messages.engine_messages import Heartbeat
    from gpu_studio.core.messages.message import Event

_LONGEST_SUCCESSION_S = 5.0  # the next engine does not wait longer for such a call


class EngineEvent(NamedTuple):
    """An event of one engine; None is the end of its events."""

    engine: Engine
    event: Event | Heartbeat | None


class EngineSuccession:
    """Creates engines by a factory when they are needed.

    Attributes:
        environment: the environment of the current engine.
        present: the current engine; None until it is needed.
        retired: the previous engine, until the current one is read.
    """

    def __init__(self, factory: EngineFactory, environment: EngineEnvironment) -> None:
        self._factory = factory
        self.environment = environment
        self.present: Engine | None = None
        self.retired: Engine | None = None
        self._is_over = threading.Event()  # for the engine that was read last
        self._is_over.set()

    def renew(self, environment: EngineEnvironment | None = None) -> Engine | None:
        """Retire the engine; the next one gets another environment if one is given.

        Returns:
            The retired engine; None if there was none.
        """
        if environment is not None:
            self.environment = environment
        # Called twice before the old engine has ended: there was no other in between.
        self.retired, self.present = self.retired or self.present, None
        return self.retired

    def listening(self) -> Callable[[], Iterator[EngineEvent]]:
        """Create the engine if there is none, and return a function that yields all its events.

        Call the function in a worker's thread: it ends the old engine first, which may take a
        while.
        """
        engine = self.present = self.present or self._factory(self.environment)
        retired, was_over = self.retired, self._is_over
        self.retired, is_over = None, threading.Event()
        self._is_over = is_over

        def listen() -> Iterator[EngineEvent]:
            try:
                if retired is not None:
                    retired.close()
                was_over.wait(_LONGEST_SUCCESSION_S)  # a hung driver may keep it forever
                for event in engine.events():
                    yield EngineEvent(engine, event)
            finally:
                is_over.set()
            yield EngineEvent(engine, None)

        return listen

    def close(self, limit: QDeadlineTimer) -> None:
        """End all engines, and wait for a current call until a deadline."""
        for engine in (self.retired, self.present):
            if engine is not None:
                engine.close()
        self._is_over.wait(limit.remainingTime() / 1000)
