from collections.abc import Iterator
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.engine_session import EngineSession, EngineState
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine
from tests.model.session_watcher import (
    Watcher,
    hold,
    hold_deaf,
    read_memory,
    run_request,
    start,
    wait_paused,
)

ONE_CARD = EngineEnvironment(visible_devices="GPU-1")


def test_a_restart_while_idle_brings_an_engine_with_the_other_environment(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    start(qtbot, session)
    session.restart(ONE_CARD)
    assert session.state is EngineState.STARTING
    assert session.description is None
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    old, new = engines.made
    assert old.is_closed
    assert not old.was_abandoned
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
    assert old.is_closed
    assert new.requests == [DescribeEngine(), waiting]
    assert watcher.losses == []


def test_an_engine_has_ended_before_the_next_one_is_asked(
    qtbot: QtBot, session: EngineSession, engines: Engines
) -> None:
    order: list[str] = []

    class Noting(ScriptedEngine):
        def events(self) -> Iterator[Event]:
            order.append("begins")
            yield from super().events()
            order.append("ends")

    engines.kind = Noting
    start(qtbot, session)
    for _ in range(2):
        session.restart()
        qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert order == ["begins", "ends"] * 2 + ["begins"]


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
    assert watcher.answer(request)[-1] == EngineEnded(exit_code=None, stopped=True)
    assert watcher.losses == []


@pytest.mark.parametrize("is_reading", [False, True], ids=["idle", "while it reads the memory"])
def test_a_released_engine_ends_and_none_starts_before_the_restart(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines, is_reading: bool
) -> None:
    start(qtbot, session)
    if is_reading:
        engines.scripts[ReadMemory] = [Pause()]
        reading = session.submit(ReadMemory(device="cpu"))
        wait_paused(qtbot, engines)
    ending = session.release()
    assert ending is not None
    reply = session.submit(run_request())
    with qtbot.waitSignal(ending.finished):
        pass
    if is_reading:
        qtbot.waitUntil(lambda: reading.is_finished)
    assert session.state is EngineState.ABSENT
    assert session.description is None
    assert "waits until" in session.what_is_missing
    (old,) = engines.made
    assert old.is_closed
    assert session.release() is None
    session.restart()
    qtbot.waitUntil(lambda: reply.is_finished and session.state is EngineState.READY)
    assert len(engines.made) == 2
    assert engines.latest.requests[0] == DescribeEngine()
    assert watcher.losses == []


@pytest.mark.parametrize("script", [hold, hold_deaf])
def test_an_engine_ends_in_the_middle_of_its_work_and_none_starts_before_the_restart(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines, script: Any
) -> None:
    engines.scripts[RunWorkload] = script
    start(qtbot, session)
    reply = session.submit(run_request())
    wait_paused(qtbot, engines)
    ending = session.end()
    assert ending is not None
    assert session.state is EngineState.ABSENT
    assert session.end() is None
    with qtbot.waitSignal(ending.finished):
        pass
    qtbot.waitUntil(lambda: reply.is_finished)
    assert reply.last == EngineEnded(exit_code=None, stopped=True)
    assert len(engines.made) == 1
    assert engines.latest.was_abandoned
    assert engines.latest.is_closed
    start(qtbot, session)
    assert len(engines.made) == 2
    assert watcher.losses == []


# ── an engine that only works ─────────────────────────────────────────────────────────────────────


@pytest.fixture
def plain(qapp: object, engines: Engines) -> Iterator[EngineSession]:
    """Return a session whose engine starts with its first request, without a description."""
    session = EngineSession(engines, describes=False)
    session.start()
    yield session
    session.close()


def test_an_engine_without_a_description_starts_with_its_first_request(
    qtbot: QtBot, plain: EngineSession, engines: Engines
) -> None:
    assert plain.state is EngineState.READY
    assert engines.made == []
    reply = plain.submit(run_request())
    qtbot.waitUntil(lambda: reply.is_finished)
    assert engines.requests == [reply.request]
    assert plain.is_free


class Hung(ScriptedEngine):
    """Hears nothing before the end of the test, as a driver that hangs."""

    def abandon(self) -> None:
        self.was_abandoned = True


@pytest.mark.parametrize("describes", [False, True])
def test_an_engine_that_hangs_after_a_stop_is_left_behind(
    qtbot: QtBot, engines: Engines, describes: bool
) -> None:
    engines.kind = Hung
    engines.scripts[RunWorkload] = hold_deaf
    session = EngineSession(engines, describes=describes, stop_patience_ms=1)
    session.start()
    reply = session.submit(run_request())
    wait_paused(qtbot, engines)
    session.stop()
    hung = engines.latest
    qtbot.waitUntil(lambda: reply.is_finished)
    assert reply.last == EngineEnded(exit_code=None, stopped=True)
    assert hung.was_abandoned
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert (hung is not engines.latest) is describes
    hung.go()
    session.close()
