"""What ends a run or a plan before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.model.run_queue import WorkState
from tests.fakes.descriptions import described, elementwise
from tests.fakes.scripted_engine import Engines, Pause
from tests.model.benchmark.plans import (
    FATAL,
    TOO_LARGE,
    at,
    held,
    plan,
    states,
    wait_over,
    wait_paused,
)

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio


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


def test_a_stop_of_a_run_that_has_not_begun(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio
) -> None:
    engines.scripts[ReadMemory] = [Pause(), MemoryRead(device="cpu", taken_at_s=0.0)]
    ready_studio.session.submit(ReadMemory(device="cpu"))
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())
    benchmark.start(plan(64, 128))
    benchmark.stop()
    assert benchmark.state is WorkState.IDLE
    assert states(benchmark) == [RunState.STOPPED]
    engines.latest.go()
    qtbot.waitUntil(lambda: ready_studio.session.state.is_idle)
    assert not any(isinstance(request, RunWorkload) for request in engines.requests)


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
