"""The window's one conversation with an engine.

It sends one request at a time, and starts a new engine if the old one ends. Each engine has ended
before the next one gets a request, so the card is free of its context.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QDeadlineTimer, QObject, QTimer, Signal

from gpu_studio.core import limits
from gpu_studio.core.engine import EngineEnvironment, describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    EngineEnded,
    Heartbeat,
    RequestFailed,
)
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.placement_messages import DeviceUsed
from gpu_studio.core.messages.run_messages import RunFailed
from gpu_studio.model.awake_timer import AwakeTimer
from gpu_studio.model.worker import Task, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.engine import Engine, EngineFactory
    from gpu_studio.core.messages.message import Event, Request

_log = logging.getLogger(__name__)
_MOST_DEATHS = 3  # without work between them, before the window stops restarting by itself


class EngineState(Enum):
    """The state of the engine.

    ::

        ABSENT ─► STARTING ─► READY ◄─► BUSY ─► STOPPING ─► READY
                     ▲          └─────────┴─────────┴─► (dead) ─► STARTING, or FAILED
                     └──────────── restart ─────────────────────────────────┘

    ``release`` leads from READY back to ABSENT, ``end`` from any state.
    """

    ABSENT = "not started"
    STARTING = "starting"
    READY = "ready"
    BUSY = "working"
    STOPPING = "stopping"
    FAILED = "failed"

    @property
    def is_idle(self) -> bool:
        """Whether a request would start at once."""
        return self is EngineState.READY


class Reply(QObject):
    """The answer to one request, event by event.

    Signals:
        event_received(Event): the next event, including the last one.
        finished(): the last event has arrived, and the session is free for another request.

    Attributes:
        request: the request.
        last: the event that ended the answer; None until then.
    """

    event_received = Signal(object)
    finished = Signal()

    def __init__(self, request: Request, stop: Callable[[Reply], None]) -> None:
        super().__init__()
        self.request = request
        self.last: Event | None = None
        self._stop = stop

    @property
    def is_finished(self) -> bool:
        """Whether the last event has arrived."""
        return self.last is not None

    def stop(self) -> None:
        """Stop the request between two calls; if that takes too long, end its engine.

        A request that is still waiting is answered at once by an `EngineEnded` with ``stopped``.
        """
        self._stop(self)

    def deliver(self, event: Event) -> None:
        """Pass an event on; only the session calls this."""
        if event.ends(self.request):
            self.last = event
        self.event_received.emit(event)


class EngineSession(QObject):
    """Sends requests to one engine after another.

    An engine that is sent away answers no longer: its request ends at once as stopped, and the next
    engine waits for its end, but not for long, since a hung driver may keep it forever.

    Args:
        factory: creates an engine when it is needed.
        parent: owns the session.
        environment: the settings of the first engine.
        wakes_cards: whether a new engine may wake sleeping cards by asking CUDA.
        describes: whether a new engine first describes itself. Otherwise it starts with the first
            request, and no other one starts before the next request.
        stop_patience_ms: the time that a stopped request may take before its engine is ended.

    Signals:
        state_changed(EngineState)
        engine_described(EngineDescribed): a new engine is ready.
        device_used(DeviceUsed): another card is current.
        request_submitted(Reply): a request was submitted; for observers of all requests.
        silence_changed(bool): the engine stopped responding, or responds again.
        engine_lost(str): the engine died or did not start, with the reason in words.

    Attributes:
        state: the state of the engine.
        absence: why there is no engine; empty if there is one, or one is about to start.
        who: what its sentences call the engine.
        is_released: whether the engine was ended to leave the card to other work, until `restart`.
        is_silent: whether the engine does not respond: something blocks its process.
        line_failure: why the line to the engine's PC ended, and the engine with it; no other one
            starts before `restart` then. None if it did not.
        description: the engine's description of itself; None before it starts.
        current_device: the card that `UseDevice` chose in this engine, ``cuda:1``; None for CUDA's
            default, the first.
        environment: the environment of the current engine.
    """

    state_changed = Signal(object)
    engine_described = Signal(object)
    device_used = Signal(object)
    request_submitted = Signal(object)
    silence_changed = Signal(bool)
    engine_lost = Signal(str)

    def __init__(
        self,
        factory: EngineFactory,
        parent: QObject | None = None,
        *,
        environment: EngineEnvironment | None = None,
        wakes_cards: bool = True,
        describes: bool = True,
        stop_patience_ms: int | None = None,
    ) -> None:
        super().__init__(parent)
        self._factory, self.environment = factory, environment or EngineEnvironment()
        self._wakes_cards, self._describes = wakes_cards, describes
        self.state, self.absence, self.is_released = EngineState.ABSENT, "", False
        self.who = "PyTorch"
        self.line_failure: Failure | None = None
        self.description: EngineDescribed | None = None
        self.current_device: str | None = None
        self._engine: Engine | None = None
        self._old_engine: Engine | None = None  # until the next one is read
        self._has_ended = threading.Event()  # for the engine that was read last
        self._has_ended.set()
        self._waiting: deque[Reply] = deque()
        self._reply: Reply | None = None
        self._deaths, self._reason = 0, ""
        self._is_lost = self._is_closed = self.is_silent = self._has_beaten = False
        self._silence = self._timer(limits.current.engine_silence_ms, self._on_silence)
        stop_ms = stop_patience_ms or limits.current.stop_ms
        self._patience = self._timer(stop_ms, self._on_stop_timeout)

    def _timer(self, wait_ms: int, on_ended: Callable[[], None]) -> AwakeTimer:
        timer = AwakeTimer(self, wait_ms)
        timer.ended.connect(on_ended)
        return timer

    @property
    def what_is_missing(self) -> str:
        """The reason why the engine cannot answer yet; empty once it has described itself."""
        if self.description is not None:
            return ""
        if self.state is EngineState.ABSENT and self.absence:
            return self.absence
        if self.is_released:
            return "This waits until the check or the installation ends."
        return f"{self.who} is starting."

    @property
    def is_free(self) -> bool:
        """Whether no request runs or waits; a reading of the memory counts as well."""
        return self.state is EngineState.READY and self._reply is None and not self._waiting

    @property
    def is_held(self) -> bool:
        """Whether a signal holds the engine's process up, see `Engine.is_held`."""
        return self._engine is not None and self._engine.is_held

    # ── what the window asks ─────────────────────────────────────────────────────────────────

    def set_absence(self, reason: str) -> None:
        """Say why there is no engine; empty if one is about to start."""
        if reason != self.absence:
            self.absence = reason
            self.state_changed.emit(self.state)

    def start(self) -> None:
        """Start the engine; does nothing if there is one, or if none is installed."""
        if not self.absence and self.state in (EngineState.ABSENT, EngineState.FAILED):
            self._deaths = 0
            self._begin()

    def submit(self, request: Request) -> Reply:
        """Queue a request and return its reply, which emits nothing before this returns.

        Before `start` the request waits; if no engine can start, it is refused.
        After `close` it is never answered.
        """
        reply = Reply(request, self._stop)
        if self._is_closed:
            return reply
        self._waiting.append(reply)
        self.request_submitted.emit(reply)
        if self.state is EngineState.FAILED:
            QTimer.singleShot(0, self, self._refuse_waiting)
        else:
            self._next()
        return reply

    def stop(self) -> None:
        """Stop the current request, if there is one."""
        if self._reply is not None:
            self._reply.stop()

    def restart(self, environment: EngineEnvironment | None = None) -> None:
        """End this engine and start a new one, in another environment if one is given.

        Everything on the cards and in the engine is lost; the window's results are not. Does
        nothing if no engine is installed.
        """
        if not self._is_closed and not self.absence:
            self.environment = environment or self.environment
            self._deaths = 0
            self._retire()
            self._begin(is_chosen=environment is not None)

    def release(self) -> Task | None:
        """As `end`, but only an idle engine: its card or its files are for other work."""
        return self.end() if self.state.is_idle else None

    def end(self) -> Task | None:
        """End the engine, whatever it does; none starts before `restart`.

        Returns:
            The started task that ends the engine; None if there is no engine.
        """
        if self._is_closed or self.state is EngineState.ABSENT:
            return None
        self._retire()
        self._forget_engine()
        self.is_released = self._old_engine is not None
        self._enter(EngineState.ABSENT)
        if self._old_engine is None:
            return None
        ending = Task(self._old_engine.close, self)
        ending.start()
        return ending

    def close(self) -> None:
        """End the engine and its worker; nothing is left running."""
        if self._is_closed:
            return
        self._is_closed = True
        self._waiting.clear()
        self._patience.stop()
        self._silence.stop()
        limit = QDeadlineTimer(limits.current.thread_end_ms)
        for engine in (self._old_engine, self._engine):
            if engine is not None:
                engine.close()
        self._has_ended.wait(limit.remainingTime() / 1000)
        for worker in self.findChildren(Worker):
            worker.wait(max(limit.remainingTime(), limits.current.idle_thread_end_ms))

    # ── one engine after the other ───────────────────────────────────────────────────────────

    def _begin(self, *, is_chosen: bool = False) -> None:
        """Await a new engine, which is asked for its description before all else, and only once."""
        self._forget_engine()
        self.line_failure, self._is_lost, self.is_released = None, False, False
        if self._describes:
            # A user who chose its environment is about to use a card.
            question = DescribeEngine(wakes_cards=self._wakes_cards or is_chosen)
            others = (one for one in self._waiting if not isinstance(one.request, DescribeEngine))
            self._waiting = deque((Reply(question, self._stop), *others))
        self._enter(EngineState.STARTING if self._describes else EngineState.READY)
        self._next()

    def _retire(self) -> None:
        """Send the engine away, and answer its request; the next one waits for its end."""
        # Called twice before the old engine has ended: there was no other in between.
        self._old_engine, self._engine = self._old_engine or self._engine, None
        self._is_lost = False
        reply, self._reply = self._reply, None
        self._patience.stop()
        if reply is not None and self._old_engine is not None and not reply.is_finished:
            self._old_engine.abandon()
            QTimer.singleShot(0, self, partial(self._end_reply, reply))

    def _end_reply(self, reply: Reply) -> None:
        if not self._is_closed:
            reply.deliver(EngineEnded(exit_code=None, stopped=True))
            reply.finished.emit()

    def _forget_engine(self) -> None:
        self.description = self.current_device = None
        self._has_beaten = False
        self._silence.stop()
        self._set_silent(False)

    def _next(self) -> None:
        is_waiting = self._waiting and self._reply is None and not self._is_lost
        if not is_waiting or self._is_closed or self.state is EngineState.ABSENT:
            return
        self._reply = self._waiting.popleft()
        request = self._reply.request
        if isinstance(request, DescribeEngine):
            self._enter(EngineState.STARTING)
        elif not isinstance(request, ReadMemory):  # a reading is no work
            self._deaths = 0
            self._enter(EngineState.BUSY)
        engine = self._engine or self._new_engine()
        engine.send(request)

    def _new_engine(self) -> Engine:
        """Return an engine that is read by a worker, which lives as long as it."""
        engine = self._engine = self._factory(self.environment)
        old_engine, old_has_ended = self._old_engine, self._has_ended
        has_ended = threading.Event()
        self._old_engine, self._has_ended = None, has_ended

        def events() -> Iterator[tuple[Engine, Event | Heartbeat | None]]:
            try:
                if old_engine is not None:
                    old_engine.close()
                old_has_ended.wait(limits.current.succession_s)  # a hung driver may keep it forever
                for event in engine.events():
                    yield engine, event
            finally:
                has_ended.set()
            yield engine, None

        worker = Worker(events, self)
        worker.value_produced.connect(self._on_event)
        worker.failure_raised.connect(self._on_reading_failed)
        worker.finished.connect(worker.deleteLater)
        worker.start()
        return engine

    def _stop(self, reply: Reply) -> None:
        if reply is self._reply:
            if self.state is EngineState.BUSY:
                assert self._engine is not None
                self._enter(EngineState.STOPPING)
                self._engine.stop()
                self._patience.start()
        elif reply in self._waiting:
            self._waiting.remove(reply)
            self._end_reply(reply)

    # ── what the engine says ─────────────────────────────────────────────────────────────────

    def _on_event(self, received: tuple[Engine, Event | Heartbeat | None]) -> None:
        """Pass on an event of an engine; None is the end of its events."""
        engine, event = received
        if self._is_closed or engine is not self._engine:
            return
        if event is None:
            self._on_engine_ended()
        else:
            self._set_silent(False)
            if isinstance(event, Heartbeat):
                self._has_beaten = True
            else:
                self._answer(event)
            # Only of an engine that has started: loading PyTorch may block its process for longer.
            if self._has_beaten and self.description is not None:
                self._silence.start()

    def _on_reading_failed(self, failure: Failure) -> None:
        """Treat an error in reading an engine as the engine's death."""
        engine = self._engine
        if engine is not None:
            fatal = msgspec.structs.replace(failure, fatal=True)
            self._on_event((engine, RequestFailed(failure=fatal)))
            self._on_event((engine, None))

    def _answer(self, event: Event) -> None:
        """Update the state, and pass an event on to the current request, if there is one.

        Whoever hears of it may restart or end the engine at once: then another request is current.
        """
        reply = self._reply
        self._update_state(event)
        if reply is None or reply is not self._reply:
            return
        if isinstance(event, (RunFailed, RequestFailed)) and event.failure.traceback_text:
            _log.warning("The engine reported a failure:\n%s", event.failure.traceback_text)
        reply.deliver(event)
        if not reply.is_finished or self._is_closed:
            return
        if reply is self._reply:
            self._patience.stop()
            self._reply = None
            is_undescribed = isinstance(reply.request, DescribeEngine) and not self.description
            if is_undescribed and not self._is_lost:
                self._give_up()
            elif not self._is_lost:
                self._enter(EngineState.READY)
        reply.finished.emit()
        self._next()

    def _update_state(self, event: Event) -> None:
        """Update the state from an event about the engine itself."""
        match event:
            case EngineDescribed():
                self.description, self.current_device = event, None
                self.engine_described.emit(event)
            case DeviceUsed():
                self.current_device = event.device
                self.device_used.emit(event)
            case EngineEnded():
                self._note_death(describe_exit(event.exit_code), stopped=event.stopped)
            case RunFailed() | RequestFailed() if event.failure.fatal:
                if event.failure.kind is FailureKind.LINE_LOST:
                    self.line_failure = event.failure
                self._note_death(event.failure.message, stopped=False)
            case RequestFailed() if self.description is None:
                self._reason = event.failure.message
            case _:
                pass

    def _note_death(self, reason: str, *, stopped: bool) -> None:
        self._is_lost = True
        if not stopped:
            self._deaths += 1
            self._reason = reason
            _log.error("The engine is gone: %s", reason)
            self.engine_lost.emit(reason)

    def _on_engine_ended(self) -> None:
        """Start a new engine, unless too many died in a row."""
        self._old_engine, self._engine = self._engine, None
        if self._reply is not None:
            self._answer(EngineEnded(exit_code=None))
        if not self._is_lost:
            return  # it could not start, or another one was requested meanwhile
        if self.line_failure is not None or self._deaths >= _MOST_DEATHS:
            self._give_up()
        else:
            self._begin()

    def _give_up(self) -> None:
        """Stay without an engine until the user starts one; answer the waiting requests."""
        self.description = self.current_device = None
        self._silence.stop()
        if not self._is_lost:  # it lives, but cannot describe itself
            self.engine_lost.emit(self._reason)
        self._is_lost = False
        self._enter(EngineState.FAILED)
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        if self.state is not EngineState.FAILED:
            return
        message = f"{self.who} has stopped. Start it anew. The last time: {self._reason}"
        stopped = Failure(FailureKind.ENGINE_ENDED, message)
        refusal = RequestFailed(failure=self.line_failure or stopped)
        waiting, self._waiting = self._waiting, deque()
        for reply in waiting:
            reply.deliver(refusal)
            reply.finished.emit()

    # ── what takes too long ──────────────────────────────────────────────────────────────────

    def _on_stop_timeout(self) -> None:
        """Replace an engine that did not end its request in time."""
        if self.state is EngineState.STOPPING:
            self._retire()
            self._begin()

    def _on_silence(self) -> None:
        _log.warning("PyTorch has given no sign of life for a while")
        self._set_silent(True)

    def _set_silent(self, silent: bool) -> None:
        if silent is not self.is_silent:
            self.is_silent = silent
            self.silence_changed.emit(silent)

    def _enter(self, state: EngineState) -> None:
        if state is not self.state:
            self.state = state
            self.state_changed.emit(state)
