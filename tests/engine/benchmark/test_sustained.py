"""The speed that lasts: a long load first, no rests, and a doubt while the samples still move."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpu_studio.core.benchmark import sustained
from gpu_studio.core.benchmark.sustained import unsteadiness
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.devices.devices import CardState
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine.benchmark import load, run
from gpu_studio.engine.benchmark.load import load_of
from gpu_studio.engine.sensor import CardWatch
from tests.engine.answers import ask, run_request

_TICK_S = time.get_clock_info("monotonic").resolution  # 16 ms on Windows


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sustained, "SUSTAINED_LOAD_S", 0.2)


def finished(**changes: object) -> RunFinished:
    (*_, result) = ask(run_request(budget_s=0.01, **changes))
    assert isinstance(result, RunFinished), result
    return result


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the rests of every run that is made."""
    asked: list[float] = []
    build = run.Pace.__init__

    def noted(pace: run.Pace, rest_s: float, stop: object) -> None:
        asked.append(rest_s)
        build(pace, rest_s, stop)

    monkeypatch.setattr(run.Pace, "__init__", noted)
    return asked


@pytest.fixture
def least_loads_s(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Return how long every run that is made warms up at least."""
    asked: list[float | None] = []
    warm_up = run.warm_up

    def noted(*args: Any, least_s: float | None, **kwargs: Any) -> float:
        asked.append(least_s)
        return warm_up(*args, least_s=least_s, **kwargs)

    monkeypatch.setattr(run, "warm_up", noted)
    return asked


def test_a_sustained_run_loads_long_times_long_and_never_rests(
    rests: list[float], least_loads_s: list[float | None]
):
    usual, lasting = finished(rest_s=0.04), finished(rest_s=0.04, sustained=True)
    assert set(rests[:-1]) == {0.04}
    assert rests[-1] == 0.0
    assert (usual.sustained, lasting.sustained) == (False, True)
    assert least_loads_s == [None, 0.2]
    assert lasting.warm_up_s >= 0.2 - _TICK_S
    assert lasting.timed_s >= 0.199
    assert "not steady" not in usual.doubts


@pytest.mark.parametrize(
    ("samples_s", "words"),
    [
        ([1.0] * 50 + [1.5] * 50, "50% slower"),
        ([1.5] * 50 + [1.0] * 50, "33% faster"),
        ([1.0, 1.03], "3% slower"),
        ([1.0], "one sample"),
    ],
)
def test_samples_that_still_move_are_in_doubt(samples_s: list[float], words: str):
    assert words in unsteadiness(samples_s)


def test_samples_that_stay_are_not():
    assert unsteadiness([1.0, 1.01, 1.0, 0.99] * 10) == ""


@pytest.mark.parametrize(
    ("clocks_mhz", "words"),
    [([1700.0] * 20 + [1500.0] * 20, "fell by 12%"), ([1500.0] * 20 + [1600.0] * 20, "rose by 7%")],
)
def test_a_clock_that_still_moves_is_in_doubt(clocks_mhz: list[float], words: str):
    assert words in unsteadiness([1.0] * 40, clocks_mhz)


@pytest.mark.parametrize("clocks_mhz", [(), [1500.0], [1500.0, 1510.0] * 9, [0.0, 0.0]])
def test_a_clock_that_stays_or_is_not_reported_is_not(clocks_mhz: list[float]):
    assert unsteadiness([1.0] * 40, clocks_mhz) == ""


def test_the_clock_is_that_of_the_timed_part():
    states = iter([CardState(sm_clock_mhz=900.0), CardState(sm_clock_mhz=1500.0), CardState()])
    watch = CardWatch(SimpleNamespace(read=lambda uuid: next(states)), "GPU-0")
    watch.clock_mhz()  # while it warms up
    watch.poll()
    watch.poll()
    assert watch.clocks_mhz == [1500.0]


def test_the_doubt_is_in_the_stamp(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sustained, "unsteadiness", lambda samples_s, clocks: "it still moves")
    assert "not steady" in stamp_of(finished(sustained=True)).words
    assert "not steady" not in stamp_of(finished()).words


def test_a_result_says_how_long_the_device_had_worked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load, "_loads", {})
    monkeypatch.setattr(load, "_LONGEST_PAUSE_S", 3600.0)
    first, second = finished(), finished()
    assert first.loaded_s >= first.warm_up_s
    assert second.loaded_s >= first.loaded_s + second.warm_up_s


def test_a_pause_ends_a_load_and_each_device_has_its_own(monkeypatch: pytest.MonkeyPatch):
    now_s = [10.0]
    monkeypatch.setattr(load, "_loads", {})
    monkeypatch.setattr(load, "time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    card, other = load_of(torch.device("cuda", 0)), load_of(torch.device("cuda", 1))
    assert load_of(torch.device("cuda", 0)) is card
    assert card.begin() == 10.0
    now_s[0] = 15.0
    card.end()
    now_s[0] = 15.9
    assert card.begin() == 10.0
    assert other.begin() == 15.9
    card.end()
    now_s[0] = 17.0
    assert card.begin() == 17.0
