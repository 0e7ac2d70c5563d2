"""The time left of a plan, against the truth of an invented PC with a clock of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.plan import Plan, RunCosts, time_left_s
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.run_messages import SQUARE
from tests.fakes.run_answers import batch, finished, started

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunWorkload

SIZES = (256, 512, 1024, 2048)
BUDGET_S, FIXED_S, CALLS = 2.0, 0.5, 8.0
SLOWEST_S = {"cpu": 0.5, "cuda:0": 0.02}  # a call at the largest size


class Pc:
    """A PC whose calls grow with a power of the size; its clock advances with each run."""

    def __init__(self, growth: float, calls: float = CALLS) -> None:
        self._growth, self._calls = growth, calls
        self._size_text = SQUARE if growth >= 2 else "{size} rows"
        self.clock_s = 0.0

    def call_s(self, request: RunWorkload) -> float:
        return SLOWEST_S[request.device] * (request.size / SIZES[-1]) ** self._growth

    def run(self, request: RunWorkload) -> Run:
        call_s = self.call_s(request)
        elapsed_s = BUDGET_S + FIXED_S + self._calls * call_s
        run = Run(request)
        run.apply(started(request, size_text=self._size_text))
        run.apply(batch(request, (call_s,) * 20, spent_s=BUDGET_S))
        run.apply(finished(request, (call_s,) * 20, elapsed_s=elapsed_s))
        self.clock_s += elapsed_s
        return run


def plan(*devices: str, sizes: tuple[int, ...] = SIZES) -> list[RunWorkload]:
    return Plan(
        workload="matmul", sizes=sizes, dtypes=("float32",), devices=devices, budget_s=BUDGET_S
    ).requests()


@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cuda:0")])
@pytest.mark.parametrize("growth", [0.0, 1.0, 2.0, 3.0])
def test_the_time_left_holds_within_a_factor_after_the_first_run(
    growth: float, devices: tuple[str, ...]
) -> None:
    pc, requests = Pc(growth), plan(*devices)
    begun: list[Run] = []
    received: list[tuple[float, float]] = []
    for number, request in enumerate(requests):
        begun.append(pc.run(request))
        received.append((pc.clock_s, time_left_s(begun, requests[number + 1 :])))
    for at_s, left_s in received[:-1]:
        truth_s = pc.clock_s - at_s
        assert truth_s / 1.5 <= left_s <= 1.5 * truth_s, (at_s, left_s, truth_s)
    assert received[-1][1] == 0.0


def test_a_plan_that_ran_before_is_known_before_its_first_run() -> None:
    pc, requests = Pc(3.0, calls=40.0), plan("cpu")
    earlier = [pc.run(request) for request in requests]
    assert time_left_s([], requests, earlier=earlier) == pytest.approx(pc.clock_s)
    assert time_left_s([], requests) < pc.clock_s / 1.5  # nothing is known then


def test_two_sizes_report_how_the_third_grows() -> None:
    pc, requests = Pc(3.0, calls=40.0), plan("cpu")
    costs = RunCosts([pc.run(request) for request in requests[1:3]])
    truth_s = FIXED_S + 40.0 * pc.call_s(requests[3])
    assert costs.beyond_s(requests[3]) == pytest.approx(truth_s, rel=0.01)


def test_other_work_teaches_nothing_and_another_device_something() -> None:
    pc, (request,) = Pc(2.0), plan("cpu", sizes=(512,))
    costs = RunCosts([pc.run(request)])
    other = msgspec.structs.replace(request, workload="elementwise")
    assert costs.beyond_s(other) is None
    card = msgspec.structs.replace(request, device="cuda:0")
    other_s = costs.beyond_s(card)
    assert other_s is not None
    assert FIXED_S <= other_s <= FIXED_S + CALLS * pc.call_s(request)


def test_a_run_that_stops_early_takes_less_than_its_budget() -> None:
    (request,) = plan("cpu", sizes=(512,))
    run = Run(request)
    run.apply(started(request))
    run.apply(batch(request, (0.001,) * 20, spent_s=0.2))
    run.apply(finished(request, (0.001,) * 20, elapsed_s=0.7))
    assert time_left_s([], [request], earlier=[run]) == pytest.approx(0.7)


@pytest.mark.parametrize(("first_s", "second_s"), [(1.0, 1.0), (2.0, 1.0)])
def test_times_that_do_not_grow_are_no_trouble(first_s: float, second_s: float) -> None:
    requests, runs = plan("cpu"), []
    for request, call_s in zip(requests, (first_s, second_s), strict=False):
        run = Run(request)
        run.apply(started(request))
        run.apply(finished(request, (call_s,) * 20, elapsed_s=3.0))
        runs.append(run)
    assert RunCosts(runs).beyond_s(requests[-1]) == pytest.approx(1.0)
