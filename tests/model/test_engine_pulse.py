"""The signs of life of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.engine_messages import Heartbeat
from gpu_studio.model.engine_pulse import _MOST_MISSED, EnginePulse
from tests.fakes.descriptions import described

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


@pytest.fixture
def pulse(qtbot: QtBot) -> EnginePulse:
    return EnginePulse()


def miss(pulse: EnginePulse, count: int) -> None:
    for _ in range(count):
        pulse._timer.timeout.emit()


def test_an_engine_that_has_never_sent_a_heartbeat_misses_none(pulse: EnginePulse) -> None:
    pulse.feel(described())
    pulse.start()
    assert not pulse._timer.isActive()
    pulse.feel(Heartbeat())
    assert not pulse._timer.isActive(), "it may still be starting"
    pulse.start()
    assert pulse._timer.isActive()


def test_a_silence_begins_with_the_tenth_missed_heartbeat_and_ends_with_any_event(
    qtbot: QtBot, pulse: EnginePulse
) -> None:
    pulse.feel(Heartbeat())
    miss(pulse, _MOST_MISSED - 1)
    pulse.feel(described())
    with qtbot.assertNotEmitted(pulse.silence_changed):
        miss(pulse, _MOST_MISSED - 1)
    with qtbot.waitSignal(pulse.silence_changed) as changed:
        miss(pulse, 1)
    assert changed.args == [True]
    assert pulse.is_silent
    with qtbot.waitSignal(pulse.silence_changed) as changed:
        pulse.feel(Heartbeat())
    assert changed.args == [False]


def test_another_engine_is_not_silent_and_has_not_beaten(pulse: EnginePulse) -> None:
    pulse.feel(Heartbeat())
    pulse.start()
    miss(pulse, _MOST_MISSED)
    pulse.reset()
    assert not pulse.is_silent
    pulse.start()
    assert not pulse._timer.isActive()
