"""Who listens to an engine session, and what is asked of it."""

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import QObject, Slot
from pytestqt.qtbot import QtBot

from gpu_studio.core.messages.engine_messages import EngineDescribed, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunStopped, RunWorkload
from gpu_studio.model.engine_session import EngineSession, EngineState, Reply
from tests.fakes.run_answers import run_events, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine


class Watcher(QObject):
    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self.states: list[EngineState] = []
        self.answers: list[tuple[Request, Event]] = []
        self.losses: list[str] = []
        self.descriptions = 0
        self._replies: list[Reply] = []
        session.state_changed.connect(self._state)
        session.request_submitted.connect(self._follow)
        session.engine_lost.connect(self._loss)
        session.engine_described.connect(self._described)

    @Slot(object)
    def _state(self, state: EngineState) -> None:
        self.states.append(state)

    @Slot(object)
    def _follow(self, reply: Reply) -> None:
        reply.event_received.connect(self._event)
        self._replies.append(reply)

    @Slot(object)
    def _event(self, event: Event) -> None:
        self.answers.append((self.sender().request, event))

    def stop(self, request: Request) -> None:
        for reply in self._replies:
            if reply.request is request:
                reply.stop()

    @Slot(str)
    def _loss(self, reason: str) -> None:
        self.losses.append(reason)

    @Slot(object)
    def _described(self, _description: EngineDescribed) -> None:
        self.descriptions += 1

    def answer(self, request: Request) -> list[Event]:
        return [event for asked, event in self.answers if asked is request]

    def types(self, request: Request) -> list[type]:
        return [type(event) for event in self.answer(request)]


def run_request(run_id: str = "1", **changes: Any) -> RunWorkload:
    parameters = {
        "workload": "elementwise", "device": "cpu", "size": 512, "dtype": "float32", **changes,
    }  # fmt: skip
    return RunWorkload(run_id=run_id, **parameters)


def read_memory(_engine: ScriptedEngine, request: ReadMemory) -> Iterator[Event]:
    yield MemoryRead(device=request.device, taken_at_s=0.0)


def hold(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    yield started(request)
    yield Pause()
    yield from run_events(request)


def hold_deaf(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    yield started(request)
    yield Pause(deaf=True)
    yield from run_events(request)


def start(qtbot: QtBot, session: EngineSession) -> None:
    session.start()
    qtbot.waitUntil(lambda: session.state is EngineState.READY)


def wait_paused(qtbot: QtBot, engines: Engines) -> None:
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())


def wait_answered(qtbot: QtBot, watcher: Watcher, request: Request) -> None:
    def answered() -> bool:
        return any(
            isinstance(event, (RunFinished, RunStopped, RunFailed, RequestFailed, EngineEnded))
            for event in watcher.answer(request)
        )

    qtbot.waitUntil(answered)
