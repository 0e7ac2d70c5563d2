from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from PySide6.QtCore import QObject, QTimer, Slot

from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.benchmark.runs import Run, RunState
from gpu_studio.core.benchmark.sweep import Sweep
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    EngineEnded,
    MemoryRead,
    ReadMemory,
    RequestFailed,
    RunFailed,
    RunPhaseChanged,
    RunWorkload,
)
from gpu_studio.model.benchmark import REST_S, Benchmark, PlanState
from tests.fakes.descriptions import described, elementwise
from tests.fakes.pc import gt_1030
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio

FATAL = Failure(FailureKind.CUDA_ERROR, "An illegal memory access.", fatal=True)
TOO_LARGE = Failure(FailureKind.TOO_LARGE, "It needs 64 GiB, 3 GiB are free.")


class Watcher(QObject):
    def __init__(self, benchmark: Benchmark) -> None:
        super().__init__()
        self.changes: list[Run] = []
        benchmark.run_changed.connect(self._changed)

    @Slot(object)
    def _changed(self, run: Run) -> None:
        self.changes.append(run)


@pytest.fixture
def benchmark(ready_studio: Studio) -> Benchmark:
    return Benchmark(ready_studio, ready_studio)


def plan(*sizes: int, devices: tuple[str, ...] = ("cpu",), budget_s: float = 2.0) -> Plan:
    return Plan(
        workload="elementwise",
        sizes=sizes or (512,),
        dtypes=("float32",),
        devices=devices,
        budget_s=budget_s,
    )


def at(size: int, ending: Any) -> Any:
    """Return a script that ends one size in its own way, and the others well."""

    def script(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        if request.size != size:
            yield from run_events(request)
            return
        yield started(request)
        yield batch(request, (0.001, 0.002, 0.003), spent_s=0.1)
        yield ending(request) if callable(ending) else ending

    return script


def held(deaf: bool = False, expected_call_s: float | None = None) -> Any:
    """Return a script that pauses in the middle of the timing."""

    def script(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        yield started(request)
        yield RunPhaseChanged(
            run_id=request.run_id, phase="timing", expected_call_s=expected_call_s
        )
        yield batch(request, samples_of(request, 8), spent_s=0.5)
        yield Pause(deaf=deaf)
        yield finished(request, samples_of(request, 8))

    return script


def wait_over(qtbot: QtBot, benchmark: Benchmark) -> None:
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)


def wait_paused(qtbot: QtBot, engines: Engines, benchmark: Benchmark) -> None:
    def timed() -> bool:
        run = benchmark.running
        return engines.latest.paused.is_set() and run is not None and len(run.series) > 0

    qtbot.waitUntil(timed)


def states(benchmark: Benchmark) -> list[RunState]:
    return [run.state for run in benchmark.runs]


def test_a_plan_runs_every_combination_with_devices_side_by_side(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    benchmark.start(plan(64, 512, devices=("cpu", "cuda:0")))
    assert benchmark.state is PlanState.RUNNING
    wait_over(qtbot, benchmark)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [(request.size, request.device) for request in asked] == [
        (64, "cpu"), (64, "cuda:0"), (512, "cpu"), (512, "cuda:0"),
    ]  # fmt: skip
    assert [run.request for run in benchmark.runs] == asked
    assert len(benchmark.results) == 4
    assert (benchmark.notice.text, benchmark.notice.bad) == ("Done: 4 of 4 runs finished.", False)
    assert (benchmark.progress, benchmark.sentence, benchmark.running) == (1.0, "", None)


def test_a_second_plan_adds_to_the_first(qtbot: QtBot, benchmark: Benchmark) -> None:
    for _ in range(2):
        benchmark.start(plan(64))
        wait_over(qtbot, benchmark)
    assert len(benchmark.results) == 2
    assert len({run.request.run_id for run in benchmark.runs}) == 2
    assert benchmark.notice.text == "Done: 1 of 1 run finished."


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
    assert (benchmark.state, benchmark.runs) == (PlanState.IDLE, [])


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_what_runs_now_is_told(qtbot: QtBot, benchmark: Benchmark, engines: Engines) -> None:
    engines.scripts[RunWorkload] = held(expected_call_s=0.1)
    benchmark.start(plan(512, 1024, devices=("cuda:0",)))
    assert "waiting for the engine" in benchmark.sentence
    wait_paused(qtbot, engines, benchmark)
    # 1.5 s of this run are left, and 2 s and a usual set-up of the other.
    assert benchmark.sentence.replace("\u202f", " ") == (
        "512 × 512 · float32 · GT 1030 · timing · about 4 s left"
    )
    assert benchmark.progress == pytest.approx(0.25 / 2)
    assert benchmark.warning == ""
    benchmark.stop()
    wait_over(qtbot, benchmark)


def test_minutes_are_told_as_minutes(qtbot: QtBot, benchmark: Benchmark, engines: Engines) -> None:
    engines.scripts[RunWorkload] = held()
    benchmark.start(plan(512, budget_s=100.0))
    wait_paused(qtbot, engines, benchmark)
    assert benchmark.sentence.endswith("about 2\u202fmin left")
    benchmark.stop()
    wait_over(qtbot, benchmark)


def test_a_long_call_is_announced(qtbot: QtBot, benchmark: Benchmark, engines: Engines) -> None:
    engines.scripts[RunWorkload] = held(expected_call_s=1.2)
    benchmark.start(plan(512))
    wait_paused(qtbot, engines, benchmark)
    assert benchmark.warning == (
        "One call takes about 1.20\u202fs; Stop will end the engine and start a fresh one."
    )
    benchmark.stop()
    wait_over(qtbot, benchmark)
    assert benchmark.warning == ""


@pytest.mark.parametrize("deaf", [False, True])
def test_a_stop_ends_the_plan_and_keeps_the_samples(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio, deaf: bool
) -> None:
    if deaf:
        ready_studio.session._patience.setInterval(1)
    engines.scripts[RunWorkload] = held(deaf=deaf)
    benchmark.start(plan(64, 128, 256))
    wait_paused(qtbot, engines, benchmark)
    benchmark.stop()
    assert (benchmark.state, benchmark.sentence) == (PlanState.STOPPING, "Stopping…")
    benchmark.stop()
    wait_over(qtbot, benchmark)
    (run,) = benchmark.runs
    assert run.state is RunState.STOPPED
    assert len(run.series) == 8
    assert benchmark.notice.text == "Stopped: 0 of 3 runs finished. What was measured is kept."
    assert not benchmark.notice.bad
    assert (benchmark.results, benchmark.progress) == ([], 1.0)


def test_a_stop_of_a_run_that_has_not_begun(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio
) -> None:
    engines.scripts[ReadMemory] = [Pause(), MemoryRead(device="cpu", taken_at_s=0.0)]
    ready_studio.session.submit(ReadMemory(device="cpu"))
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())
    benchmark.start(plan(64, 128))
    benchmark.stop()
    assert benchmark.state is PlanState.IDLE
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
    assert benchmark.notice.text == (
        "Done: 2 of 3 runs finished. 1 could not run; the table says why."
    )
    assert benchmark.notice.bad


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (EngineEnded(exit_code=-11), "The engine crashed (signal 11)"),
        (lambda request: RunFailed(run_id=request.run_id, failure=FATAL), "illegal memory access"),
        (RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, "No engine.")), "No engine."),
    ],
)
def test_the_end_of_the_engine_ends_the_plan_and_keeps_the_results(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, ready_studio: Studio,
    ending: Any, said: str,
) -> None:  # fmt: skip
    engines.scripts[RunWorkload] = at(128, ending)
    benchmark.start(plan(64, 128, 256))
    wait_over(qtbot, benchmark)
    assert states(benchmark) == [RunState.FINISHED, RunState.FAILED]
    assert len(benchmark.runs[1].series) == 3
    assert said in benchmark.notice.text
    assert benchmark.notice.text.endswith("What was measured is kept: press Run to go on.")
    assert benchmark.notice.bad
    # and Run goes on with the fresh engine
    qtbot.waitUntil(lambda: ready_studio.session.state.is_idle)
    benchmark.start(plan(256))
    assert benchmark.notice.text == ""
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
    assert benchmark.notice.text == (
        "A fresh engine was asked for: 0 of 2 runs finished. Press Run to go on."
    )
    assert states(benchmark) == [RunState.STOPPED]
    qtbot.waitUntil(lambda: ready_studio.session.state.is_idle)


def test_numbers_change_a_few_times_a_second_however_many_batches_come(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    def many(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        yield started(request)
        yield RunPhaseChanged(run_id=request.run_id, phase="timing")
        for index in range(500):
            yield batch(request, (0.001,), spent_s=index / 1000)
        yield Pause()
        yield finished(request, (0.001,))

    engines.scripts[RunWorkload] = many
    watcher = Watcher(benchmark)
    benchmark.start(plan(64))
    run = benchmark.running
    assert run is not None
    qtbot.waitUntil(lambda: len(run.series) == 500)
    # its start, its phase, and the timer's news: nothing for each batch
    assert len(watcher.changes) < 20
    count = len(watcher.changes)
    qtbot.waitUntil(lambda: len(watcher.changes) > count)
    engines.latest.go()
    wait_over(qtbot, benchmark)
    assert not any(timer.isActive() for timer in benchmark.findChildren(QTimer))


def test_what_a_run_hands_over_before_a_rest_is_told_at_once(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        assert request.rest_s == REST_S
        yield started(request)
        for index in range(5):
            yield batch(request, (0.001,), spent_s=index / 1000)
        yield finished(request, (0.001,))

    # As if each line came later than anybody changes text, and the timer never.
    monkeypatch.setattr("gpu_studio.model.benchmark._SOONEST_NEWS_MS", 0)
    engines.scripts[RunWorkload] = lines
    watcher = Watcher(benchmark)
    for timer in benchmark.findChildren(QTimer):
        timer.setInterval(3_600_000)
    monkeypatch.setattr("gpu_studio.model.benchmark._LATEST_NEWS_MS", 3_600_000)
    benchmark.start(plan(64))
    wait_over(qtbot, benchmark)
    # its start, its five lines and its end
    assert len(watcher.changes) == 7


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
    ready_studio.session.event_received.emit(stranger, batch(stranger, (9.0,), 1.0))
    assert len(run.series) == 8
    engines.latest.go()
    wait_over(qtbot, benchmark)


def test_clear_forgets_everything(qtbot: QtBot, benchmark: Benchmark) -> None:
    benchmark.start(plan(64))
    wait_over(qtbot, benchmark)
    with qtbot.waitSignal(benchmark.runs_cleared):
        benchmark.clear()
    assert (benchmark.runs, benchmark.results, benchmark.notice.text) == ([], [], "")
    assert benchmark.progress == 0.0


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_sweep_goes_on_where_the_curves_cross(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    grid = plan(64, 128, 256, 512, 1024, devices=("cpu", "cuda:0"))
    benchmark.start(Sweep(grid))
    qtbot.waitUntil(lambda: not benchmark.state.is_busy)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [request.size for request in asked[:10:2]] == [64, 128, 256, 512, 1024]
    finer = {request.size for request in asked[10:]}
    assert finer
    assert all(256 < size < 512 for size in finer)  # the invented card wins from 472 on
    assert len({request.run_id for request in asked}) == len(asked)
    assert benchmark.notice.text.startswith(f"Done: {len(asked)} of {len(asked)} runs finished")


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


def hold_the_last(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    if (request.device, request.size) == ("cuda:0", 1024):
        yield started(request)
        yield Pause()
    yield from run_events(request)


def test_a_run_that_cannot_begin_is_told_in_its_workloads_sizes(
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
