from __future__ import annotations

import gc
import random
import threading
from typing import TYPE_CHECKING

import pytest

from gpu_studio.engine.benchmark import timing
from gpu_studio.engine.benchmark.timing import Pace, choose_calls, warm_up, warm_up_again
from gpu_studio.engine.stopwatch import CpuStopwatch

if TYPE_CHECKING:
    from collections.abc import Iterator

# The program's own; other tests shorten it.
_WARM_UP_S, _WARM_AGAIN_S = timing.WARM_UP_S, timing._WARM_AGAIN_S


@pytest.fixture(autouse=True)
def whole_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP_S", _WARM_UP_S)
    monkeypatch.setattr(timing, "_WARM_AGAIN_S", _WARM_AGAIN_S)


class Clock:
    """A wall clock that only moves when a call takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: round(self.now_s * 1e9))

    def call_taking(self, seconds: float) -> Call:
        return Call(self, seconds)


class Call:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self.seconds = seconds
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        self._clock.now_s += self.seconds
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def never() -> bool:
    return False


@pytest.mark.parametrize("call_s", [1e-7, 3e-6, 40e-6, 0.9e-3, 1.9e-3])
def test_a_batch_lasts_at_least_two_milliseconds(clock: Clock, call_s: float):
    calls = choose_calls(CpuStopwatch(), clock.call_taking(call_s), call_s, never)
    assert 2e-3 <= calls * call_s <= 6e-3


@pytest.mark.parametrize("call_s", [2e-3, 0.3])
def test_a_long_call_is_a_batch_and_is_not_made_to_find_that_out(clock: Clock, call_s: float):
    call = clock.call_taking(call_s)
    assert choose_calls(CpuStopwatch(), call, call_s, never) == 1
    assert call.count == 0


@pytest.fixture
def automatic() -> Iterator[None]:
    """Python's own collection, as a process of the engine has it."""
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


@pytest.mark.usefixtures("automatic")
def test_a_batch_is_timed_without_the_collector_and_as_a_whole(clock: Clock):
    call = clock.call_taking(0.5)
    seen: list[bool] = []

    def noting() -> None:
        seen.append(gc.isenabled())
        call()

    assert gc.isenabled()
    assert CpuStopwatch().time(noting, 4) == (pytest.approx(2.0), pytest.approx(2.0))
    assert seen == [False] * 4
    assert gc.isenabled()


def test_warm_up_lasts_three_tenths_of_a_second(clock: Clock):
    call_s = warm_up(clock.call_taking(0.01), 0.5, lambda: None, never)
    assert call_s == pytest.approx(0.01)
    assert clock.now_s == pytest.approx(0.3, abs=0.011)


def test_warm_up_waits_until_the_clock_of_the_card_is_steady(clock: Clock):
    readings = iter([300.0, 900.0, 1500.0, 1506.0, 1500.0])
    warm_up(clock.call_taking(0.01), 0.01, lambda: next(readings), never)
    assert next(readings, None) is None
    assert 0.69 <= clock.now_s <= 0.75  # 0.3 s, then a reading every 0.1 s


def test_warm_up_ends_for_a_clock_that_is_never_steady(clock: Clock):
    generator = random.Random(1)
    warm_up(clock.call_taking(0.01), 0.01, lambda: generator.uniform(300, 1500), never)
    assert 2.9 <= clock.now_s <= 3.1


def test_a_round_warms_up_until_the_clock_is_back(clock: Clock):
    readings = iter([600.0, 900.0, 1480.0])
    warm_up_again(clock.call_taking(0.04), 0.01, lambda: next(readings), 1500.0, never)
    assert next(readings, None) is None


def test_a_round_without_a_clock_warms_up_for_a_moment(clock: Clock):
    call = clock.call_taking(0.01)
    assert warm_up_again(call, 0.02, lambda: None, None, never) == pytest.approx(0.01)
    assert 0.05 <= clock.now_s <= 0.07


@pytest.mark.parametrize(
    ("rest_s", "batch_s", "untimed"),
    [(0.04, 0.002, True), (0.04, 0.05, False), (0.0, 0.002, False)],
)
def test_a_short_batch_finds_its_pace_untimed(rest_s: float, batch_s: float, untimed: bool):
    assert Pace(rest_s, threading.Event()).needs_untimed(batch_s) is untimed
