"""Plans, what the engine answers to them, and how they are waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import (
    RunInTurns,
    RunPhaseChanged,
    RunsEnded,
    RunWorkload,
)
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.benchmark.run import RunState
    from gpu_studio.model.benchmark.benchmark import Benchmark


FATAL = Failure(FailureKind.CUDA_ERROR, "An illegal memory access.", fatal=True)

TOO_LARGE = Failure(FailureKind.TOO_LARGE, "It needs 64 GiB, 3 GiB are free.")


def plan(*sizes: int, devices: tuple[str, ...] = ("cpu",), budget_s: float = 2.0) -> Plan:
    return Plan(
        workload="elementwise",
        sizes=sizes or (512,),
        dtypes=("float32",),
        devices=devices,
        settings={"budget_s": budget_s},
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


def held_in_turns(rounds: int, spread: float = 0.0, other_processes: bool | None = None) -> Any:
    """Return a script of runs in turns that pauses after some rounds."""

    def script(_engine: ScriptedEngine, request: RunInTurns) -> Iterator[Any]:
        samples = {run.run_id: samples_of(run, 8) for run in request.runs}
        order, ended_s = list(request.runs), 0.0
        for run in order:
            yield started(run)
        for number in range(1, rounds + 1):
            for run in order:
                varied = (s * (1 + spread * (at % 2)) for at, s in enumerate(samples[run.run_id]))
                ended_s += 0.5
                yield batch(
                    run, tuple(varied), 0.1 * number, ended_s=ended_s, round_number=number,
                    other_processes=other_processes,
                )  # fmt: skip
            order.reverse()
        yield Pause()
        for run in order:
            yield finished(run, samples[run.run_id])
        yield RunsEnded()

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


def hold_the_last(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    if (request.device, request.size) == ("cuda:0", 1024):
        yield started(request)
        yield Pause()
    yield from run_events(request)
