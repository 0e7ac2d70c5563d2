from __future__ import annotations

import pytest
import torch

from gpu_studio.core.protocol import RunFinished
from gpu_studio.engine.benchmark import naive
from gpu_studio.engine.benchmark.naive import NaiveStopwatch, explain, time_naively
from gpu_studio.engine.workloads.call import FunctionCall
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.elementwise import Elementwise
from tests.engine.answers import ask, run_request

CPU = Case(device=torch.device("cpu"), size=8)
CARD = Case(device=torch.device("cuda", 0), size=8)


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_studio.engine.benchmark.timing.WARM_UP_S", 0.02)


def test_the_operands_and_the_first_call_are_inside_and_the_wait_is_not(
    monkeypatch: pytest.MonkeyPatch,
):
    now_s = [0.0]

    def passing(seconds: float) -> None:
        now_s[0] += seconds

    class Noting(FunctionCall):
        closed = 0

        def close(self) -> None:
            Noting.closed += 1

    class Slow:
        def prepare(self, case: Case) -> FunctionCall:
            passing(1.0)
            return Noting(lambda: passing(0.25))

    monkeypatch.setattr(naive.time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(naive, "synchronize", lambda device: passing(4.0))
    assert time_naively(Slow(), CARD) == NaiveStopwatch(1.0, 1.25, 5.25)
    assert Noting.closed == 1


def test_the_difference_is_told_from_what_was_measured():
    told = explain(NaiveStopwatch(1e-3, 1.5e-3, 9e-3), 3e-3, CARD)
    assert (told.printed_s, told.finished_s) == (1.5e-3, 9e-3)
    assert told.sentence.replace("\u202f", " ") == (
        "A script without care would print 1.50 ms, 0.50 × the median of 3.00 ms: 1.00 ms of it "
        "made the operands, 500 µs are the first call, without warm-up and without waiting for "
        "the card, which was done 7.50 ms later."
    )


def test_the_cpu_is_not_waited_for():
    told = explain(NaiveStopwatch(1e-3, 2e-3, 2e-3), 1e-4, CPU)
    assert told.sentence.replace("\u202f", " ") == (
        "A script without care would print 2.00 ms, 20.0 × the median of 100 µs: 1.00 ms of it "
        "made the operands, 1.00 ms are the first call, without warm-up."
    )


def test_a_number_that_is_right_by_chance_is_said_to_be():
    told = explain(NaiveStopwatch(1e-4, 1.05e-3, 1.05e-3), 1e-3, CPU)
    assert "which happens to be right here" in told.sentence


def test_a_run_has_it_on_request_and_before_anything_has_warmed_up(
    monkeypatch: pytest.MonkeyPatch,
):
    log = []
    for name in ("prepare", "verify"):
        monkeypatch.setattr(Elementwise, name, noting(log, name))
    result = ask(run_request(naive=True))[-1]
    assert isinstance(result, RunFinished)
    assert result.naive is not None
    assert result.naive.printed_s <= result.naive.finished_s
    assert log == ["prepare", "verify", "prepare"]
    assert ask(run_request())[-1].naive is None


def noting(log: list[str], name: str) -> object:
    method = getattr(Elementwise, name)

    def noted(workload: Elementwise, case: Case) -> object:
        log.append(name)
        return method(workload, case)

    return noted
