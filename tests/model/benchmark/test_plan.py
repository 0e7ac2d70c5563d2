"""The runs of a plan, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.benchmark.plan import Sweep
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Notice
from gpu_studio.model.run_queue import WorkState
from tests.fakes.pc import gt_1030
from tests.model.benchmark.plans import held, hold_the_last, plan, wait_over, wait_paused

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio
    from tests.fakes.scripted_engine import Engines


def test_a_plan_runs_every_combination_with_devices_side_by_side(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    benchmark.start(plan(64, 512, devices=("cpu", "cuda:0")))
    assert benchmark.state is WorkState.RUNNING
    wait_over(qtbot, benchmark)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [(request.size, request.device) for request in asked] == [
        (64, "cpu"), (64, "cuda:0"), (512, "cpu"), (512, "cuda:0"),
    ]  # fmt: skip
    assert [run.request for run in benchmark.runs] == asked
    assert len(benchmark.results) == 4
    assert benchmark.notice == Notice(benchmark.notice.sentence)
    assert "4 of 4 runs" in benchmark.notice.sentence
    assert (benchmark.progress, benchmark.sentence, benchmark.running) == (1.0, "", None)


def test_a_second_plan_adds_to_the_first(qtbot: QtBot, benchmark: Benchmark) -> None:
    for _ in range(2):
        benchmark.start(plan(64))
        wait_over(qtbot, benchmark)
    assert len(benchmark.results) == 2
    assert len({run.request.run_id for run in benchmark.runs}) == 2
    assert "1 of 1 run " in benchmark.notice.sentence


def test_another_start_while_one_runs_is_not_heard(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = held()
    benchmark.start(plan(64))
    wait_paused(qtbot, engines, benchmark)
    benchmark.start(plan(128))
    benchmark.clear()
    engines.latest.go()
    wait_over(qtbot, benchmark)
    assert [run.request.size for run in benchmark.runs] == [64]


def test_an_empty_plan_is_nothing(benchmark: Benchmark) -> None:
    benchmark.start(plan(devices=()))
    assert (benchmark.state, benchmark.runs) == (WorkState.IDLE, [])


def test_events_of_other_requests_are_not_taken(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio
) -> None:
    engines.scripts[RunWorkload] = held()
    benchmark.start(plan(64))
    wait_paused(qtbot, engines, benchmark)
    run = benchmark.running
    assert run is not None
    stranger = RunWorkload(
        run_id=run.request.run_id, workload="elementwise", device="cpu", size=64, dtype="float32"
    )
    other = ready_studio.session.submit(stranger)
    engines.latest.go()
    wait_over(qtbot, benchmark)
    taken = len(run.series)
    engines.latest.go()
    qtbot.waitUntil(lambda: other.is_finished)
    assert len(run.series) == taken


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_sweep_that_was_stopped_asks_for_nothing_more(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold_the_last
    benchmark.start(Sweep(plan(64, 1024, devices=("cpu", "cuda:0"))))
    qtbot.waitUntil(lambda: len(benchmark.runs) == 4 and engines.latest.paused.is_set())
    benchmark.stop()
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)
    assert len(benchmark.runs) == 4
