"""One engine after another: the one that is asked, and the one before it until it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.protocol import EngineEnded, is_last

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.engine import Engine, EngineEnvironment, EngineFactory
    from gpu_studio.core.protocol import Event, Request


class EngineSuccession:
    """Makes engines by a factory, and ends each before the next one is asked anything.

    Attributes:
        environment: what the present engine was made with.
        present: the engine that is asked.
    """

    def __init__(self, factory: EngineFactory, environment: EngineEnvironment) -> None:
        self._factory = factory
        self.environment = environment
        self.present: Engine = factory(environment)
        self._retired: Engine | None = None

    @property
    def is_changing(self) -> bool:
        """Whether an engine was sent away and the present one has not been asked yet."""
        return self._retired is not None

    def renew(self, environment: EngineEnvironment | None = None) -> None:
        """Send the present engine away for a fresh one, in another environment if one is given."""
        if environment is not None:
            self.environment = environment
        # Asked twice before the old engine is gone: the one in between has never run.
        self._retired = self._retired or self.present
        self.present = self._factory(self.environment)

    def abandon_retired(self) -> None:
        """End the call that the engine which was sent away is in."""
        if self._retired is not None:
            self._retired.abandon()

    def asking(self, request: Request) -> Callable[[], Iterator[Event]]:
        """Return what yields the present engine's answer, for the thread of a worker.

        Ending the old engine may take a while: that belongs to the same thread.
        """
        engine, retired = self.present, self._retired
        self._retired = None

        def answer() -> Iterator[Event]:
            if retired is not None:
                retired.close()
            yield from engine.run(request)

        return answer

    def told_by_retired(self, event: Event, request: Request) -> Event:
        """Return an event of the engine that was sent away: its end was wanted, however it came."""
        if isinstance(event, EngineEnded):
            return EngineEnded(exit_code=event.exit_code, stopped=True)
        if not is_last(event, request):  # it began just after it had been told to end
            self.abandon_retired()
        return event

    def close(self) -> None:
        """End all engines; this may take as long as the call that one of them is in."""
        for engine in (self._retired, self.present):
            if engine is not None:
                engine.close()
