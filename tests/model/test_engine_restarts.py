"""A new engine in place of the old one, with what waits and what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.engine_session import EngineState
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.model.engine_session import EngineSession


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
    old, new = engines.made
    assert "close" in old.calls
    assert new.requests == []
    assert session.release() is None
    session.restart()
    qtbot.waitUntil(lambda: reply.is_finished and session.state is EngineState.READY)
    assert engines.latest.requests[0] == DescribeEngine()
    assert new.requests == []
    assert watcher.losses == []
