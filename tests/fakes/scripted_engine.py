"""Engines that answer from a script.

A script is a list of events, or a function of (engine, request) that yields them. Without a script
for runs in turns, each of them has that of a run alone, one after the other. A `Pause` in it
holds the engine in the middle of its work until the test says `ScriptedEngine.go`, or until it is
stopped or abandoned; a go that comes before its pause is not lost.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from gpu_studio.core.engine import EngineEnvironment, InProcessEngine
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunInTurns,
    RunsEnded,
    RunStarted,
    RunStopped,
    RunWorkload,
)
from tests.fakes.descriptions import described
from tests.fakes.run_answers import in_turns, run_events
from tests.patience import PATIENCE_S

LONGEST_PAUSE_S = 2 * PATIENCE_S


class Pause(msgspec.Struct, frozen=True):
    """Hold here. A deaf one is a long call: it does not hear a stop, only an abandon."""

    deaf: bool = False


Script = list[Any] | Callable[["ScriptedEngine", Any], Iterable[Any]]


class ScriptedEngine(InProcessEngine):
    """Satisfies `core.engine.Engine` with answers from ``scripts``, by the request's type."""

    def __init__(self, scripts: dict[type, Script], environment: EngineEnvironment) -> None:
        super().__init__()
        self.scripts = scripts
        self.environment = environment
        self.requests: list[Request] = []
        self.was_stopped = self.was_abandoned = self.is_closed = False
        self.paused = threading.Event()
        self.wake = threading.Condition()
        self._passes = 0  # how many pauses the test lets end
        self._stopped = self._abandoned = False

    def run(self, request: Request) -> Iterator[Event]:
        self.requests.append(request)
        with self.wake:
            self._stopped = self._abandoned = False
        if not isinstance(request, RunInTurns) or RunInTurns in self.scripts:
            yield from self._answer(request)
            return
        fatal = None
        for run in request.runs:
            for event in self._answer(run):
                if isinstance(event, RunFailed) and event.ends_engine:
                    fatal = event
                    continue
                yield _in_turns(event)
                if event.ends_engine:
                    return
        yield fatal or RunsEnded()

    def _answer(self, request: Request) -> Iterator[Event]:
        script = self.scripts.get(type(request))
        if script is None:
            message = f"No script for {type(request).__name__}."
            yield RequestFailed(failure=Failure(FailureKind.INTERNAL, message))
            return
        for item in script(self, request) if callable(script) else script:
            if isinstance(item, Pause):
                self._pause(item)
            ending = self._ending(request, item)
            if ending is not None:
                yield ending
                return
            if not isinstance(item, Pause):
                yield item

    def go(self) -> None:
        """Let the pause that holds the engine, or else the next one, end."""
        with self.wake:
            self._passes += 1
            self.wake.notify_all()

    def stop(self) -> None:
        with self.wake:
            self._stopped = self.was_stopped = True
            self.wake.notify_all()

    def abandon(self) -> None:
        with self.wake:
            self._abandoned = self.was_abandoned = True
            self.wake.notify_all()

    def close(self) -> None:
        with self.wake:
            self.is_closed = True
            self.wake.notify_all()
        super().close()

    def _pause(self, pause: Pause) -> None:
        def is_over() -> bool:
            stopped = self._stopped and not pause.deaf
            return self._passes > 0 or stopped or self._abandoned or self.is_closed

        with self.wake:
            self.paused.set()
            assert self.wake.wait_for(is_over, LONGEST_PAUSE_S), "this pause never ended"
            self.paused.clear()
            self._passes = max(0, self._passes - 1)

    def _ending(self, request: Request, item: Any) -> Event | None:
        """Return the early end of an answer: abandoned, or stopped between two calls."""
        with self.wake:
            if self._abandoned or self.is_closed:
                return EngineEnded(exit_code=None, stopped=True)
            hears = not isinstance(item, Pause) or not item.deaf
            if self._stopped and hears and isinstance(request, RunWorkload):
                if not isinstance(item, Pause) and item.ends(request):
                    return None
                return RunStopped(run_id=request.run_id)
            return None


def _in_turns(event: Event) -> Event:
    """Return an event with the marks of a run that took turns; all of its rounds are alike."""
    if isinstance(event, RunStarted):
        return msgspec.structs.replace(event, turns="turns")
    if isinstance(event, RunFinished):
        return in_turns(event, rounds_s=event.rounds_s)
    return event


class Engines:
    """A factory of scripted engines; ``scripts`` are shared by all it makes, ``made`` are those.

    ``kind`` is the class of the next one, for a test that needs an engine with a fault of its own.
    """

    kind: type[ScriptedEngine] = ScriptedEngine

    def __init__(self, scripts: dict[type, Script] | None = None) -> None:
        self.scripts: dict[type, Script] = {
            DescribeEngine: [described()],
            RunWorkload: lambda _engine, request: run_events(request),
        }
        self.scripts.update(scripts or {})
        self.made: list[ScriptedEngine] = []

    def __call__(self, environment: EngineEnvironment) -> ScriptedEngine:
        engine = self.kind(self.scripts, environment)
        self.made.append(engine)
        return engine

    @property
    def latest(self) -> ScriptedEngine:
        return self.made[-1]

    @property
    def requests(self) -> list[Request]:
        """What all of them were asked, in order; runs in turns one by one."""
        asked = [request for engine in self.made for request in engine.requests]
        return [
            one
            for request in asked
            for one in (request.runs if isinstance(request, RunInTurns) else (request,))
        ]
