"""The clock of a race that is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.race.race import RaceClock

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


@pytest.fixture
def clock(qtbot: QtBot) -> RaceClock:
    return RaceClock()


def tick(clock: RaceClock) -> None:
    clock._timer.timeout.emit()


def test_another_time_is_announced(qtbot: QtBot, clock: RaceClock) -> None:
    with qtbot.waitSignal(clock.changed):
        clock.set(1.5)
    assert clock.now_s == 1.5


@pytest.mark.parametrize(("last_s", "step_s"), [(0.2, 0.05), (12.0, 0.05), (24.0, 0.1)])
def test_a_replay_has_the_speed_of_the_race_but_takes_twelve_seconds_at_most(
    clock: RaceClock, last_s: float, step_s: float
) -> None:
    clock.set(3.0)
    clock.replay(last_s, rest_s=3.0)
    assert (clock.now_s, clock.is_replaying) == (0.0, True)
    tick(clock)
    tick(clock)
    assert clock.now_s == pytest.approx(2 * step_s)


def test_a_replay_ends_at_the_last_time_and_shows_the_rest(qtbot: QtBot, clock: RaceClock) -> None:
    clock.replay(0.1, rest_s=0.07)
    tick(clock)
    assert clock.is_replaying
    with qtbot.waitSignals([clock.replay_changed, clock.changed]):
        tick(clock)
    assert (clock.now_s, clock.is_replaying) == (0.07, False)
    with qtbot.assertNotEmitted(clock.changed):
        clock.end_replay()
