import logging
from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.placement_messages import DeviceUsed, UseDevice
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunStopped, RunWorkload
from gpu_studio.model.engine_session import EngineSession, EngineState
from gpu_studio.model.worker import Worker
from tests.fakes.descriptions import described
from tests.fakes.run_answers import started
from tests.fakes.scripted_engine import Engines, ScriptedEngine
from tests.model.session_watcher import (
    Watcher,
    hold,
    hold_deaf,
    read_memory,
    run_request,
    start,
    wait_answered,
    wait_paused,
)

# ── starting and the queue ────────────────────────────────────────────────────────────────────────


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


def test_the_current_device_follows_the_engine(
    qtbot: QtBot, session: EngineSession, engines: Engines
) -> None:
    engines.scripts[UseDevice] = [DeviceUsed(device="cuda:1", name="NVIDIA GeForce RTX 3060")]
    start(qtbot, session)
    assert session.current_device is None
    session.submit(UseDevice(device="cuda:1"))
    qtbot.waitUntil(lambda: session.current_device == "cuda:1")
    session.restart()
    assert session.current_device is None


# ── stopping ──────────────────────────────────────────────────────────────────────────────────────


def test_a_stop_between_calls_keeps_the_engine(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    start(qtbot, session)
    request = run_request()
    session.submit(request)
    wait_paused(qtbot, engines)
    watcher.stop(request)
    assert session.state is EngineState.STOPPING
    watcher.stop(request)
    wait_answered(qtbot, watcher, request)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert watcher.types(request)[-1] is RunStopped
    assert engines.latest.was_stopped
    assert not engines.latest.was_abandoned
    assert len(engines.made) == 1
    assert watcher.descriptions == 1


@pytest.mark.usefixtures("impatient")
def test_a_stop_in_a_long_call_abandons_the_engine_and_starts_a_fresh_one(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold_deaf
    start(qtbot, session)
    request = run_request()
    session.submit(request)
    wait_paused(qtbot, engines)
    watcher.stop(request)
    wait_answered(qtbot, watcher, request)
    assert watcher.answer(request)[-1] == EngineEnded(exit_code=None, stopped=True)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert engines.made[0].was_abandoned
    assert engines.made[0].is_closed
    assert watcher.descriptions == 2
    assert watcher.losses == []


# ── closing ───────────────────────────────────────────────────────────────────────────────────────


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
    result = len(watcher.answers)
    session.close()
    assert engines.latest.is_closed
    assert not any(worker.isRunning() for worker in session.findChildren(Worker))
    session.close()
    session.submit(run_request("3"))
    session.start()
    session.restart()
    QCoreApplication.processEvents()
    assert len(watcher.answers) == result
    assert len(engines.made) == 1
    assert engines.requests == [DescribeEngine(), request]


# ── deaths ───────────────────────────────────────────────────────────────────────────────────────

CRASH = EngineEnded(exit_code=-11)


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (CRASH, "crashed (signal 11)"),
        (EngineEnded(exit_code=-9), "ran out of memory"),
        (
            RunFailed(
                run_id="1",
                failure=Failure(FailureKind.CUDA_ERROR, "An illegal memory access.", fatal=True),
            ),
            "illegal memory access",
        ),
    ],
)
def test_a_death_is_reported_and_a_fresh_engine_comes(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    ending: Event,
    sentence: str,
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
    assert sentence in watcher.losses[0]
    assert watcher.descriptions == 2
    # The new engine is described before it serves what waited.
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
