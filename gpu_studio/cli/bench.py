"""``gpu-studio bench``: the window's benchmark in a terminal; same engine, same verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.cli.answers import Interrupt, answers, describe
from gpu_studio.cli.bench_recording import Recorder, check_place
from gpu_studio.cli.screen import Progress, TerminalTable, note, now, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, INTERRUPTED, WrongUseError
from gpu_studio.core.benchmark.ceilings import is_this_normal, is_worth_a_line, share_text
from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown, to_text
from gpu_studio.core.benchmark.plan import Plan, Sweep
from gpu_studio.core.benchmark.run import Run, RunState, spread_text
from gpu_studio.core.benchmark.trust import computed_in_words, stamp_of
from gpu_studio.core.benchmark.verdict import crossover_sentences, same_kind, speed_up, verdict
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed
from gpu_studio.core.protocol import encode
from gpu_studio.core.units import (
    format_duration,
    format_percent,
    format_rate,
    format_size,
)
from gpu_studio.engine.client import ProcessEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.history import History
    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.engine import Engine
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload, WorkloadDescription

EXPORTS = (".csv", ".json", ".md", ".txt")
_NO_TRANSFERS = (
    "per call: compute {compute}; no copies, because the operands are already in CPU memory"
)
_ONE_DEVICE = "No crossover: only one device was measured."
_USUAL_SIZES = (512, 1024, 2048)
_USUAL_DTYPE = "float32"
_COLUMNS = (
    ("size", -14), ("dtype", 8), ("device", 13), ("median", -8), ("spread", -6), ("samples", -7),
    ("throughput", -12), ("of peak", -7), ("speed-up", -8),
)  # fmt: skip
_INDENT = " " * 16


def run_bench(
    request: BenchRequest,
    log_path: Path,
    *,
    as_json: bool,
    kept: History | None = None,
    export_to: Path | None = None,
    record_to: Path | None = None,
) -> int:
    """Run the request; return the exit status.

    Args:
        request: the runs to make.
        log_path: the engine's log file.
        as_json: print every event instead of a table.
        kept: the history that keeps finished runs; None keeps none.
        export_to: a file for the results; its extension is the format.
        record_to: a file for all events, which can be replayed.

    Raises:
        WrongUseError: no such workload, or it does not support these options.
        StudioError: no such device, no engine, or a file cannot be written.
    """
    recorder = Recorder(log_path, as_json=as_json, path=record_to)

    def work(runs: BenchRuns, description: EngineDescribed) -> None:
        made = plans(request, description)
        first = [run for plan in made for run in plan.requests()]
        devices = {run.device for run in first}
        recorder.begin(description, {request.workload}, devices)
        runs.tells_transfers = request.transfers
        runs.may_skip = request.devices is None and len(devices) > 1
        for plan in made:
            runs.make(plan)
        if export_to is not None:
            export(runs.runs, description, export_to)
        recorder.save(runs.runs)

    runs, interrupted = with_engine(work, log_path, as_json=as_json, kept=kept)
    _conclude(runs.results, request.is_sweep, as_json=as_json)
    return exit_status(runs, interrupted=interrupted)


def exit_status(runs: BenchRuns, *, interrupted: bool) -> int:
    """Return the exit status of all runs together."""
    if interrupted:
        return INTERRUPTED
    return FAILED if runs.has_failed else DONE


def with_engine(
    work: Callable[[BenchRuns, EngineDescribed], None],
    log_path: Path,
    *,
    as_json: bool,
    kept: History | None = None,
) -> tuple[BenchRuns, bool]:
    """Start an engine and do the work; return its runs, and whether Ctrl-C ended them.

    Raises:
        StudioError: the engine does not start, or the work raised it.
    """
    progress = Progress()
    engine = ProcessEngine(EngineEnvironment(), log_path=log_path)

    def keep(run: Run) -> None:
        if kept is not None:
            try:
                kept.keep(run, now())
            except StudioError as error:
                note(str(error))

    try:
        with Interrupt().heard() as interrupt:
            progress.show("Starting PyTorch …")
            description = describe(engine, interrupt)
            progress.clear()
            runs = BenchRuns(engine, interrupt, progress, as_json=as_json, finished=keep)
            runs.size_texts = {one.name: one.size_text for one in description.workloads}
            work(runs, description)
    finally:
        progress.clear()
        engine.close()
    return runs, interrupt.is_asked


def verdicts(results: Sequence[RunFinished]) -> Iterator[str]:
    """Yield one verdict for each group of comparable results."""
    for kind in _kinds(results):
        yield verdict(kind)


def export(runs: Sequence[Run], description: EngineDescribed, path: Path) -> None:
    """Write runs to a file in the format of its extension.

    Raises:
        StudioError: the file cannot be written.
    """
    made = {
        ".csv": lambda: to_csv(runs),
        ".json": lambda: to_json(runs, description, now()),
        ".md": lambda: to_markdown(runs),
        ".txt": lambda: to_text(runs),
    }
    try:
        # The CSV writer writes its own line endings.
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(made[path.suffix.lower()]())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudioError(
            FailureKind.NOT_SAVED, f"Cannot write the results to {path}: {reason}."
        ) from error


def check_export(path: Path) -> Path:
    """Return the path if its extension is a known format and the file can be written.

    Raises:
        WrongUseError: unknown extension, missing folder, or the path is a folder.
    """
    if path.suffix.lower() not in EXPORTS:
        raise WrongUseError(
            f"“{path.name[:40]}” has no known format: use the extension {', '.join(EXPORTS)}."
        )
    return check_place(path)


def _no_crossover(results: Sequence[RunFinished]) -> str:
    """Return why a sweep has no crossover."""
    wrong = sorted({result.device for result in results if result.verified is False})
    if wrong:
        return f"No crossover: wrong results on {', '.join(wrong)}."
    return _ONE_DEVICE


def _conclude(results: Sequence[RunFinished], is_sweep: bool, *, as_json: bool) -> None:
    """Print the verdicts; with JSON, only the crossovers, which the events do not contain."""
    places: list[str] = []
    if is_sweep:
        for kind in _kinds(results):
            places += crossover_sentences(kind) or [_no_crossover(kind)]
    if as_json:
        for sentence in places:
            note(sentence)
        return
    for sentence in (*places, *verdicts(results)):
        say()
        say(sentence)


def _kinds(results: Sequence[RunFinished]) -> list[list[RunFinished]]:
    kinds: list[list[RunFinished]] = []
    for result in results:
        alike = next((kind for kind in kinds if same_kind(kind[0], result)), None)
        if alike is None:
            kinds.append([result])
        else:
            alike.append(result)
    return kinds


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The runs to make; None means the workload's default, or all devices."""

    workload: str
    sizes: tuple[int, ...] | None = None
    is_sweep: bool = False
    dtypes: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    budget_s: float = 2.0
    options: dict[str, str] = msgspec.field(default_factory=dict)
    cache: str = "hot"
    transfers: bool = False
    naive: bool = False
    sustained: bool = False


def addresses(description: EngineDescribed) -> list[str]:
    """Return the addresses of the devices that an engine can use."""
    return [CPU, *description.card_addresses]


def find_workload(description: EngineDescribed, name: str) -> WorkloadDescription:
    """Return the workload of this name.

    Raises:
        WrongUseError: there is no such workload.
        StudioError: it cannot run here; the message says what would change that.
    """
    found = next((one for one in description.workloads if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in description.workloads)
        raise WrongUseError(f"There is no workload “{name[:40]}”: choose {names}.")
    if found.skipped:
        raise StudioError(FailureKind.BAD_REQUEST, f"{found.name} cannot run here: {found.skipped}")
    return found


def plans(request: BenchRequest, description: EngineDescribed) -> list[RunPlan]:
    """Return the plans of a request, one for each dtype; the CPU comes before the cards.

    Raises:
        WrongUseError: no such workload, or it does not support these options.
        StudioError: no such device, or the workload cannot run here.
    """
    workload = find_workload(description, request.workload)
    _refuse_modes(request, workload)
    devices = _devices(request.devices, workload, description)
    made: list[RunPlan] = []
    for dtype in _dtypes(request.dtypes, workload):
        plan = Plan(
            workload=workload.name,
            sizes=request.sizes or _sizes(workload),
            dtypes=(dtype,),
            devices=tuple(devices),
            budget_s=request.budget_s,
            options=_options(request.options, workload),
            cache=request.cache,
            transfers=request.transfers,
            naive=request.naive,
            sustained=request.sustained,
        )
        made.append(Sweep(plan) if request.is_sweep else plan)
    return made


def _refuse_modes(request: BenchRequest, workload: WorkloadDescription) -> None:
    wanted = {
        "cold": request.cache == "cold",
        "transfers": request.transfers,
        "naive": request.naive,
    }
    for mode, reason in workload.refuses.items():
        if wanted.get(mode):
            raise WrongUseError(reason)


def _sizes(workload: WorkloadDescription) -> tuple[int, ...]:
    if set(_USUAL_SIZES) <= set(workload.sizes):
        return _USUAL_SIZES
    return workload.sizes


def _dtypes(asked: Sequence[str] | None, workload: WorkloadDescription) -> Sequence[str]:
    if asked is None:
        return (_USUAL_DTYPE if _USUAL_DTYPE in workload.dtypes else workload.dtypes[0],)
    for dtype in asked:
        if dtype not in workload.dtypes:
            raise WrongUseError(
                f"{workload.name} does not run in {dtype}: choose {', '.join(workload.dtypes)}."
            )
    return asked


def _options(asked: dict[str, str], workload: WorkloadDescription) -> dict[str, str]:
    there_are = {option.name: option.values for option in workload.options}
    for name, value in asked.items():
        if name not in there_are:
            known = f"it has {', '.join(there_are)}" if there_are else "it has none"
            raise WrongUseError(f"{workload.name} has no option “{name[:20]}”: {known}.")
        if value not in there_are[name]:
            raise WrongUseError(
                f"“{value[:20]}” is not a value of {name}: choose {', '.join(there_are[name])}."
            )
    return asked


def _devices(
    asked: Sequence[str] | None, workload: WorkloadDescription, description: EngineDescribed
) -> list[str]:
    there_are = addresses(description)
    usable = [device for device in there_are if workload.runs_on(device)]
    for device in asked or ():
        if device not in there_are:
            raise StudioError(FailureKind.NO_SUCH_DEVICE, _no_such(device, description))
        if device not in usable:
            kinds = " and ".join(workload.device_kinds)
            raise WrongUseError(f"{workload.name} does not run on {device}, only on {kinds}.")
    if not usable:
        reason = description.cuda_reason or "PyTorch cannot use any card here."
        raise StudioError(FailureKind.NO_SUCH_DEVICE, f"{workload.name} needs a card: {reason}")
    return sorted(asked or usable, key=lambda device: not is_cpu(device))


def _no_such(device: str, description: EngineDescribed) -> str:
    there_are = addresses(description)
    verb = "is" if len(there_are) == 1 else "are"
    reason = f" {description.cuda_reason}" if description.cuda_reason else ""
    return f"There is no {device[:20]} here; there {verb} {', '.join(there_are)}.{reason}"


class BenchRuns:
    """Makes the runs of plans and shows each one.

    Args:
        engine: makes the runs.
        interrupt: Ctrl-C stops the current run, and no further run starts.
        progress: the progress line.
        as_json: print every event instead of rows.
        finished: called with every finished run.
    """

    def __init__(
        self,
        engine: Engine,
        interrupt: Interrupt,
        progress: Progress,
        *,
        as_json: bool = False,
        finished: Callable[[Run], None] | None = None,
    ) -> None:
        self._engine, self._interrupt, self._progress = engine, interrupt, progress
        self._as_json, self._finished = as_json, finished
        self._table = TerminalTable(_COLUMNS)
        self._titled = ""
        self._said: set[str] = set()
        self.runs: list[Run] = []
        self.size_texts: Mapping[str, str] = {}
        """The size format of each workload, for messages before a run reports its own."""
        self.tells_transfers = False
        """Whether copies were requested; a remark then says that the CPU needs none."""
        self.may_skip = False
        """Whether to skip unsupported runs on a device that the user did not name."""

    @property
    def results(self) -> list[RunFinished]:
        """The results so far, oldest first."""
        return [run.result for run in self.runs if run.result is not None]

    @property
    def has_failed(self) -> bool:
        """Whether a run failed, or was skipped on every device."""
        failed = (run for run in self.runs if run.state is RunState.FAILED)
        return any(not (self._is_skipped(run) and self._is_made_elsewhere(run)) for run in failed)

    def _is_skipped(self, run: Run) -> bool:
        """Return whether a run was refused on a device that the user did not name."""
        kinds = (FailureKind.BAD_REQUEST, FailureKind.DTYPE_UNSUPPORTED)
        refused = run.failure is not None and run.failure.kind in kinds
        return self.may_skip and refused and not run.has_begun

    def _is_made_elsewhere(self, run: Run) -> bool:
        return any(
            (result.size, result.dtype) == (run.request.size, run.request.dtype)
            for result in self.results
        )

    def make(self, plan: RunPlan) -> None:
        """Make all runs of a plan, and the further runs that their results ask for."""
        requests = plan.requests(len(self.runs) + 1)
        while requests and self.make_all(requests):
            requests = plan.next_requests(self.results, len(self.runs) + 1)

    def make_all(self, requests: Sequence[RunWorkload]) -> bool:
        """Make runs in order; return whether all were made."""
        for number, request in enumerate(requests):
            if self._is_over():
                return False
            run = Run(request)
            run.size_text = self.size_texts.get(request.workload, run.size_text)
            self.runs.append(run)
            self._make(run, f"{number + 1}/{len(requests)}")
            if self._is_over():
                note(f"Stopped after {len(run.series)} samples of {_title(run)}.")
        return not self._is_over()

    def _is_over(self) -> bool:
        return self._interrupt.is_asked

    def _make(self, run: Run, number: str) -> None:
        if not self._as_json and self._titled != run.request.workload:
            self._titled = run.request.workload
            self._said.clear()
            say(f"{self._titled}, time per call")
            say(self._table.heading)
        for event in answers(self._engine, run.request, self._interrupt):
            run.apply(event)
            if self._as_json:
                say_bytes(encode(event))
            self._progress.show(f"{number}  {_progress_text(run)}")
            self._note_failure(event, run)
        self._progress.clear()
        if run.result is not None:
            if not self._as_json:
                self._show(run.result)
            if self._finished is not None:
                self._finished(run)

    def _show(self, result: RunFinished) -> None:
        say(self._table.row(_cells(result, self.results)))
        lines = [*remarks(result)]
        if self.tells_transfers and is_cpu(result.device):
            lines.append(_NO_TRANSFERS.format(compute=format_duration(result.median_s)))
        for line in lines:
            # A workload's findings are the same at every size: print them once.
            if line not in self._said or line not in result.findings:
                say(f"{_INDENT}{line}")
        self._said.update(result.findings)

    def _note_failure(self, event: Event, run: Run) -> None:
        if isinstance(event, (RunFailed, RequestFailed, EngineEnded)) and run.failure:
            self._progress.clear()
            skipped = "skipped. " if self._is_skipped(run) else ""
            note(f"{_title(run)}: {skipped}{run.failure.message}")


def remarks(result: RunFinished) -> Iterator[str]:
    """Yield the remarks to print below a result's row, one line each."""
    for doubt in stamp_of(result).doubts:
        yield f"in doubt: {doubt}"
    if is_worth_a_line(result):
        yield is_this_normal(result)
    if result.loaded_s is not None and not is_cpu(result.device):
        loaded = format_duration(result.loaded_s)
        yield f"the card was already under load for {loaded} before the first sample"
    if result.computed_in not in ("", result.dtype):
        yield computed_in_words(result)
    if len(result.parts_s) > 1:
        yield f"per call: {_parts(result.parts_s.items())}"
    if result.peak_allocated_bytes is not None:
        yield f"peak memory: {result.peak_allocated_bytes / (1 << 20):.1f} MiB"
    if result.naive is not None:
        yield f"timed naively: {result.naive.sentence}"
    yield from result.findings


def _parts(parts_s: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {format_duration(seconds)}" for name, seconds in parts_s)


def _title(run: Run) -> str:
    request = run.request
    size = format_size(request.size, run.size_text)
    copies = " with copies" if request.transfers else ""
    return f"{request.workload} {size} {request.dtype} on {request.device}{copies}"


def _progress_text(run: Run) -> str:
    text = f"{_title(run)}: {run.phase or 'starting'}"
    if run.state is RunState.TIMING and run.summary:
        return f"{text} {format_percent(run.progress)}, {format_duration(run.summary.median_s)}"
    if run.expected_call_s and run.expected_call_s > 1:
        return f"{text}, one call takes about {format_duration(run.expected_call_s)}"
    return text


def _cells(result: RunFinished, results: Sequence[RunFinished]) -> list[str]:
    compared = speed_up(result, results)
    return [
        format_size(result.size, result.size_text),
        result.dtype,
        result.device + ("+copies" if result.transfers else ""),
        format_duration(result.median_s),
        spread_text(result.iqr_s, result.median_s, result.samples),
        str(result.samples),
        format_rate(result.throughput, result.throughput_unit),
        share_text(result),
        "" if compared is None else compared.cell,
    ]
