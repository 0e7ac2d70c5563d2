from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, Heartbeat
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Action, Tone
from gpu_studio.model import awake_timer
from gpu_studio.model.engine_session import EngineSession, EngineState, Reply
from gpu_studio.model.studio import Studio
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.run_answers import run_events, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine
from tests.model.session_watcher import run_request

SENTENCE = "PyTorch is not responding."


def beating(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    yield started(request)
    yield Heartbeat()
    yield Pause(deaf=True)
    yield Heartbeat()
    yield Pause(deaf=True)
    yield from run_events(request)


def run(qtbot: QtBot, studio: Studio, engines: Engines) -> Reply:
    reply = studio.session.submit(run_request())
    qtbot.waitUntil(engines.latest.paused.is_set)
    qtbot.waitUntil(lambda: studio.session._silence.is_active)
    return reply


def miss(session: EngineSession, count: int) -> None:
    for _ in range(count):
        session._silence._timer.timeout.emit()


@pytest.fixture(autouse=True)
def only_missed_ticks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no tick come by itself: an hour has ten of them."""
    monkeypatch.setattr(awake_timer, "_LONGEST_TICK_MS", 3_600_000)


@pytest.fixture
def silent(qtbot: QtBot, ready_studio: Studio, engines: Engines) -> Reply:
    engines.scripts[RunWorkload] = beating
    reply = run(qtbot, ready_studio, engines)
    miss(ready_studio.session, 10)
    return reply


def test_ten_missed_heartbeats_are_a_silence_and_nine_are_none(
    qtbot: QtBot, ready_studio: Studio, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = beating
    session, headlines = ready_studio.session, ready_studio.headlines
    reply = run(qtbot, ready_studio, engines)
    miss(session, 9)
    assert not session.is_silent
    assert headlines.headline is None
    miss(session, 1)
    assert session.is_silent
    headline = headlines.headline
    assert headline is not None
    assert (headline.sentence, headline.tone) == (SENTENCE, Tone.FAILURE)
    assert (headline.action, headline.other_action) == (Action.RESTART_ENGINE, Action.STOP_RUN)
    assert "driver" not in headline.detail, "the driver was not asked"
    engines.latest.go()
    qtbot.waitUntil(lambda: not session.is_silent)
    assert headlines.headline is None
    miss(session, 9)
    assert not session.is_silent, "counted from the last sign of life"
    engines.latest.go()
    qtbot.waitUntil(lambda: reply.is_finished)


def test_the_driver_is_named_where_the_engine_uses_it(
    qtbot: QtBot, studio: Studio, engines: Engines
) -> None:
    engines.scripts |= {RunWorkload: beating, DescribeEngine: [described_with_cuda()]}
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    reply = run(qtbot, studio, engines)
    miss(studio.session, 10)
    assert "driver" in studio.headlines.headline.detail
    for _ in range(2):
        engines.latest.go()
    qtbot.waitUntil(lambda: reply.is_finished)


@pytest.mark.usefixtures("impatient")
def test_a_silent_engine_can_be_stopped(
    qtbot: QtBot, ready_studio: Studio, engines: Engines, silent: Reply
) -> None:
    ready_studio.headlines.act_otherwise()
    qtbot.waitUntil(lambda: ready_studio.session.state is EngineState.READY)
    assert silent.last == EngineEnded(exit_code=None, stopped=True)
    assert engines.made[0].was_abandoned
    assert ready_studio.headlines.headline is None


def test_a_silent_engine_can_be_replaced(
    qtbot: QtBot, ready_studio: Studio, engines: Engines, silent: Reply
) -> None:
    ready_studio.headlines.act()
    assert not ready_studio.session.is_silent
    qtbot.waitUntil(lambda: ready_studio.session.state is EngineState.READY)
    assert silent.last == EngineEnded(exit_code=None, stopped=True)
    assert len(engines.made) == 2
    assert ready_studio.headlines.headline is None


def loading(_engine: ScriptedEngine, _request: DescribeEngine) -> Iterator[Any]:
    yield Heartbeat()
    yield Pause()
    yield described_with_cuda()


def test_only_an_engine_that_has_started_and_sends_heartbeats_can_miss_some(
    qtbot: QtBot, ready_studio: Studio, engines: Engines
) -> None:
    session = ready_studio.session
    assert not session._silence.is_active, "it has sent none"
    engines.scripts |= {RunWorkload: beating, DescribeEngine: loading}
    run(qtbot, ready_studio, engines)
    session.restart()
    assert not session._silence.is_active, "another engine"
    qtbot.waitUntil(lambda: len(engines.made) == 2 and engines.latest.paused.is_set())
    QCoreApplication.processEvents()
    assert not session._silence.is_active, "it may still be loading PyTorch"
    engines.latest.go()
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
