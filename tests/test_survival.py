"""Engines' real processes that are killed and held, under the window's conversation with them.

The children speak from a plan, without PyTorch: how a process ends is the same for both.
"""

import threading
from collections.abc import Iterator

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.engine import client
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.model.engine_session import EngineSession, EngineState
from gpu_studio.model.worker import Worker
from tests.model.session_watcher import run_request
from tests.patience import limit


@pytest.fixture
def soon_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take an engine for silent after three seconds: a living child is never so long silent."""
    limit(monkeypatch, engine_silence_ms=3000)


@pytest.fixture
def session(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineSession]:
    monkeypatch.setattr(client, "_MODULE", "tests.engine.scripted_child")
    monkeypatch.setenv("CHILD_PLAN", "beat")
    session = EngineSession(ProcessEngine)
    yield session
    session.close()
    session.deleteLater()


def start(qtbot: QtBot, session: EngineSession) -> psutil.Process:
    session.start()
    return ready(qtbot, session)


def ready(qtbot: QtBot, session: EngineSession) -> psutil.Process:
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert session.description is not None
    return psutil.Process(session.description.pid)


def test_an_engine_killed_while_idle_is_replaced_at_once(
    qtbot: QtBot, session: EngineSession
) -> None:
    child = start(qtbot, session)
    with qtbot.waitSignal(session.engine_described), qtbot.waitSignal(session.engine_lost) as lost:
        child.kill()
    assert "PyTorch" in lost.args[0]
    assert ready(qtbot, session).pid != child.pid


@pytest.mark.usefixtures("soon_silent")
def test_an_engine_that_is_held_is_silent_until_it_is_let_go(
    qtbot: QtBot, session: EngineSession
) -> None:
    child = start(qtbot, session)
    with qtbot.waitSignal(session.silence_changed) as changed:
        child.suspend()
    assert changed.args == [True]
    with qtbot.waitSignal(session.silence_changed) as changed:
        child.resume()
    assert changed.args == [False]
    assert ready(qtbot, session).pid == child.pid


def test_a_held_engine_is_ended_by_a_stop_and_by_a_fresh_one(
    qtbot: QtBot, session: EngineSession
) -> None:
    session._patience.wait_ms = 1
    child = start(qtbot, session)
    reply = session.submit(run_request())
    with qtbot.waitSignal(reply.event_received):
        pass
    child.suspend()
    session.stop()
    with qtbot.waitSignal(reply.finished):
        pass
    assert isinstance(reply.last, EngineEnded)
    assert reply.last.stopped
    fresh = ready(qtbot, session)
    fresh.suspend()
    session.restart()
    last = ready(qtbot, session)
    assert len({child.pid, fresh.pid, last.pid}) == 3
    psutil.wait_procs([child, fresh], timeout=60)
    assert not child.is_running()
    assert not fresh.is_running()


def test_five_deaths_leave_nothing_behind(qtbot: QtBot, session: EngineSession) -> None:
    child = start(qtbot, session)
    this, counts = psutil.Process(), []
    for _ in range(5):
        reply = session.submit(run_request())
        with qtbot.waitSignal(reply.event_received):
            pass
        with qtbot.waitSignal(reply.finished):
            child.kill()
        child = ready(qtbot, session)
        qtbot.waitUntil(lambda: len(session.findChildren(Worker)) == 1)
        handles = this.num_handles() if psutil.WINDOWS else this.num_fds()
        processes = [one.pid for one in this.children(recursive=True)]
        counts.append((handles, len(processes), threading.active_count(), this.num_threads()))
    # Fewer is no leak: a thread of an earlier test may end meanwhile.
    assert all(last <= first for first, last in zip(counts[0], counts[-1], strict=True))
