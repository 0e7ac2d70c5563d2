from __future__ import annotations

import itertools

import pytest

from gpu_studio.core.benchmark.plan import Plan, time_left_s
from gpu_studio.core.benchmark.runs import Run
from gpu_studio.core.protocol import RunPhaseChanged, RunWorkload
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started


def on_the_cpu(*sizes: int) -> list[RunWorkload]:
    plan = Plan(workload="matmul", sizes=sizes, dtypes=("float32",), devices=("cpu",), budget_s=2.0)
    return plan.requests()


def test_devices_alternate_at_each_size() -> None:
    plan = Plan(
        workload="matmul",
        sizes=(512, 1024),
        dtypes=("float32", "float16"),
        devices=("cpu", "cuda:0"),
        budget_s=1.5,
    )
    requests = plan.requests(first_number=7)
    assert [(r.size, r.dtype, r.device) for r in requests] == list(
        itertools.product([512, 1024], ["float32", "float16"], ["cpu", "cuda:0"])
    )
    assert [r.run_id for r in requests] == [f"run-{number}" for number in range(7, 15)]
    assert {(r.workload, r.budget_s) for r in requests} == {("matmul", 1.5)}


def test_the_time_left_counts_what_runs_and_what_waits() -> None:
    first, *waiting = on_the_cpu(64, 128, 256)
    usual_s = time_left_s([], [first]) - 2.0
    assert usual_s > 0
    run = Run(first)
    assert time_left_s([run], waiting) == pytest.approx(3 * (2.0 + usual_s))
    run.apply(started(first))
    run.apply(RunPhaseChanged(run_id=first.run_id, phase="timing"))
    assert time_left_s([run], waiting) == pytest.approx(2.0 + 2 * (2.0 + usual_s))
    run.apply(batch(first, (1.0,), spent_s=1.5))
    assert time_left_s([run], waiting) == pytest.approx(0.5 + 2 * (2.0 + usual_s))
    run.apply(batch(first, (1.0,), spent_s=9.0))
    assert time_left_s([run], waiting) == pytest.approx(2 * (2.0 + usual_s))


def test_a_finished_run_teaches_what_the_others_cost() -> None:
    first, *waiting = on_the_cpu(64, 128)
    run = Run(first)
    for event in run_events(first, elapsed_s=3.25):
        run.apply(event)
    assert time_left_s([run], waiting) == pytest.approx(2.0 + 1.25)
    assert time_left_s([run], []) == 0.0


def test_a_run_with_no_overhead_told_teaches_nothing() -> None:
    first, *waiting = on_the_cpu(64, 128)
    run = Run(first)
    run.apply(started(first))
    run.apply(finished(first, samples_of(first), elapsed_s=0.0))
    assert time_left_s([run], waiting) == time_left_s([], waiting)
