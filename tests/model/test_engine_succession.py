"""Engines one after another, as the session has them."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QDeadlineTimer

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import Heartbeat
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.engine_succession import EngineEvent, EngineSuccession
from tests.fakes.scripted_engine import Engines, ScriptedEngine
from tests.model.session_watcher import run_request

ONE_CARD = EngineEnvironment(visible_devices="GPU-1")


@pytest.fixture
def succession(engines: Engines) -> EngineSuccession:
    return EngineSuccession(engines, EngineEnvironment())


def test_no_engine_is_made_before_it_is_read(
    succession: EngineSuccession, engines: Engines
) -> None:
    assert succession.renew(ONE_CARD) is None
    assert engines.made == []
    succession.listening()
    (engine,) = engines.made
    assert succession.present is engine
    assert engine.environment == succession.environment == ONE_CARD
    succession.listening()
    assert engines.made == [engine], "it lives until it is retired"


def test_its_events_name_their_engine_and_end_with_none(
    succession: EngineSuccession, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = [Heartbeat()]
    listen = succession.listening()
    engine = engines.latest
    engine.send(run_request())
    engine._requests.put(None)
    assert list(listen()) == [EngineEvent(engine, Heartbeat()), EngineEvent(engine, None)]


def test_an_engine_has_ended_before_the_next_one_is_read(
    succession: EngineSuccession, engines: Engines
) -> None:
    first_listening = succession.listening()
    first = engines.latest
    order: list[str] = []

    def read_first() -> None:
        order.extend("first ended" for result in first_listening() if result.event is None)

    reading = threading.Thread(target=read_first)
    reading.start()
    assert succession.renew() is first
    assert succession.retired is first
    listen = succession.listening()
    second = engines.latest
    assert succession.retired is None
    second.close()
    order.extend("second read" for _ in listen())
    reading.join()
    assert first.calls == ["close"]
    assert sorted(order) == order == ["first ended", "second read"]


def test_the_engine_between_two_renewals_never_was(
    succession: EngineSuccession, engines: Engines
) -> None:
    succession.listening()
    first = engines.latest
    assert succession.renew(ONE_CARD) is first
    assert succession.renew() is first
    assert engines.made == [first]
    assert succession.environment == ONE_CARD


def test_a_close_ends_the_retired_and_the_present_one(
    succession: EngineSuccession, engines: Engines
) -> None:
    list_of_first = succession.listening()
    first = engines.latest
    first._requests.put(None)
    list(list_of_first())
    succession.renew()
    succession.present = second = ScriptedEngine({}, EngineEnvironment())
    succession.close(QDeadlineTimer(1500))
    assert (first.calls, second.calls) == (["close"], ["close"])
