"""Engines one after another, and their signs of life."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QDeadlineTimer

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import Heartbeat
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.engine_slot import _MOST_MISSED, EngineEvent, EnginePulse, EngineSlot
from tests.fakes.descriptions import described
from tests.fakes.scripted_engine import Engines, ScriptedEngine
from tests.model.session_watcher import run_request

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

ONE_CARD = EngineEnvironment(visible_devices="GPU-1")


@pytest.fixture
def succession(engines: Engines) -> EngineSlot:
    return EngineSlot(engines, EngineEnvironment())


def test_no_engine_is_made_before_it_is_read(succession: EngineSlot, engines: Engines) -> None:
    assert succession.renew(ONE_CARD) is None
    assert engines.made == []
    succession.listening()
    (engine,) = engines.made
    assert succession.current is engine
    assert engine.environment == succession.environment == ONE_CARD
    succession.listening()
    assert engines.made == [engine], "it lives until it is previous"


def test_its_events_name_their_engine_and_end_with_none(
    succession: EngineSlot, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = [Heartbeat()]
    listen = succession.listening()
    engine = engines.latest
    engine.send(run_request())
    engine._requests.put(None)
    assert list(listen()) == [EngineEvent(engine, Heartbeat()), EngineEvent(engine, None)]


def test_an_engine_has_ended_before_the_next_one_is_read(
    succession: EngineSlot, engines: Engines
) -> None:
    first_listening = succession.listening()
    first = engines.latest
    order: list[str] = []

    def read_first() -> None:
        order.extend("first ended" for result in first_listening() if result.event is None)

    reading = threading.Thread(target=read_first)
    reading.start()
    assert succession.renew() is first
    assert succession.previous is first
    listen = succession.listening()
    second = engines.latest
    assert succession.previous is None
    second.close()
    order.extend("second read" for _ in listen())
    reading.join()
    assert first.calls == ["close"]
    assert sorted(order) == order == ["first ended", "second read"]


def test_the_engine_between_two_renewals_never_was(
    succession: EngineSlot, engines: Engines
) -> None:
    succession.listening()
    first = engines.latest
    assert succession.renew(ONE_CARD) is first
    assert succession.renew() is first
    assert engines.made == [first]
    assert succession.environment == ONE_CARD


def test_a_close_ends_the_retired_and_the_present_one(
    succession: EngineSlot, engines: Engines
) -> None:
    list_of_first = succession.listening()
    first = engines.latest
    first._requests.put(None)
    list(list_of_first())
    succession.renew()
    succession.current = second = ScriptedEngine({}, EngineEnvironment())
    succession.close(QDeadlineTimer(1500))
    assert (first.calls, second.calls) == (["close"], ["close"])


@pytest.fixture
def pulse(qtbot: QtBot) -> EnginePulse:
    return EnginePulse()


def miss(pulse: EnginePulse, count: int) -> None:
    for _ in range(count):
        pulse._timer.timeout.emit()


def test_an_engine_that_has_never_sent_a_heartbeat_misses_none(pulse: EnginePulse) -> None:
    pulse.note_event(described())
    pulse.start()
    assert not pulse._timer.isActive()
    pulse.note_event(Heartbeat())
    assert not pulse._timer.isActive(), "it may still be starting"
    pulse.start()
    assert pulse._timer.isActive()


def test_a_silence_begins_with_the_tenth_missed_heartbeat_and_ends_with_any_event(
    qtbot: QtBot, pulse: EnginePulse
) -> None:
    pulse.note_event(Heartbeat())
    miss(pulse, _MOST_MISSED - 1)
    pulse.note_event(described())
    with qtbot.assertNotEmitted(pulse.silence_changed):
        miss(pulse, _MOST_MISSED - 1)
    with qtbot.waitSignal(pulse.silence_changed) as changed:
        miss(pulse, 1)
    assert changed.args == [True]
    assert pulse.is_silent
    with qtbot.waitSignal(pulse.silence_changed) as changed:
        pulse.note_event(Heartbeat())
    assert changed.args == [False]


def test_another_engine_is_not_silent_and_has_not_beaten(pulse: EnginePulse) -> None:
    pulse.note_event(Heartbeat())
    pulse.start()
    miss(pulse, _MOST_MISSED)
    pulse.reset()
    assert not pulse.is_silent
    pulse.start()
    assert not pulse._timer.isActive()
