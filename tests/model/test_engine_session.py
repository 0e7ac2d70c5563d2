"""One engine at a time: its start, the queue of requests, stopping, and the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QCoreApplication

from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.placement_messages import DeviceUsed, UseDevice
from gpu_studio.core.messages.run_messages import RunFinished, RunStopped, RunWorkload
from gpu_studio.model import engine_session
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.worker import Worker
from tests.fakes.descriptions import described
from tests.fakes.scripted_engine import ScriptedEngine
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
from tests.patience import PATIENCE_MS

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.engine_session import EngineSession
    from tests.fakes.scripted_engine import Engines


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


def test_equal_requests_are_told_apart(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts |= {RunWorkload: hold, ReadMemory: read_memory}
    start(qtbot, session)
    run, first, second = run_request(), ReadMemory(device="cpu"), ReadMemory(device="cpu")
    for request in (run, first, second):
        session.submit(request)
    wait_paused(qtbot, engines)
    watcher.stop(second)
    assert watcher.answer(second) == [EngineEnded(exit_code=None, stopped=True)]
    engines.latest.go()
    qtbot.waitUntil(lambda: watcher.types(first) == [MemoryRead])
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert len(watcher.answer(second)) == 1


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
    assert engines.latest.calls == ["stop"]
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
    assert engines.latest.calls == ["stop", "abandon"]
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
    assert engines.latest.calls == ["close"]
    assert not any(worker.isRunning() for worker in session.findChildren(Worker))
    session.close()
    session.submit(run_request("3"))
    session.start()
    session.restart()
    QCoreApplication.processEvents()
    assert len(watcher.answers) == result
    assert len(engines.made) == 1
    assert engines.requests == [DescribeEngine(), request]


class HeldEngine(ScriptedEngine):
    """One whose call does not end with a close."""

    def close(self) -> None:
        pass


def test_closing_waits_once_for_a_call_that_does_not_end(
    qtbot: QtBot, session: EngineSession, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines.kind, engines.scripts[RunWorkload] = HeldEngine, hold_deaf
    session.restart()
    start(qtbot, session)
    session.submit(run_request())
    wait_paused(qtbot, engines)
    waits = []
    with monkeypatch.context() as patch:
        patch.setattr(engine_session, "_LONGEST_END_MS", 300)
        patch.setattr(engine_session, "_LONGEST_TAIL_MS", 1)
        patch.setattr(Worker, "wait", lambda _, longest_ms: waits.append(longest_ms))
        session.close()
    assert waits == [1]
    ScriptedEngine.close(engines.latest)
    assert all(worker.wait(PATIENCE_MS) for worker in session.findChildren(Worker))


def test_closing_before_the_start_is_fine(session: EngineSession, engines: Engines) -> None:
    session.close()
    session.start()
    assert engines.requests == []
