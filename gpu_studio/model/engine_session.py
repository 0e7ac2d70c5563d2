"""The window's one conversation with an engine.

One request at a time, and a fresh engine when the old one is gone.
"""

from __future__ import annotations

import logging
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    DeviceUsed,
    EngineDescribed,
    EngineEnded,
    Event,
    ReadMemory,
    Request,
    RequestFailed,
    RunFailed,
    is_last,
)
from gpu_studio.model.turn_timer import turn_timer
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.engine import Engine, EngineFactory

_log = logging.getLogger(__name__)
_PATIENCE_MS = 150  # a stop takes effect in 200 ms; after this the engine is ended
_LONGEST_END_MS = 5000  # a call in this process may take longer; it ends with the process
_MOST_DEATHS = 3  # in a row, before the window stops trying by itself


class EngineState(Enum):
    """What the engine is doing.

    ::

        ABSENT ─► STARTING ─► READY ◄─► BUSY ─► STOPPING ─► READY
                     ▲          └─────────┴─────────┴─► (dead) ─► STARTING, or FAILED
                     └──────────── restart ─────────────────────────────────┘
    """

    ABSENT = "no engine yet"
    STARTING = "starting"
    READY = "ready"
    BUSY = "working"
    STOPPING = "stopping"
    FAILED = "failed"

    @property
    def is_idle(self) -> bool:
        """Whether a request would start at once."""
        return self is EngineState.READY


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


class WaitingRequests:
    """Requests in the order in which they are served. Equal ones are told apart."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()

    def __bool__(self) -> bool:
        """Return whether any waits."""
        return bool(self._requests)

    def add(self, request: Request) -> None:
        """Put a request behind all others."""
        self._requests.append(request)

    def ask_first(self, question: DescribeEngine) -> None:
        """Put the first question to a fresh engine before all others, and no such question more."""
        others = (one for one in self._requests if not isinstance(one, DescribeEngine))
        self._requests = deque((question, *others))

    def take(self) -> Request:
        """Return the next one, which waits no more."""
        return self._requests.popleft()

    def withdraw(self, request: Request) -> bool:
        """Let a request wait no more; return whether it did."""
        others = [one for one in self._requests if one is not request]  # equal is not the same
        is_there = len(others) < len(self._requests)
        self._requests = deque(others)
        return is_there

    def take_all(self) -> list[Request]:
        """Return all that wait; none does afterwards."""
        requests = list(self._requests)
        self._requests.clear()
        return requests


class EngineSession(QObject):
    """Sends requests to one engine after another and tells everyone what it answers.

    ``wakes_cards`` says whether a fresh engine may wake cards that sleep by asking CUDA.

    Signals:
        state_changed(EngineState)
        engine_described(EngineDescribed): a fresh engine is there.
        event_received(Request, Event): something was answered; the last event included.
        engine_lost(str): the engine died by itself or did not start, with the reason in words.
    """

    state_changed = Signal(object)
    engine_described = Signal(object)
    event_received = Signal(object, object)
    engine_lost = Signal(str)

    def __init__(
        self,
        factory: EngineFactory,
        parent: QObject | None = None,
        *,
        environment: EngineEnvironment | None = None,
        wakes_cards: bool = True,
    ) -> None:
        super().__init__(parent)
        self._wakes_cards = wakes_cards
        self._engines = EngineSuccession(factory, environment or EngineEnvironment())
        self._state = EngineState.ABSENT
        self._description: EngineDescribed | None = None
        self._current_device: int | None = None
        self._waiting = WaitingRequests()
        self._request: Request | None = None
        self._worker: Worker | None = None
        self._deaths, self._reason = 0, ""
        self._lost = self._closed = False
        self._refusal = turn_timer(self, self._refuse_waiting)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(_PATIENCE_MS)
        self._patience.timeout.connect(self._abandon)

    @property
    def state(self) -> EngineState:
        """What the engine is doing."""
        return self._state

    @property
    def is_free(self) -> bool:
        """Whether nothing at all is asked or waits; a glance at the memory counts here."""
        return self._state is EngineState.READY and self._worker is None and not self._waiting

    @property
    def description(self) -> EngineDescribed | None:
        """The engine's account of itself; None until it is there."""
        return self._description

    @property
    def environment(self) -> EngineEnvironment:
        """What the present engine was started with."""
        return self._engines.environment

    @property
    def current_device(self) -> int | None:
        """The card that `UseDevice` chose in this engine; None while it is CUDA's default."""
        return self._current_device

    def start(self) -> None:
        """Start the engine; does nothing when there is one."""
        if self._state in (EngineState.ABSENT, EngineState.FAILED) and not self._closed:
            self._deaths = 0
            self._describe_next()
            self._next()

    def submit(self, request: Request) -> None:
        """Queue a request. Its answer comes as `event_received` with the same object.

        Before `start` it waits; where no engine could be started it is refused, once the caller
        has returned.
        """
        if self._closed:
            return
        self._waiting.add(request)
        if self._state is EngineState.FAILED:
            self._refusal.start()
        elif self._state is not EngineState.ABSENT:
            self._next()

    def stop(self, request: Request) -> None:
        """Stop a request: between two calls, or, when that takes long, with its engine.

        A request that still waits is answered at once by an `EngineEnded` with ``stopped``.
        """
        if request is self._request:
            if self._state is EngineState.BUSY:
                self._enter(EngineState.STOPPING)
                self._engines.present.stop()
                self._patience.start()
        elif self._waiting.withdraw(request):
            self.event_received.emit(request, EngineEnded(exit_code=None, stopped=True))

    def restart(self, environment: EngineEnvironment | None = None) -> None:
        """End this engine and start a fresh one, in another environment if one is given.

        What was on the cards and in the engine is lost; what the window holds is not.
        """
        if self._closed:
            return
        self._engines.renew(environment)
        self._describe_next(is_chosen=environment is not None)
        self._deaths = 0
        if self._worker is not None:
            self._engines.abandon_retired()
        self._enter(EngineState.STARTING)
        self._next()

    def close(self) -> None:
        """End the engine and its worker; nothing is left running."""
        if self._ask_no_more():
            self._engines.close()
            if self._worker is not None and self._worker.wait(_LONGEST_END_MS):
                self._worker.retire()
                self._worker = None

    def dismiss(self) -> Worker | None:
        """Close without waiting: the engine is ended in a thread, which is returned.

        None where nothing was left to end.
        """
        if not self._ask_no_more():
            return None
        engines, working = self._engines, self._worker

        def end() -> Iterator[Event]:
            engines.close()
            if working is not None:
                working.wait(_LONGEST_END_MS)
            yield from ()

        ending = Worker(end, self)
        ending.start()
        return ending

    def _ask_no_more(self) -> bool:
        """Take no more requests; return whether any were taken before."""
        if self._closed:
            return False
        self._closed = True
        self._waiting.take_all()
        self._patience.stop()
        return True

    def _describe_next(self, *, is_chosen: bool = False) -> None:
        """Put the first question to a fresh engine in front of everything that waits."""
        self._description = self._current_device = None
        # Who chose its environment is about to use a card.
        self._waiting.ask_first(DescribeEngine(wakes_cards=self._wakes_cards or is_chosen))

    def _next(self) -> None:
        if self._worker is not None or not self._waiting or self._closed:
            return
        self._request = self._waiting.take()
        self._lost = False
        if isinstance(self._request, DescribeEngine):
            self._enter(EngineState.STARTING)
        elif not isinstance(self._request, ReadMemory):  # a glance is no work
            self._enter(EngineState.BUSY)
        self._worker = Worker(self._engines.asking(self._request), self)
        self._worker.value_produced.connect(self._receive)
        self._worker.failure_raised.connect(self._receive_failure)
        self._worker.finished.connect(self._finish)
        self._worker.start()

    def _receive(self, event: Event) -> None:
        request = self._request
        if request is None or self._closed:
            return
        if isinstance(event, (RunFailed, RequestFailed)) and event.failure.traceback_text:
            _log.warning("The engine reported a failure:\n%s", event.failure.traceback_text)
        if self._engines.is_changing:
            event = self._engines.told_by_retired(event, request)
        else:
            self._take_over(event)
        self.event_received.emit(request, event)

    def _take_over(self, event: Event) -> None:
        """Learn from an event what it says of the engine itself."""
        match event:
            case EngineDescribed():
                self._deaths = 0
                self._description, self._current_device = event, None
                self.engine_described.emit(event)
            case DeviceUsed():
                self._current_device = event.cuda_index
            case EngineEnded():
                self._note_death(describe_exit(event.exit_code), stopped=event.stopped)
            case RunFailed() | RequestFailed() if event.failure.fatal:
                self._note_death(event.failure.message, stopped=False)
            case RequestFailed() if isinstance(self._request, DescribeEngine):
                self._reason = event.failure.message
            case _:
                pass

    def _receive_failure(self, failure: Failure) -> None:
        self._receive(RequestFailed(failure=failure))

    def _note_death(self, reason: str, *, stopped: bool) -> None:
        self._lost = True
        if not stopped:
            self._deaths += 1
            self._reason = reason
            _log.error("The engine is gone: %s", reason)
            self.engine_lost.emit(reason)

    def _finish(self) -> None:
        """The worker is done: go on, with a fresh engine if this one is gone."""
        self._patience.stop()
        worker, request = self._worker, self._request
        self._worker = self._request = None
        if worker is not None:
            worker.retire()
        if self._closed:
            return
        failed_start = isinstance(request, DescribeEngine) and self._description is None
        if not self._engines.is_changing:
            if self._lost and self._deaths < _MOST_DEATHS:
                self._describe_next()
            elif self._lost or failed_start:
                self._give_up()
                return
            else:
                self._enter(EngineState.READY)
        self._next()

    def _give_up(self) -> None:
        """Stay without an engine until someone asks for one; answer what was waiting."""
        self._description = self._current_device = None
        if not self._lost:  # it lives, and cannot say what it is
            self.engine_lost.emit(self._reason)
        self._enter(EngineState.FAILED)
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        if self._state is not EngineState.FAILED:
            return
        message = f"There is no engine: start a fresh one. The last one: {self._reason}"
        failure = Failure(FailureKind.ENGINE_ENDED, message)
        for request in self._waiting.take_all():
            self.event_received.emit(request, RequestFailed(failure=failure))

    def _abandon(self) -> None:
        if self._state is EngineState.STOPPING:
            self._engines.present.abandon()

    def _enter(self, state: EngineState) -> None:
        if state is not self._state:
            self._state = state
            self.state_changed.emit(state)
