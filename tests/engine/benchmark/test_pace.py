from __future__ import annotations

import threading

import pytest

from gpu_studio.engine.benchmark import timing
from gpu_studio.engine.benchmark.timing import LINE_PERIOD_S, RESTING_LINE_PERIOD_S, Pace


class Clock:
    """Stands for the clock on the wall, and for everything that waits by it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.rests_s: list[float] = []

    def perf_counter(self) -> float:
        return self.now_s

    def wait(self, timeout_s: float) -> bool:
        self.rests_s.append(timeout_s)
        self.now_s += timeout_s
        return False


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing, "time", clock)
    return clock


@pytest.mark.parametrize(
    ("rest_s", "period_s"), [(0.0, LINE_PERIOD_S), (0.04, RESTING_LINE_PERIOD_S)]
)
def test_a_line_is_due_a_period_after_it_began(clock: Clock, rest_s: float, period_s: float):
    pace = Pace(rest_s, clock)
    clock.now_s += 0.99 * period_s
    assert not pace.is_due()
    clock.now_s += 0.02 * period_s
    assert pace.is_due()
    pace.begin_line()
    assert not pace.is_due()


def test_only_a_paced_run_rests(clock: Clock):
    assert not Pace(0.0, clock).rest()
    assert clock.rests_s == []
    assert Pace(0.04, clock).rest()
    assert clock.rests_s == [0.04]


def test_a_stop_ends_a_rest():
    stop = threading.Event()
    stop.set()
    Pace(3600.0, stop).rest()


@pytest.mark.parametrize(
    ("rest_s", "batch_s", "untimed"),
    [(0.04, 0.002, True), (0.04, 0.05, False), (0.0, 0.002, False)],
)
def test_a_short_batch_finds_its_pace_untimed(rest_s: float, batch_s: float, untimed: bool):
    assert Pace(rest_s, threading.Event()).needs_untimed(batch_s) is untimed
