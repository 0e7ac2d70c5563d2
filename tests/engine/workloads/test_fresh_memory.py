"""A CPU call with new memory beside the same call with kept memory."""

from __future__ import annotations

import pytest
import torch

from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine.workloads import call, fresh_memory
from gpu_studio.engine.workloads.fresh_memory import fresh_memory_s
from tests.engine.answers import ask, run_request

LARGE = torch.zeros(fresh_memory._SMALLEST_BYTES // 4)


class Clock:
    """A clock on which a call takes longer with new memory."""

    def __init__(self, kept_s: float, fresh_s: float) -> None:
        self._kept_s, self._fresh_s = kept_s, fresh_s
        self._is_fresh = False
        self.now_s = 0.0
        self.given_back = 0

    def perf_counter(self) -> float:
        return self.now_s

    def malloc_trim(self, _pad: int) -> int:
        self._is_fresh = True
        self.given_back += 1
        return 1

    def work(self) -> torch.Tensor:
        self.now_s += self._fresh_s if self._is_fresh else self._kept_s
        self._is_fresh = False
        return LARGE


def measure(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> float | None:
    monkeypatch.setattr(fresh_memory, "time", clock)
    monkeypatch.setattr(fresh_memory, "glibc_version", lambda: (2, 39))
    monkeypatch.setattr(fresh_memory.ctypes, "CDLL", lambda _: clock)
    return fresh_memory_s(clock.work)


def test_new_memory_is_timed_call_by_call(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(1e-3, 6e-3)
    assert measure(clock, monkeypatch) == pytest.approx(6e-3)
    assert clock.given_back == 9


def test_a_difference_below_a_fifth_does_not_count(monkeypatch: pytest.MonkeyPatch):
    assert measure(Clock(1e-3, 1.19e-3), monkeypatch) is None


def test_a_long_call_is_not_repeated(monkeypatch: pytest.MonkeyPatch):
    clock = Clock(0.2, 1.0)
    assert measure(clock, monkeypatch) is None
    assert clock.given_back == 0


def test_small_results_are_always_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fresh_memory.ctypes, "CDLL", pytest.fail)
    assert fresh_memory_s(lambda: LARGE[:-1].clone()) is None
    assert fresh_memory_s(lambda: None) is None


def test_another_c_library_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fresh_memory, "glibc_version", lambda: None)
    monkeypatch.setattr(fresh_memory.ctypes, "CDLL", pytest.fail)
    assert fresh_memory_s(lambda: LARGE) is None


def test_a_run_on_the_cpu_has_the_time_with_new_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(call, "fresh_memory_s", lambda _: 0.25)
    last = ask(run_request(workload="elementwise", size=16))[-1]
    assert isinstance(last, RunFinished)
    assert last.fresh_memory_s == 0.25
