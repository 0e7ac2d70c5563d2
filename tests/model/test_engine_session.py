from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QCoreApplication, QObject, Slot

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    DeviceUsed,
    EngineDescribed,
    EngineEnded,
    Event,
    MemoryRead,
    ReadMemory,
    Request,
    RequestFailed,
    RunFailed,
    RunFinished,
    RunStopped,
    RunWorkload,
    UseDevice,
)
from gpu_studio.model.engine_session import EngineSession, EngineState
from gpu_studio.model.worker import Worker
from tests.fakes.descriptions import described
from tests.fakes.run_answers import run_events, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

CRASH = EngineEnded(exit_code=-11)


class Watcher(QObject):
    """Notes all that a session says."""

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self.states: list[EngineState] = []
        self.answers: list[tuple[Request, Event]] = []
        self.losses: list[str] = []
        self.descriptions = 0
        session.state_changed.connect(self._state)
        session.event_received.connect(self._event)
        session.engine_lost.connect(self._loss)
        session.engine_described.connect(self._described)

    @Slot(object)
    def _state(self, state: EngineState) -> None:
        self.states.append(state)

    @Slot(object, object)
    def _event(self, request: Request, event: Event) -> None:
        self.answers.append((request, event))

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


@pytest.fixture
def session(qapp: object, engines: Engines) -> Iterator[EngineSession]:
    session = EngineSession(engines)
    yield session
    session.close()


@pytest.fixture
def watcher(session: EngineSession) -> Watcher:
    return Watcher(session)


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


# ── starting and the queue ────────────────────────────────────────────────────────────────────


def test_an_engine_is_described_and_ready(
    qtbot: QtBot, session: EngineSession, watcher: Watcher
) -> None:
    assert session.state is EngineState.ABSENT
    assert session.description is None
    start(qtbot, session)
    assert session.description == described()
    assert watcher.states == [EngineState.STARTING, EngineState.READY]
    assert watcher.descriptions == 1
    session.start()
    assert session.state is EngineState.READY


def test_requests_wait_for_the_start_and_run_in_order_one_at_a_time(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    first, second = run_request("1"), run_request("2")
    session.submit(first)
    session.submit(second)
    assert session.state is EngineState.ABSENT
    session.start()
    wait_paused(qtbot, engines)
    assert engines.requests == [DescribeEngine(), first]
    assert session.state is EngineState.BUSY
    engines.latest.go()
    qtbot.waitUntil(lambda: len(engines.requests) == 3)
    assert isinstance(watcher.answer(first)[-1], RunFinished)
    wait_paused(qtbot, engines)
    engines.latest.go()
    wait_answered(qtbot, watcher, second)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert watcher.types(second) == watcher.types(first)


def test_equal_requests_are_told_apart(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts |= {RunWorkload: hold, ReadMemory: read_memory}
    start(qtbot, session)
    run, first, second = run_request(), ReadMemory(device="cpu"), ReadMemory(device="cpu")
    for request in (run, first, second):
        session.submit(request)
    wait_paused(qtbot, engines)
    session.stop(second)
    assert watcher.answer(second) == [EngineEnded(exit_code=None, stopped=True)]
    engines.latest.go()
    qtbot.waitUntil(lambda: watcher.types(first) == [MemoryRead])
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert len(watcher.answer(second)) == 1


def test_the_current_device_follows_the_engine(
    qtbot: QtBot, session: EngineSession, engines: Engines
) -> None:
    engines.scripts[UseDevice] = [DeviceUsed(cuda_index=1, name="NVIDIA GeForce RTX 3060")]
    start(qtbot, session)
    assert session.current_device is None
    session.submit(UseDevice(cuda_index=1))
    qtbot.waitUntil(lambda: session.current_device == 1)
    session.restart()
    assert session.current_device is None


# ── stopping ──────────────────────────────────────────────────────────────────────────────────


def test_a_stop_between_calls_keeps_the_engine(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    start(qtbot, session)
    request = run_request()
    session.submit(request)
    wait_paused(qtbot, engines)
    session.stop(request)
    assert session.state is EngineState.STOPPING
    session.stop(request)
    wait_answered(qtbot, watcher, request)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert watcher.types(request)[-1] is RunStopped
    assert engines.latest.calls == ["stop"]
    assert len(engines.made) == 1
    assert watcher.descriptions == 1


def test_a_stop_in_a_long_call_abandons_the_engine_and_starts_a_fresh_one(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold_deaf
    start(qtbot, session)
    request = run_request()
    session.submit(request)
    wait_paused(qtbot, engines)
    session.stop(request)
    wait_answered(qtbot, watcher, request)
    assert watcher.answer(request)[-1] == EngineEnded(exit_code=None, stopped=True)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert engines.latest.calls == ["stop", "abandon"]
    assert watcher.descriptions == 2
    assert watcher.losses == []


def test_a_stop_for_another_request_stops_nothing(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    start(qtbot, session)
    request = run_request()
    waiting, stranger = run_request("2"), run_request("2")
    session.submit(request)
    session.submit(waiting)
    wait_paused(qtbot, engines)
    session.stop(run_request())
    session.stop(stranger)
    assert session.state is EngineState.BUSY
    assert watcher.answer(stranger) == []
    engines.latest.go()
    wait_answered(qtbot, watcher, request)
    assert watcher.types(request)[-1] is RunFinished
    wait_paused(qtbot, engines)
    engines.latest.go()
    wait_answered(qtbot, watcher, waiting)


# ── dying ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (CRASH, "crashed (signal 11)"),
        (EngineEnded(exit_code=-9), "run out of memory"),
        (
            RunFailed(
                run_id="1",
                failure=Failure(FailureKind.CUDA_ERROR, "An illegal memory access.", fatal=True),
            ),
            "illegal memory access",
        ),
    ],
)
def test_a_death_is_told_and_a_fresh_engine_comes(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    ending: Event,
    said: str,
) -> None:
    engines.scripts[RunWorkload] = [started(run_request()), ending]
    start(qtbot, session)
    request, waiting = run_request(), ReadMemory(device="cpu")
    engines.scripts[ReadMemory] = read_memory
    session.submit(request)
    session.submit(waiting)
    qtbot.waitUntil(lambda: watcher.types(waiting) == [MemoryRead])
    assert watcher.answer(request)[-1] == ending
    assert len(watcher.losses) == 1
    assert said in watcher.losses[0]
    assert watcher.descriptions == 2
    # The fresh engine is described before it serves what waited.
    assert [type(request) for request in engines.requests] == [
        DescribeEngine, RunWorkload, DescribeEngine, ReadMemory,
    ]  # fmt: skip


def test_a_failure_that_is_not_fatal_keeps_the_engine(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    failure = Failure(FailureKind.TOO_LARGE, "Too large.", traceback_text="Traceback …")
    engines.scripts[RunWorkload] = [RunFailed(run_id="1", failure=failure)]
    start(qtbot, session)
    request = run_request()
    session.submit(request)
    wait_answered(qtbot, watcher, request)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert (watcher.losses, watcher.descriptions) == ([], 1)


def test_three_deaths_in_a_row_end_the_tries_until_someone_asks(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[DescribeEngine] = [EngineEnded(exit_code=1)]
    waiting = run_request("waiting")
    session.submit(waiting)
    session.start()
    qtbot.waitUntil(lambda: session.state is EngineState.FAILED)
    assert engines.requests == [DescribeEngine()] * 3
    assert len(watcher.losses) == 3
    (refusal,) = watcher.answer(waiting)
    assert isinstance(refusal, RequestFailed)
    assert "exit code 1" in refusal.failure.message

    late = run_request("late")
    session.submit(late)
    assert watcher.answer(late) == []
    qtbot.waitUntil(lambda: watcher.types(late) == [RequestFailed])
    assert session.state is EngineState.FAILED

    session.restart()
    qtbot.waitUntil(lambda: session.state is EngineState.FAILED)
    assert len(watcher.losses) == 6

    engines.scripts[DescribeEngine] = [described()]
    start(qtbot, session)
    again = run_request("again")
    session.submit(again)
    wait_answered(qtbot, watcher, again)
    assert watcher.types(again)[-1] is RunFinished


def test_deaths_with_work_between_them_never_end_the_tries(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = [CRASH]
    start(qtbot, session)
    for index in range(4):
        session.submit(run_request(str(index)))
    qtbot.waitUntil(lambda: len(watcher.losses) == 4)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)


@pytest.mark.parametrize("had_one_before", [False, True])
def test_an_engine_that_cannot_say_what_it_is_is_none(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    had_one_before: bool,
) -> None:
    if had_one_before:
        start(qtbot, session)
    failure = Failure(FailureKind.ENGINE_ENDED, "The engine could not be started: no such file.")
    engines.scripts[DescribeEngine] = [RequestFailed(failure=failure)]
    if had_one_before:
        session.restart()
    else:
        session.start()
    qtbot.waitUntil(lambda: session.state is EngineState.FAILED)
    assert session.description is None
    assert watcher.losses == [failure.message]


def test_an_exception_in_an_engine_is_an_answer(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Event]:
        yield started(request)
        raise ZeroDivisionError

    engines.scripts[RunWorkload] = broken
    start(qtbot, session)
    request = run_request()
    with caplog.at_level(logging.CRITICAL):
        session.submit(request)
        wait_answered(qtbot, watcher, request)
    failure = watcher.answer(request)[-1].failure
    assert failure.message == "ZeroDivisionError"
    qtbot.waitUntil(lambda: session.state is EngineState.READY)


# ── restarting ────────────────────────────────────────────────────────────────────────────────

ONE_CARD = EngineEnvironment(visible_devices="GPU-1")
OTHER_CARD = EngineEnvironment(visible_devices="GPU-2")


def test_a_restart_while_idle_brings_an_engine_with_the_other_environment(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    start(qtbot, session)
    session.restart(ONE_CARD)
    assert session.state is EngineState.STARTING
    assert session.description is None
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    old, new = engines.made
    assert old.calls == ["close"]
    assert new.environment == session.environment == ONE_CARD
    assert new.requests == [DescribeEngine()]
    assert watcher.losses == []
    session.restart()
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert engines.latest.environment == ONE_CARD


@pytest.mark.parametrize("script", [hold, hold_deaf])
def test_a_restart_while_busy_ends_the_run_and_keeps_what_waits(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines, script: Any
) -> None:
    engines.scripts |= {RunWorkload: script, ReadMemory: read_memory}
    start(qtbot, session)
    request, waiting = run_request(), ReadMemory(device="cpu")
    session.submit(request)
    session.submit(waiting)
    wait_paused(qtbot, engines)
    session.restart(ONE_CARD)
    qtbot.waitUntil(lambda: watcher.types(waiting) == [MemoryRead])
    old, new = engines.made
    assert watcher.answer(request)[-1] == EngineEnded(exit_code=None, stopped=True)
    assert old.calls[-1] == "close"
    assert new.requests == [DescribeEngine(), waiting]
    assert watcher.losses == []


def test_a_restart_twice_while_busy_takes_the_last_environment(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    start(qtbot, session)
    session.submit(run_request())
    wait_paused(qtbot, engines)
    session.restart(ONE_CARD)
    session.restart(OTHER_CARD)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert engines.latest.environment == session.environment == OTHER_CARD
    assert engines.latest.requests == [DescribeEngine()]
    assert watcher.descriptions == 2
    assert engines.made[0].calls[-1] == "close"


class SlowToBegin(ScriptedEngine):
    """Hears of its end before it begins its run, and forgets it."""

    def run(self, request: Request) -> Iterator[Event]:
        if isinstance(request, RunWorkload):
            with self.wake:
                assert self.wake.wait_for(lambda: "abandon" in self.calls, 20)
        yield from super().run(request)


def test_a_restart_just_after_a_run_was_begun_still_ends_that_run(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold_deaf
    engines.kind = SlowToBegin
    session.restart()  # one of that kind
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    old, request = engines.latest, run_request()
    session.submit(request)
    session.restart(ONE_CARD)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert old.calls == ["abandon", "abandon", "close"]
    assert watcher.answer(request)[-1] == EngineEnded(exit_code=None, stopped=True)


class Killed(ScriptedEngine):
    """Takes its own end for a crash."""

    def run(self, request: Request) -> Iterator[Event]:
        for event in super().run(request):
            yield EngineEnded(exit_code=-9) if isinstance(event, EngineEnded) else event


def test_the_death_of_an_engine_sent_away_is_no_loss(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold_deaf
    engines.kind = Killed
    session.restart()
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    request = run_request()
    session.submit(request)
    wait_paused(qtbot, engines)
    session.restart()
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert watcher.answer(request)[-1] == EngineEnded(exit_code=-9, stopped=True)
    assert watcher.losses == []


# ── closing ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("script", [hold, hold_deaf])
def test_closing_while_busy_leaves_no_thread(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines, script: Any
) -> None:
    engines.scripts[RunWorkload] = script
    start(qtbot, session)
    request, waiting = run_request("1"), run_request("2")
    session.submit(request)
    session.submit(waiting)
    wait_paused(qtbot, engines)
    told = len(watcher.answers)
    session.close()
    assert engines.latest.calls == ["close"]
    assert not any(worker.isRunning() for worker in session.findChildren(Worker))
    session.close()
    session.submit(run_request("3"))
    session.start()
    session.restart()
    QCoreApplication.processEvents()
    assert len(watcher.answers) == told
    assert len(engines.made) == 1
    assert engines.requests == [DescribeEngine(), request]


def test_closing_before_the_start_is_fine(session: EngineSession, engines: Engines) -> None:
    session.close()
    session.start()
    assert engines.requests == []
