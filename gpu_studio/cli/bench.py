"""``gpu-studio bench``: the window's benchmark in a terminal, by the same engine and verdict."""

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
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import EngineEnded, RequestFailed, RunFailed, encode
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
    from gpu_studio.core.protocol import (
        EngineDescribed,
        Event,
        RunFinished,
        RunWorkload,
        WorkloadDescription,
    )

EXPORTS = (".csv", ".json", ".md", ".txt")
_NO_TRANSFERS = (
    "of one call: compute {compute}; nothing is copied, since the operands are in the CPU's memory"
)
_ONE_DEVICE = "There is no crossover to look for: only one device was measured."
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
    """Run everything that was asked for; return the exit status.

    Args:
        request: what was asked for.
        log_path: where the engine writes its log.
        as_json: print every event instead of a table.
        kept: where finished runs are kept; None for nowhere.
        export_to: a file for the results, whose ending says the format.
        record_to: a file for all events, to be replayed.

    Raises:
        WrongUseError: there is no such workload, or it does not run so.
        StudioError: no such device, no engine, or a file that cannot be written.
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
    """Return how all runs together went."""
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
    """Do something with an engine of its own; return its runs, and whether Ctrl-C ended them.

    Raises:
        StudioError: the engine does not start; or what the work raises.
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
    """Yield the sentence about each kind of work."""
    for kind in _kinds(results):
        yield verdict(kind)


def export(runs: Sequence[Run], description: EngineDescribed, path: Path) -> None:
    """Write runs to a file in the format of its ending.

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
        # CSV brings its own ends of lines.
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(made[path.suffix.lower()]())
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StudioError(
            FailureKind.NOT_SAVED, f"The results cannot be written to {path}: {reason}."
        ) from error


def check_export(path: Path) -> Path:
    """Return a path whose ending names a format, and to which a file can be written.

    Raises:
        WrongUseError: it names none; its folder is not there, or it is a folder itself.
    """
    if path.suffix.lower() not in EXPORTS:
        raise WrongUseError(
            f"“{path.name[:40]}” does not say a format: let it end in {', '.join(EXPORTS)}."
        )
    return check_place(path)


def _no_crossover(results: Sequence[RunFinished]) -> str:
    """Say why a sweep has no crossover to look for."""
    wrong = sorted({result.device for result in results if result.verified is False})
    if wrong:
        return f"There is no crossover to look for: wrong results on {', '.join(wrong)}."
    return _ONE_DEVICE


def _conclude(results: Sequence[RunFinished], is_sweep: bool, *, as_json: bool) -> None:
    """Say what the results come to; beside JSON only what the events do not say."""
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
    """What was asked for; None leaves the choice to the workload, or takes all devices."""

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
    """Return the devices that an engine can use."""
    return ["cpu", *(f"cuda:{index}" for index in range(description.device_count))]


def find_workload(description: EngineDescribed, name: str) -> WorkloadDescription:
    """Return a workload.

    Raises:
        WrongUseError: there is none of that name.
        StudioError: it cannot run here, with what would make it run.
    """
    found = next((one for one in description.workloads if one.name == name), None)
    if found is None:
        names = ", ".join(one.name for one in description.workloads)
        raise WrongUseError(f"There is no workload “{name[:40]}”; there are {names}.")
    if found.skipped:
        raise StudioError(FailureKind.BAD_REQUEST, f"{found.name} cannot run here: {found.skipped}")
    return found


def plans(request: BenchRequest, description: EngineDescribed) -> list[RunPlan]:
    """Return the plans of a request, one a dtype, the CPU before the cards.

    Raises:
        WrongUseError: the workload is not there, or does not run so.
        StudioError: a device is not there, or the workload cannot run here.
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
                f"“{value[:20]}” is no value of {name}: choose {', '.join(there_are[name])}."
            )
    return asked


def _devices(
    asked: Sequence[str] | None, workload: WorkloadDescription, description: EngineDescribed
) -> list[str]:
    there_are = addresses(description)
    usable = [device for device in there_are if device.partition(":")[0] in workload.device_kinds]
    for device in asked or ():
        if device not in there_are:
            raise StudioError(FailureKind.NO_SUCH_DEVICE, _no_such(device, description))
        if device not in usable:
            kinds = " and ".join(workload.device_kinds)
            raise WrongUseError(f"{workload.name} does not run on {device}: it is for {kinds}.")
    if not usable:
        reason = description.cuda_reason or "there is no card that PyTorch can use"
        raise StudioError(FailureKind.NO_SUCH_DEVICE, f"{workload.name} needs a card: {reason}")
    return sorted(asked or usable, key=lambda device: device != "cpu")


def _no_such(device: str, description: EngineDescribed) -> str:
    there_are = addresses(description)
    verb = "is" if len(there_are) == 1 else "are"
    reason = f" {description.cuda_reason}" if description.cuda_reason else ""
    return f"There is no {device[:20]} here; there {verb} {', '.join(there_are)}.{reason}"


class BenchRuns:
    """Makes the runs of plans and shows each.

    Args:
        engine: makes them.
        interrupt: Ctrl-C ends the run under way, and no other begins.
        progress: the line that says what is going on.
        as_json: print every event instead of rows.
        finished: is called with every run that finished.
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
        """How each workload writes its sizes, for what is said before a run tells it."""
        self.tells_transfers = False
        """Whether the copies were asked for: on the CPU there are none, which is said."""
        self.may_skip = False
        """Whether what only some devices can do is skipped on the others, which nobody named."""

    @property
    def results(self) -> list[RunFinished]:
        """The results so far, oldest first."""
        return [run.result for run in self.runs if run.result is not None]

    @property
    def has_failed(self) -> bool:
        """Whether a run ended by an error, or was skipped on every device."""
        failed = (run for run in self.runs if run.state is RunState.FAILED)
        return any(not (self._is_skipped(run) and self._is_made_elsewhere(run)) for run in failed)

    def _is_skipped(self, run: Run) -> bool:
        """Return whether a run was refused where nobody asked for it by name."""
        refused = run.failure is not None and run.failure.kind is FailureKind.BAD_REQUEST
        return self.may_skip and refused and not run.has_begun

    def _is_made_elsewhere(self, run: Run) -> bool:
        return any(
            (result.size, result.dtype) == (run.request.size, run.request.dtype)
            for result in self.results
        )

    def make(self, plan: RunPlan) -> None:
        """Make all runs of a plan, and those that follow from their results."""
        requests = plan.requests(len(self.runs) + 1)
        while requests and self.make_all(requests):
            requests = plan.next_requests(self.results, len(self.runs) + 1)

    def make_all(self, requests: Sequence[RunWorkload]) -> bool:
        """Make runs in their order; return whether all were made."""
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
            say(f"{self._titled}, time of one call")
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
        if self.tells_transfers and result.device == "cpu":
            lines.append(_NO_TRANSFERS.format(compute=format_duration(result.median_s)))
        for line in lines:
            # What a workload has to say of itself is the same at every size.
            if line not in self._said or line not in result.findings:
                say(f"{_INDENT}{line}")
        self._said.update(result.findings)

    def _note_failure(self, event: Event, run: Run) -> None:
        if isinstance(event, (RunFailed, RequestFailed, EngineEnded)) and run.failure:
            self._progress.clear()
            skipped = "skipped. " if self._is_skipped(run) else ""
            note(f"{_title(run)}: {skipped}{run.failure.message}")


def remarks(result: RunFinished) -> Iterator[str]:
    """Yield what has to be said of a result beside its row, a line each."""
    for doubt in stamp_of(result).doubts:
        yield f"in doubt: {doubt}"
    if is_worth_a_line(result):
        yield is_this_normal(result)
    if result.loaded_s is not None and result.device != "cpu":
        loaded = format_duration(result.loaded_s)
        yield f"the card had worked for {loaded} when the first sample was taken"
    if result.computed_in not in ("", result.dtype):
        yield computed_in_words(result)
    if len(result.parts_s) > 1:
        yield f"of one call: {_parts(result.parts_s.items())}"
    if result.peak_allocated_bytes is not None:
        yield f"peak memory: {result.peak_allocated_bytes / (1 << 20):.1f} MiB"
    if result.naive is not None:
        yield f"a naive script: {result.naive.sentence}"
    yield from result.findings


def _parts(parts_s: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {format_duration(seconds)}" for name, seconds in parts_s)


def _title(run: Run) -> str:
    request = run.request
    size = format_size(request.size, run.size_text)
    copies = " with transfers" if request.transfers else ""
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
