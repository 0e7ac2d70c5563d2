"""``gpu-studio bench`` and ``standard``: the window's benchmark; same engine, same verdict."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.answers import RunPrinter, at_work
from gpu_studio.cli.command import (
    JSON_OBJECT,
    OneOf,
    Option,
    WrongUseError,
    command,
    group,
    no_such,
)
from gpu_studio.cli.output import (
    TerminalTable,
    give,
    note,
    now,
    painted,
    print_event,
    print_json,
    print_line,
    save,
)
from gpu_studio.cli.pc import (
    TARGET,
    addresses,
    check_device,
    data_folder,
    is_without_torch,
    read_inventory,
    started_engine,
    started_quick_engine,
    why_no_card,
)
from gpu_studio.cli.runs import (
    EXPORTS,
    RECORDING,
    BenchRuns,
    Recorder,
    allowed_code,
    export,
    is_in_doubt,
    verdicts,
)
from gpu_studio.core.benchmark import history as kept
from gpu_studio.core.benchmark.comparison import (
    Side,
    compared_rows,
    compared_works,
    facts_of,
    headline,
    sides_of,
    table_rows,
    trust_of_sides,
)
from gpu_studio.core.benchmark.history import History, HistoryEntry
from gpu_studio.core.benchmark.options import explain_option, mode_words
from gpu_studio.core.benchmark.plan import Plan, RunPlan, Sweep
from gpu_studio.core.benchmark.recording import read_recording, recording_sentences
from gpu_studio.core.benchmark.refusal import run_refusal
from gpu_studio.core.benchmark.result_import import import_results
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.standard import STANDARD, StandardPlan, standard_s
from gpu_studio.core.benchmark.standard_record import (
    FOLDER_NAME,
    StandardFinished,
    StandardFolder,
    encode_standard,
    read_standard,
    record_of,
    shared_json,
)
from gpu_studio.core.benchmark.workloads import WITHOUT_PYTORCH, WORKLOADS
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.adapters import is_adapter, usual_adapters
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.run_messages import (
    OwnCode,
    RunFinished,
    RunWorkload,
    WorkloadDescription,
)
from gpu_studio.core.parameter import parameters_of
from gpu_studio.core.program_form import typed
from gpu_studio.core.texts import listed
from gpu_studio.core.units import about_time, format_duration, format_size, shown_moment
from gpu_studio.engine.recorded_engine import RecordedEngine
from gpu_studio.process.sleep_block import SleepBlock


def history() -> History:
    """Return the history in the user's data folder, which the window shares."""
    return History(data_folder() / kept.FOLDER_NAME)


def keep_run(into: History, run: Run) -> None:
    """Keep a finished run; a folder that refuses it is worth one note."""
    try:
        into.keep(run, now())
    except StudioError as error:
        note(str(error))
        into.folder = None


@command(json=JSON_OBJECT)
def _list_kept(options: argparse.Namespace, _log_path: Path) -> None:
    """List the kept runs, newest first. Each is a file of its own, named by its key."""
    runs = history()
    contents = runs.contents()
    none = [] if contents.entries else [f"No runs kept yet in {runs.folder}."]
    give("history", contents, [*map(_entry_line, contents.entries), *none], options)
    for refusal in () if options.json else contents.refused:
        note(f"{refusal.file_name}: {refusal.reason}")


@command(
    Option("file", "results from another PC, or an export", metavar="FILE", type=Path), json=""
)
def _import(options: argparse.Namespace, _log_path: Path) -> None:
    """Add the results in a file to the kept runs, labeled with where they are from."""
    imported = import_results(options.file, now())
    runs = history()
    for one in imported:
        runs.add(one)
    noun = "result" if len(imported) == 1 else "results"
    print_line(f"{len(imported)} {noun} kept, labelled “{imported[0].result.recording}”.")


def _entry_line(entry: HistoryEntry) -> str:
    header, result = entry.header, entry.header.result
    what = (
        entry.key,
        shown_moment(header.kept_at),
        result.workload,
        format_size(result.size, result.size_text),
        result.dtype,
        result.device_name,
        *filter(None, [mode_words(result)]),
        format_duration(result.median_s),
        *([f"“{header.name}”"] if header.name else []),
        *([f"recorded: {result.recording}"] if result.recording else []),
    )
    return "  ".join(what)


_PAINTER = "gpu_studio.ui.standard_page"
_COLUMNS_OF_SIDES = (("device", 34), ("per second", -16), ("95 % interval", -18), ("verdict", 0))
_NO_RUN = "This PC has no standard run yet: “{command}” makes one."


class ComparedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison as JSON."""

    standard: int
    sentence: str
    trust: str
    rows: tuple[dict[str, Any], ...]


@command(
    types.DEVICES,
    types.save(
        "write the result, which another PC compares with its own, as a picture or as JSON",
        ".png", ".json",
    ),
)  # fmt: skip
def _standard(options: argparse.Namespace, log_path: Path) -> int:
    """Measure this PC: always the same work, to compare it with another PC.

    It is memory bandwidth, products in float32, float16 and bfloat16, a convolution, a training
    step, the launch of an operation and copies to a card and back, then 20 s of full load. It takes
    about a minute a device. The result has nothing in it that identifies you or your PC.
    """
    inventory = read_inventory(log_path)
    with (
        SleepBlock("A measurement"),
        started_engine(log_path, is_json=options.json) as (work, described),
    ):
        devices = list(dict.fromkeys(options.device or addresses(described)))
        for device in devices:
            check_device(device, described)
        plan = StandardPlan(devices)
        if not options.json:
            print_line(
                f"Standard {STANDARD} on {listed(plan.devices)}: "
                f"{about_time(standard_s(devices))}. Leave the PC alone meanwhile."
            )
        printer = _StandardPrinter(plan)
        is_complete = work.run(printer.steps(), printer) and printer.has_engine
    if work.interrupt.is_asked:
        note("Stopped. The results until then are kept.")
    record = record_of(
        plan, printer.runs, inventory=inventory, described=described, made_at=now(),
        system=TARGET.system_name,
    )  # fmt: skip
    if record is None:
        note("Nothing was measured.")
        return work.exit_status(is_done=False)
    if problem := StandardFolder(data_folder() / FOLDER_NAME).keep(record):
        note(problem)
    sides = sides_of(record)
    sentence = ". ".join(headline(sides, compared_works(sides)))
    if options.json:
        finished = StandardFinished(run=record, sentence=sentence, is_complete=is_complete)
        print_json("standard_finished", finished)
    else:
        _print_sides(sides)
        print_line()
        for line in (*facts_of(sides), f"{trust_of_sides(sides).sentence}.", sentence):
            print_line(line)
        if not is_complete:
            print_line("This run is not complete.")
    if options.save is not None:
        is_picture = options.save.suffix.lower() == ".png"
        shared = shared_json(record).encode()
        save(options.save, painted(_PAINTER, encode_standard(record)) if is_picture else shared)
    return work.exit_status(is_done=is_complete, in_doubt=is_in_doubt(printer.results))


class _StandardPrinter(RunPrinter):
    """The progress of a standard run.

    Args:
        plan: what is made; it ends with its engine, and with Ctrl-C.
    """

    def __init__(self, plan: StandardPlan) -> None:
        super().__init__()
        self._plan, self._begun_s = plan, time.perf_counter()
        self.has_engine = True

    def steps(self) -> Iterator[Request]:
        """Yield all runs of the plan."""
        while self.has_engine and (requests := self._plan.next_requests()):
            yield self.begin(requests)

    def end(self, last: Event) -> None:
        self.has_engine = not last.ends_engine

    def line(self, run: Run) -> str:
        left = self._plan.left_words(time.perf_counter() - self._begun_s)
        work = self._plan.work_words(run.request.run_id)
        return f"{work} on {run.request.device}: {run.phase or 'starting'}; {left}"

    def complaint(self, event: Event) -> str:
        return "PyTorch ended. The results until then are kept." if event.ends_engine else ""


@command(
    Option("files", "pictures (PNG), recordings or JSON", metavar="FILE", type=Path, nargs="+"),
    json=JSON_OBJECT,
)
def _compare(options: argparse.Namespace, _log_path: Path) -> None:
    """Compare the standard runs in files with the newest one of this PC.

    A file is what its contents are, whatever its name.
    """
    own = StandardFolder(data_folder() / FOLDER_NAME).newest()
    if own is None:
        note(_NO_RUN.format(command=typed("gpu-studio standard")))
    sides = [*sides_of(own, is_here=True)] if own is not None else []
    sides += [side for path in options.files for side in sides_of(read_standard(path))]
    sides = [side for side in sides if not side.is_spare]
    sentence = ". ".join(headline(sides, compared_works(sides)))
    trust = trust_of_sides(sides).sentence
    if options.json:
        rows = tuple(compared_rows(sides))
        compared = ComparedRuns(standard=STANDARD, sentence=sentence, trust=trust, rows=rows)
        print_json("compared_runs", compared)
        return
    print_line(sentence)
    _print_sides(sides)
    print_line()
    print_line(f"{trust}.")


def _print_sides(sides: Sequence[Side]) -> None:
    """Print each work with a line for each side."""
    table = TerminalTable(_COLUMNS_OF_SIDES, ("95 % interval",))
    for work, name, *figures in table_rows(sides, compared_works(sides)):
        if work:
            print_line()
            print_line(work, style="bold")
        table.print_row([name[:34], *figures])


_USUAL_SIZES = (512, 1024, 2048)
_USUAL_DTYPE = "float32"
_USUAL_TIME_S = next(one.default for one in parameters_of(RunWorkload, "bench") if one.unit)
_NAME_WIDTH = 16


@command(
    Option("file", "a recording, or saved --json output", metavar="FILE", type=Path),
    Option("--at-once", "do not wait between events", action="store_true"),
    types.save("write the results", *EXPORTS),
)
def _replay(options: argparse.Namespace, _log_path: Path) -> int:
    """Replay the runs in a recording as if they were made now, labeled as recorded.

    Nothing is kept.
    """
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


@command(
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
def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Time a workload on the CPU and on your cards, and see which is faster."""
    if (options.workload is None) is (options.script is None):
        raise WrongUseError("Name a WORKLOAD (see “bench list”), or your own code with --script.")
    code = allowed_code(options.script, is_allowed=options.yes) if options.script else None
    files = types.by_ending(options.save)
    recorder = Recorder(log_path, as_json=options.json, path=files.pop(RECORDING, None))
    finished = (lambda _: None) if options.no_history else partial(keep_run, history())
    if code is not None and options.without_pytorch:
        raise WrongUseError("Your own code needs PyTorch: leave out --without-pytorch.")
    without = code is None and (options.without_pytorch or is_without_torch(options.device))
    start = started_quick_engine if without else started_engine
    with start(log_path, is_json=options.json) as (work, described):
        runs = BenchRuns(work, described, finished=finished)
        if code is None:
            workload, least_s = _find_workload(described, options.workload), 0.0
        else:
            workload, least_s = runs.open_code(code)
        plans = _plans(options, described, workload, code, least_s)
        devices = {run.device for plan in plans for run in plan.requests()}
        recorder.begin(described, {workload.name}, devices)
        runs.may_skip = options.device is None and len(devices) > 1
        for plan in plans:
            runs.make(plan)
        for path in files.values():
            export(runs.runs, described, path)
        recorder.save(runs.runs)
    _conclude(runs.results, options.sweep is not None, as_json=options.json)
    return runs.exit_status


@command(json=JSON_OBJECT)
def _list(options: argparse.Namespace, _log_path: Path) -> None:
    """List the workloads with their sizes and options."""
    lines = (line for workload in WORKLOADS for line in _workload_lines(workload))
    give("workloads", WORKLOADS, lines, options, name="workloads")


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
        names = (one.name for one in description.workloads)
        raise no_such("workload", name, names, COMMANDS["bench"].parts)
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
    if options.time is _USUAL_TIME_S:  # the default itself: the same number may be typed
        options.time = max(least_s, _USUAL_TIME_S)
    usual_sizes = _USUAL_SIZES if set(_USUAL_SIZES) <= set(workload.sizes) else workload.sizes
    usual_dtype = _USUAL_DTYPE if _USUAL_DTYPE in workload.dtypes else workload.dtypes[0]
    devices = _devices_for(workload, options.device, description)
    plans: list[RunPlan] = []
    for dtype in options.dtype or (usual_dtype,):
        plan = Plan(
            workload=workload.name,
            sizes=tuple(options.sweep or options.size or usual_sizes),
            dtypes=(dtype,),
            devices=tuple(devices),
            options=dict(options.option),
            settings=types.chosen(options, RunWorkload, "bench"),
            code=code,
        )
        for request in plan.requests():
            if refusal := run_refusal(workload, request):
                raise WrongUseError(refusal)
        plans.append(Sweep(plan) if options.sweep else plan)
    return plans


def _devices_for(
    workload: WorkloadDescription, chosen: Sequence[str] | None, description: EngineDescribed
) -> list[str]:
    """Return the devices for a workload: those asked for, otherwise all; the CPU comes first."""
    for device in chosen or ():
        check_device(device, description)
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


COMMANDS = {
    "bench": group(
        "Time a workload on the CPU and on your cards. “bench WORKLOAD” is short for “bench run "
        "WORKLOAD”.",
        {
            "run": _run, "list": _list, "replay": _replay, "compare": _compare,
            "history": _list_kept, "import": _import,
        },
        usual_part="run",
    ),
    "standard": _standard,
}  # fmt: skip
