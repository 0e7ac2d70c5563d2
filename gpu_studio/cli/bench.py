"""``gpu-studio bench``: the window's benchmark in a terminal; same engine, same verdict."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli import bench_history, standard
from gpu_studio.cli.answers import at_work
from gpu_studio.cli.bench_history import history, keep_run
from gpu_studio.cli.bench_runs import (
    EXPORTS,
    BenchRuns,
    export,
    is_without_torch,
    verdicts,
)
from gpu_studio.cli.command import (
    DONE,
    JSON_OBJECT,
    Command,
    OneOf,
    Option,
    WrongUseError,
    did_you_mean,
)
from gpu_studio.cli.engines import (
    addresses,
    check_device,
    started_engine,
    started_quick_engine,
    why_no_card,
)
from gpu_studio.cli.own_code import allowed_code
from gpu_studio.cli.recorder import RECORDING, Recorder
from gpu_studio.cli.screen import note, print_event, print_line, print_list
from gpu_studio.core.benchmark.options import explain_option
from gpu_studio.core.benchmark.plan import Plan, RunPlan, Sweep
from gpu_studio.core.benchmark.recording import read_recording, recording_sentences
from gpu_studio.core.benchmark.workloads import WITHOUT_PYTORCH, WORKLOADS
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.adapters import is_adapter, usual_adapters
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.run_messages import (
    OwnCode,
    RunFinished,
    RunWorkload,
    WorkloadDescription,
)
from gpu_studio.core.parameter import parameters_of
from gpu_studio.core.units import format_size
from gpu_studio.engine.recorded_engine import RecordedEngine

_USUAL_SIZES = (512, 1024, 2048)
_USUAL_DTYPE = "float32"
_USUAL_TIME_S = 2.0
_NAME_WIDTH = 16


def _replay(options: argparse.Namespace, _log_path: Path) -> int:
    """Replay all runs of a recording, labeled as recorded; return the exit status."""
    recording = read_recording(options.file)
    described = recording.described or EngineDescribed(
        pid=0, torch_version=recording.header.torch_version
    )
    described = msgspec.structs.replace(described, recording=recording.label)
    write_line = note if options.json else print_line
    for sentence in recording_sentences(recording):
        write_line(sentence)
    if options.json:
        for message in (recording.header, described):
            print_event(message)
    else:
        print_line()
    engine = RecordedEngine(recording, speed=math.inf if options.at_once else 1.0)
    with at_work(engine, is_json=options.json) as work:
        runs = BenchRuns(work, msgspec.structs.replace(described, workloads=()))
        runs.size_texts = {run.request.workload: run.size_text for run in recording.runs}
        runs.make_all([run.request for run in recording.runs])
    if options.save is not None:
        export(runs.runs, described, options.save)
    if not options.json:
        for sentence in verdicts(runs.results):
            print_line()
            print_line(sentence)
    # A failed run is part of the recording. It does not make the replay fail.
    return work.exit_status(is_done=True)


_REPLAY_OPTIONS = (
    Option("file", "a recording, or saved --json output", metavar="FILE", type=Path),
    Option("--at-once", "do not wait between events", action="store_true"),
    types.save("write the results", *EXPORTS),
)
_REPLAY = Command(
    help="replay recorded runs",
    about="Replay the runs in a recording as if they were made now, labeled as recorded. Nothing "
    "is kept.",
    run=_replay,
    options=_REPLAY_OPTIONS,
)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Run a workload; return the exit status."""
    if (options.workload is None) is (options.script is None):
        raise WrongUseError("Name a WORKLOAD (see “bench list”), or your own code with --script.")
    code = allowed_code(options.script, is_allowed=options.yes) if options.script else None
    files = types.by_ending(options.save)
    recorder = Recorder(log_path, as_json=options.json, path=files.pop(RECORDING, None))
    finished = (lambda _: None) if options.no_history else partial(keep_run, history())
    if code is not None and options.without_pytorch:
        raise WrongUseError("Your own code needs PyTorch: leave out --without-pytorch.")
    without_torch = code is None and (options.without_pytorch or is_without_torch(options.device))
    start = started_quick_engine if without_torch else started_engine
    with start(log_path, is_json=options.json) as (work, described):
        runs = BenchRuns(work, described, finished=finished)
        if code is None:
            workload, least_s = _find_workload(described, options.workload), 0.0
        else:
            workload, least_s = runs.open_code(code)
        plans = _plans(options, described, workload, code, least_s)
        devices = {run.device for plan in plans for run in plan.requests()}
        recorder.begin(described, {workload.name}, devices)
        runs.with_transfers = options.transfers
        runs.may_skip = options.device is None and len(devices) > 1
        for plan in plans:
            runs.make(plan)
        for path in files.values():
            export(runs.runs, described, path)
        recorder.save(runs.runs)
    _conclude(runs.results, options.sweep is not None, as_json=options.json)
    return runs.exit_status


def _list(options: argparse.Namespace, _log_path: Path) -> int:
    """Print the workloads; return the exit status. It needs no PyTorch."""
    lines = (line for workload in WORKLOADS for line in _workload_lines(workload))
    print_list("workloads", WORKLOADS, lines, as_json=options.json)
    return DONE


def _workload_lines(workload: WorkloadDescription) -> Iterator[str]:
    """Yield the lines that describe a workload."""
    indent = " " * _NAME_WIDTH
    yield f"{workload.name:<{_NAME_WIDTH}}{workload.title}: {workload.sentence}"
    if workload.device_kinds:
        yield f"{indent}runs only on {workload.kinds_text}"
    if workload.name in WITHOUT_PYTORCH:
        yield f"{indent}also runs without PyTorch"
    sizes = ", ".join(format_size(size, workload.size_text) for size in workload.sizes)
    yield f"{indent}{workload.size_title}: {sizes}"
    yield f"{indent}{', '.join(workload.dtypes)}"
    for option in workload.options:
        explanation = explain_option(option, str)
        yield f"{indent}--option {option.name}={'|'.join(option.values)}  {explanation}"


def _conclude(results: Sequence[RunFinished], is_sweep: bool, *, as_json: bool) -> None:
    """Print the verdicts; with JSON, only those of a sweep, whose events have no crossover."""
    for sentence in verdicts(results):
        if not as_json:
            print_line()
            print_line(sentence)
        elif is_sweep:
            note(sentence)


def _find_workload(description: EngineDescribed, name: str) -> WorkloadDescription:
    """Return the workload of this name."""
    found = next((one for one in description.workloads if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in description.workloads)
        known = [*(one.name for one in description.workloads), *COMMAND.parts]
        near = did_you_mean(name, known)
        raise WrongUseError(f"There is no workload “{name[:40]}”: choose {names}.{near}")
    if found.skipped:
        raise StudioError(FailureKind.BAD_REQUEST, f"{found.name} cannot run here: {found.skipped}")
    return found


def _plans(
    options: argparse.Namespace,
    description: EngineDescribed,
    workload: WorkloadDescription,
    code: OwnCode | None,
    least_s: float,
) -> list[RunPlan]:
    """Return the plans, one for each dtype; the CPU comes before the cards.

    Args:
        options: what was typed.
        description: of the engine.
        workload: the workload.
        code: the user's own, if that is the workload.
        least_s: the time of a run that a slow one needs, where no other was typed.
    """
    if options.time == _USUAL_TIME_S:
        options.time = max(least_s, _USUAL_TIME_S)
    settings = _settings(options, workload)
    devices = _devices_for(workload, options.device, description)
    plans: list[RunPlan] = []
    for dtype in _dtypes(options.dtype, workload):
        plan = Plan(
            workload=workload.name,
            sizes=tuple(options.sweep or options.size or _sizes(workload)),
            dtypes=(dtype,),
            devices=tuple(devices),
            options=_options(dict(options.option), workload),
            settings=settings,
            code=code,
        )
        plans.append(Sweep(plan) if options.sweep else plan)
    return plans


def _settings(options: argparse.Namespace, workload: WorkloadDescription) -> dict[str, Any]:
    """Return how to measure; raises `WrongUseError` for what the workload refuses."""
    settings = types.chosen(options, RunWorkload, "bench")
    for one in parameters_of(RunWorkload, "bench"):
        if one.name in workload.refuses and settings[one.field] != one.default:
            raise WrongUseError(workload.refuses[one.name])
    return settings


def _sizes(workload: WorkloadDescription) -> tuple[int, ...]:
    if set(_USUAL_SIZES) <= set(workload.sizes):
        return _USUAL_SIZES
    return workload.sizes


def _dtypes(chosen: Sequence[str] | None, workload: WorkloadDescription) -> Sequence[str]:
    if chosen is None:
        return (_USUAL_DTYPE if _USUAL_DTYPE in workload.dtypes else workload.dtypes[0],)
    for dtype in chosen:
        if dtype not in workload.dtypes:
            raise WrongUseError(
                f"{workload.name} does not run in {dtype}: choose {', '.join(workload.dtypes)}."
            )
    return chosen


def _options(chosen: dict[str, str], workload: WorkloadDescription) -> dict[str, str]:
    available = {option.name: option.values for option in workload.options}
    for name, value in chosen.items():
        if name not in available:
            known = f"it has {', '.join(available)}" if available else "it has none"
            raise WrongUseError(f"{workload.name} has no option “{name[:20]}”: {known}.")
        if value not in available[name]:
            raise WrongUseError(
                f"“{value[:20]}” is not a value of {name}: choose {', '.join(available[name])}."
            )
    return chosen


def _devices_for(
    workload: WorkloadDescription, chosen: Sequence[str] | None, description: EngineDescribed
) -> list[str]:
    """Return the devices for a workload: those asked for, otherwise all; the CPU comes first."""
    for device in chosen or ():
        check_device(device, description)
        if not workload.runs_on(device):
            kinds = " and ".join(workload.device_kinds)
            raise WrongUseError(f"{workload.name} does not run on {device}, only on {kinds}.")
    usual = {one.address for one in usual_adapters(description.adapters)}
    usable = [
        device
        for device in addresses(description)
        if workload.runs_on(device) and (device in usual or not is_adapter(device))
    ]
    if not usable:
        message = f"{workload.name} needs a card: {why_no_card(description)}"
        raise StudioError(FailureKind.NO_SUCH_DEVICE, message)
    return sorted(chosen or usable, key=lambda device: not is_cpu(device))


_RUN_OPTIONS: tuple[Option | OneOf, ...] = (
    Option("workload", "the workload; see “bench list”", metavar="WORKLOAD", nargs="?"),
    Option(
        "--script", "your own code instead: Python with a function work(device), or plain lines",
        metavar="FILE", type=Path,
    ),
    Option("--yes", "run that code without asking, with your rights", action="store_true"),
    OneOf(
        Option(
            "--size", "sizes, such as the sides of square matrices (default: 512,1024,2048 or the "
            "workload's own)",
            metavar="N[,N…]", type=types.sizes,
        ),
        Option(
            "--sweep", "both sizes and the powers of two between them (or a list of sizes), then "
            "finer steps around the crossover",
            metavar="LOW:HIGH", type=types.sweep,
        ),
    ),
    Option(
        "--dtype", "float16, bfloat16, float32, float64 (default: float32 or the workload's own)",
        metavar="D[,D…]", type=types.dtypes,
    ),
    Option(
        "--option", "an option of the workload; repeatable",
        metavar="NAME=VALUE", type=types.named_value, action="append", default=[],
    ),
    types.DEVICES,
    Option(
        "--without-pytorch", "measure with NumPy on the CPU, and with Vulkan or DirectX 12 on your "
        "cards",
        action="store_true",
    ),
    *types.settings(RunWorkload, "bench"),
    types.save(
        "write the results, or record every event so that any PC can replay it; repeatable",
        *EXPORTS, RECORDING, action="append", default=[],
    ),
    Option("--no-history", "do not keep the results", action="store_true"),
)  # fmt: skip
_ABOUT = "Time a workload on the CPU and on your cards, and see which is faster."
COMMAND = Command(
    about=_ABOUT + " “bench WORKLOAD” is short for “bench run WORKLOAD”.",
    parts={
        "run": Command(help="time a workload", about=_ABOUT, run=_run, options=_RUN_OPTIONS),
        "list": Command(
            help="list the workloads",
            about="List the workloads with their sizes and options.",
            run=_list,
            json=JSON_OBJECT,
        ),
        "replay": _REPLAY,
        **standard.PARTS,
        **bench_history.PARTS,
    },
    usual_part="run",
)
