"""``gpu-studio bench``: the window's benchmark in a terminal, by the same engine and verdict."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import Interrupt, answers, describe
from gpu_studio.cli.screen import Progress, Table, note, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import (
    EngineEnded,
    RequestFailed,
    RunFailed,
    RunFinished,
    RunWorkload,
    encode,
)
from gpu_studio.core.runs import Run, RunState
from gpu_studio.core.trust import stamp_of
from gpu_studio.core.units import (
    format_duration,
    format_percent,
    format_rate,
    format_ratio,
    format_size,
)
from gpu_studio.core.verdict import speed_up, verdict
from gpu_studio.engine.client import ProcessEngine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gpu_studio.core.engine import Engine
    from gpu_studio.core.protocol import EngineDescribed, Event

_COLUMNS = (
    ("size", -11), ("dtype", 8), ("device", 7), ("median", -8), ("spread", -6), ("samples", -7),
    ("throughput", -12), ("speed-up", -8),
)  # fmt: skip


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for; ``devices`` is None for all there are."""

    workload: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...] | None
    budget_s: float


def run_bench(request: BenchRequest, log_path: Path, *, as_json: bool) -> int:
    """Run everything that was asked for; return the exit status.

    Raises:
        WrongUseError: there is no such workload, or it does not run in a dtype.
        StudioError: a device is not there, or the engine does not start.
    """
    progress = Progress()
    engine = ProcessEngine(EngineEnvironment(), log_path=log_path)
    try:
        with Interrupt().heard() as interrupt:
            progress.show("Starting PyTorch …")
            description = describe(engine, interrupt)
            progress.clear()
            runs = [Run(asked) for asked in _requests(request, description)]
            _perform(engine, runs, interrupt, progress, as_json=as_json)
    finally:
        progress.clear()
        engine.close()
    if not as_json:
        for sentence in verdicts(runs):
            say()
            say(sentence)
    if interrupt.is_asked:
        return INTERRUPTED
    return FAILED if any(run.state is RunState.FAILED for run in runs) else DONE


def list_workloads(log_path: Path, *, as_json: bool) -> int:
    """Print what can be run; return the exit status."""
    engine = ProcessEngine(EngineEnvironment(), log_path=log_path)
    try:
        with Interrupt().heard() as interrupt:
            workloads = describe(engine, interrupt).workloads
    finally:
        engine.close()
    if as_json:
        say_bytes(msgspec.json.encode({"workloads": workloads}) + b"\n")
        return DONE
    for workload in workloads:
        say(f"{workload.name:<14}{workload.title}: {workload.sentence}")
        say(f"{'':<14}{', '.join(workload.dtypes)}")
    return DONE


def addresses(description: EngineDescribed) -> list[str]:
    """Return the devices that an engine can use."""
    return ["cpu", *(f"cuda:{index}" for index in range(description.device_count))]


def verdicts(runs: Iterable[Run]) -> Iterator[str]:
    """Yield the sentence about each workload and dtype of the finished runs."""
    results = [run.result for run in runs if run.result is not None]
    kinds = dict.fromkeys((result.workload, result.dtype) for result in results)
    for kind in kinds:
        yield verdict([result for result in results if (result.workload, result.dtype) == kind])


def perform_in_table(
    engine: Engine, runs: Sequence[Run], interrupt: Interrupt, progress: Progress
) -> None:
    """Run one after the other and print each as a row when it is over."""
    _perform(engine, runs, interrupt, progress, as_json=False)


def _requests(request: BenchRequest, description: EngineDescribed) -> Iterator[RunWorkload]:
    """Yield the runs, the CPU's before a card's, so that the card's row has its speed-up."""
    workload = next((w for w in description.workloads if w.name == request.workload), None)
    if workload is None:
        names = ", ".join(workload.name for workload in description.workloads)
        raise WrongUseError(f"There is no workload “{request.workload[:40]}”; there are {names}.")
    for dtype in request.dtypes:
        if dtype not in workload.dtypes:
            raise WrongUseError(
                f"{workload.name} does not run in {dtype}: choose {', '.join(workload.dtypes)}."
            )
    there_are = addresses(description)
    devices = there_are if request.devices is None else list(request.devices)
    for device in devices:
        if device not in there_are:
            verb = "is" if len(there_are) == 1 else "are"
            reason = f" {description.cuda_reason}" if description.cuda_reason else ""
            raise StudioError(
                FailureKind.NO_SUCH_DEVICE,
                f"There is no {device[:20]} here; there {verb} {', '.join(there_are)}.{reason}",
            )
    devices.sort(key=lambda device: device != "cpu")
    asked = itertools.product(request.dtypes, request.sizes, devices)
    for number, (dtype, size, device) in enumerate(asked):
        yield RunWorkload(
            run_id=f"{os.getpid()}-{number}",
            workload=workload.name,
            device=device,
            size=size,
            dtype=dtype,
            budget_s=request.budget_s,
        )


def _perform(
    engine: Engine,
    runs: Sequence[Run],
    interrupt: Interrupt,
    progress: Progress,
    *,
    as_json: bool,
) -> None:
    table = Table(_COLUMNS)
    results: list[RunFinished] = []
    for number, run in enumerate(runs):
        if not as_json and (number == 0 or runs[number - 1].request.workload != _workload(run)):
            say(f"{_workload(run)}, time of one call")
            say(table.heading)
        for event in answers(engine, run.request, interrupt):
            run.apply(event)
            if as_json:
                say_bytes(encode(event))
            progress.show(_progress_text(run, number, len(runs)))
            _note_failure(event, run, progress)
        progress.clear()
        if run.result is not None:
            results.append(run.result)
            if not as_json:
                say(table.row(_cells(run.result, results)))
                for doubt in stamp_of(run.result).doubts:
                    say(f"{'':>13}in doubt: {doubt}")
        if interrupt.is_asked:
            note(f"Stopped after {len(run.series)} samples of {_title(run)}.")
            return


def _note_failure(event: Event, run: Run, progress: Progress) -> None:
    if isinstance(event, (RunFailed, RequestFailed, EngineEnded)) and run.failure:
        progress.clear()
        note(f"{_title(run)}: {run.failure.message}")


def _workload(run: Run) -> str:
    return run.request.workload


def _title(run: Run) -> str:
    request = run.request
    return f"{request.workload} {format_size(request.size)} {request.dtype} on {request.device}"


def _progress_text(run: Run, number: int, count: int) -> str:
    text = f"{number + 1}/{count}  {_title(run)}: {run.phase or 'starting'}"
    if run.state is RunState.TIMING and run.summary:
        return f"{text} {format_percent(run.progress)}, {format_duration(run.summary.median_s)}"
    if run.expected_call_s and run.expected_call_s > 1:
        return f"{text}, one call takes about {format_duration(run.expected_call_s)}"
    return text


def _cells(result: RunFinished, results: Sequence[RunFinished]) -> list[str]:
    ratio = speed_up(result, results)
    spread = result.iqr_s / result.median_s if result.median_s else 0.0
    return [
        format_size(result.size),
        result.dtype,
        result.device,
        format_duration(result.median_s),
        format_percent(spread),
        str(result.samples),
        format_rate(result.throughput, result.throughput_unit),
        "" if ratio is None else format_ratio(ratio),
    ]
