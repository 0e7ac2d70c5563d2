"""The runs of a plan, one after the other."""

from typing import Any

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark.plan import Sweep
from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.run_queue import WorkState
from gpu_studio.model.studio import Studio
from tests.fakes.descriptions import described, described_with_cuda, elementwise
from tests.fakes.pc import gt_1030, gt_1030_card, rtx_3060_card, two_cards
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Engines
from tests.model.benchmark.plans import (
    FATAL,
    TOO_LARGE,
    at,
    held,
    hold_the_last,
    plan,
    states,
    wait_over,
    wait_paused,
)


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


@pytest.mark.parametrize("deaf", [False, True])
def test_a_stop_ends_the_plan_and_keeps_the_samples(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio, deaf: bool
) -> None:
    if deaf:
        ready_studio.session._patience.wait_ms = 1
    engines.scripts[RunWorkload] = held(deaf=deaf)
    benchmark.start(plan(64, 128, 256))
    wait_paused(qtbot, engines, benchmark)
    benchmark.stop()
    assert (benchmark.state, benchmark.sentence) == (WorkState.STOPPING, "Stopping…")
    benchmark.stop()
    wait_over(qtbot, benchmark)
    (run,) = benchmark.runs
    assert run.state is RunState.STOPPED
    assert len(run.series) == 8
    assert benchmark.notice.sentence.startswith("Stopped: 0 of 3 runs finished.")
    assert benchmark.notice.tone is Tone.PLAIN
    assert (benchmark.results, benchmark.progress) == ([], 1.0)


def test_a_refusal_is_a_row_and_the_plan_goes_on(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = at(
        128, lambda request: RunFailed(run_id=request.run_id, failure=TOO_LARGE)
    )
    benchmark.start(plan(64, 128, 256))
    wait_over(qtbot, benchmark)
    assert states(benchmark) == [RunState.FINISHED, RunState.FAILED, RunState.FINISHED]
    assert benchmark.runs[1].failure == TOO_LARGE
    assert benchmark.notice.sentence.startswith("Done: 2 of 3 runs finished. 1 could not run")
    assert benchmark.notice.tone is Tone.FAILURE


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (EngineEnded(exit_code=-11), "PyTorch crashed (signal 11)"),
        (lambda request: RunFailed(run_id=request.run_id, failure=FATAL), "illegal memory access"),
        (RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, "No engine.")), "No engine."),
    ],
)
def test_the_end_of_the_engine_ends_the_plan_and_keeps_the_results(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio,
    ending: Any, sentence: str,
) -> None:  # fmt: skip
    engines.scripts[RunWorkload] = at(128, ending)
    benchmark.start(plan(64, 128, 256))
    wait_over(qtbot, benchmark)
    assert states(benchmark) == [RunState.FINISHED, RunState.FAILED]
    assert len(benchmark.runs[1].series) == 3
    assert sentence in benchmark.notice.sentence
    assert "kept. Press Run" in benchmark.notice.sentence
    assert benchmark.notice.tone is Tone.FAILURE
    # and Run goes on with the new engine
    qtbot.waitUntil(lambda: ready_studio.session.state.is_idle)
    benchmark.start(plan(256))
    assert benchmark.notice.sentence == ""
    wait_over(qtbot, benchmark)
    assert states(benchmark)[-1] is RunState.FINISHED


def test_a_fresh_engine_asked_for_elsewhere_ends_the_plan(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio
) -> None:
    engines.scripts[RunWorkload] = held()
    benchmark.start(plan(64, 128))
    wait_paused(qtbot, engines, benchmark)
    ready_studio.session.restart()
    wait_over(qtbot, benchmark)
    assert "started anew" in benchmark.notice.sentence
    assert "0 of 2 runs finished. Press Run" in benchmark.notice.sentence
    assert states(benchmark) == [RunState.STOPPED]
    qtbot.waitUntil(lambda: ready_studio.session.state.is_idle)


def test_a_run_that_cannot_begin_is_reported_in_its_workloads_sizes(
    qtbot: QtBot, engines: Engines, request: pytest.FixtureRequest
) -> None:
    pictures = msgspec.structs.replace(elementwise(), size_text="{size} pictures")
    engines.scripts[DescribeEngine] = [described(workloads=(pictures,))]
    failed = RunFailed(run_id="run-1", failure=Failure(FailureKind.BAD_REQUEST, "No."))
    engines.scripts[RunWorkload] = [failed]
    benchmark: Benchmark = request.getfixturevalue("benchmark")
    benchmark.start(plan(8))
    wait_over(qtbot, benchmark)
    assert benchmark.runs[0].size_label.split() == ["8", "pictures"]


FIRST, SECOND = gt_1030_card().identity, rtx_3060_card().identity


@pytest.fixture
def measured(qtbot: QtBot, with_cuda: Engines, engines: Engines, benchmark: Benchmark) -> Benchmark:
    """A benchmark with a run on the CPU and on each of two cards."""
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    benchmark.start(plan(64, devices=("cpu", "cuda:0", "cuda:1")))
    wait_over(qtbot, benchmark)
    assert [run.card for run in benchmark.runs] == ["cpu", FIRST, SECOND]
    return benchmark


def see(qtbot: QtBot, studio: Studio, engines: Engines, visible: str | None) -> None:
    """Start an engine that sees some cards, and wait until it is there."""
    count = 2 if visible is None else 1
    engines.scripts[DescribeEngine] = [
        described_with_cuda(device_count=count, visible_devices=visible)
    ]
    with qtbot.waitSignal(studio.session.engine_described):
        studio.session.restart(EngineEnvironment(visible_devices=visible))


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_run_follows_its_card_and_never_stands_among_anothers(
    qtbot: QtBot, ready_studio: Studio, engines: Engines, measured: Benchmark
) -> None:
    see(qtbot, ready_studio, engines, SECOND)
    assert [(run.request.device, run.card) for run in measured.runs] == [
        ("cpu", "cpu"), ("cuda:0", SECOND),
    ]  # fmt: skip
    assert [result.device for result in measured.results] == ["cpu", "cuda:0"]
    assert "History" in measured.notice.sentence
    see(qtbot, ready_studio, engines, None)
    assert [run.request.device for run in measured.runs] == ["cpu", "cuda:1"]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_color_is_the_cards_in_any_number_and_at_the_next_start(
    qtbot: QtBot, ready_studio: Studio, engines: Engines, measured: Benchmark
) -> None:
    board = ready_studio.board
    assert (board.colors["cuda:0"], board.colors["cuda:1"]) == (0, 1)
    see(qtbot, ready_studio, engines, SECOND)
    assert (board.colors["cuda:0"], board.colors[SECOND], board.colors[FIRST]) == (1, 1, 0)
    assert ready_studio.settings.choices.cards == (FIRST, SECOND)
