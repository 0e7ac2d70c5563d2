"""The terminal's runs: a row or the events of each, their verdicts, files and recordings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from gpu_studio.cli.answers import CommandEngine, RunPrinter
from gpu_studio.cli.command import WrongUseError
from gpu_studio.cli.output import TerminalTable, complain, note, now, print_event, print_line, save
from gpu_studio.cli.pc import TARGET, data_folder, read_inventory
from gpu_studio.core.benchmark.ceilings import is_this_normal, is_worth_a_line, share_text
from gpu_studio.core.benchmark.export import to_csv, to_json, to_markdown
from gpu_studio.core.benchmark.own_code import AllowedCode, question, read_own_code
from gpu_studio.core.benchmark.plan import RunPlan, in_turns
from gpu_studio.core.benchmark.recording import (
    RecordedPc,
    described_for_others,
    header_of,
    is_recordable,
    recording_of,
)
from gpu_studio.core.benchmark.run import Run, RunState, part_rows, spread_text
from gpu_studio.core.benchmark.trust import computed_in_words, doubts_of
from gpu_studio.core.benchmark.verdict import same_kind, speed_up, verdict_of
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import (
    EngineDescribed,
    RecordingHeader,
    TorchCard,
    identity_at,
)
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    OpenOwnCode,
    OwnCode,
    OwnCodeOpened,
    OwnCodePrinted,
    RunFinished,
    RunWorkload,
    WorkloadDescription,
)
from gpu_studio.core.texts import plain_text
from gpu_studio.core.units import counted, format_duration, format_percent, format_rate, format_size
from gpu_studio.hardware.cpu import are_cards_simulated, cpu_name

_YES = ("y", "yes")


def allowed_code(path: Path, *, is_allowed: bool) -> OwnCode:
    """Return the code of a file that may run; ask the user once per content.

    Args:
        path: the file.
        is_allowed: whether ``--yes`` was typed.

    Raises:
        WrongUseError: it may not run, or it is for another PC.
        StudioError: it cannot be read.
    """
    if TARGET.pc is not None:
        raise WrongUseError("Your own code runs on this PC only: leave out --on.")
    code = read_own_code(path)
    allowed = AllowedCode(data_folder())
    if is_allowed:
        allowed.add(code)
    if allowed.has(code):
        return code
    if not sys.stdin.isatty():
        raise WrongUseError(
            f"{plain_text(question(code))} Nobody can be asked here: add --yes to run it."
        )
    note(question(code))
    sys.stderr.write("Run it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in _YES:
        raise WrongUseError("Nothing was run.")
    allowed.add(code)
    return code


def show_printed(event: Event) -> None:
    """Show what the code printed, beside the results."""
    if isinstance(event, OwnCodePrinted):
        for line in event.text.rstrip("\n").split("\n"):
            note(f"  │ {plain_text(line)}")


_COLUMNS = (
    ("size", -14), ("dtype", 8), ("device", 13), ("median", -8), ("spread", -6), ("samples", -7),
    ("throughput", -12), ("of peak", -7), ("compared", -12),
)  # fmt: skip
_DISPENSABLE = ("samples", "of peak", "throughput", "spread", "dtype")
_INDENT = " " * 16
EXPORTS = (".csv", ".json", ".md")
IN_DOUBT = "in doubt: "


class BenchRuns(RunPrinter):
    """The runs of plans: a row for each, or its events.

    Args:
        work: the engine that makes them; after Ctrl-C, no further run starts.
        described: says which runs may take turns, how sizes are written, and what cards there are;
            the runs of a recording do not take turns.
        finished: called with every finished run.
    """

    def __init__(
        self,
        work: CommandEngine,
        described: EngineDescribed,
        *,
        finished: Callable[[Run], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._work, self._finished = work, finished
        self._workloads = {one.name: one for one in described.workloads}
        self.size_texts = {one.name: one.size_text for one in described.workloads}
        self._cards = {card.address: card for card in described.cards}
        self._table = TerminalTable(_COLUMNS, _DISPENSABLE)
        self._titled = self._number = ""
        self._printed: set[str] = set()
        self.may_skip = False
        """Whether to skip unsupported runs on a device that the user did not name."""

    @property
    def exit_status(self) -> int:
        """The exit status: whether a run failed, was skipped on every device, or is in doubt."""
        failed = (run for run in self.runs if run.state is RunState.FAILED)
        is_done = all(self._is_skipped(run) and self._is_made_elsewhere(run) for run in failed)
        return self._work.exit_status(is_done=is_done, in_doubt=is_in_doubt(self.results))

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

    def open_code(self, code: OwnCode) -> tuple[WorkloadDescription, float]:
        """Return the user's own code as a workload, and the seconds that a run of it needs.

        Raises:
            StudioError: it cannot be run, or it failed; the sentence names the line.
        """
        self._work.progress.show(f"Running {code.name} once on the CPU …")
        try:
            opened = self._work.answer(OpenOwnCode(code=code), OwnCodeOpened, printer=self)
        except StudioError as error:
            raise StudioError(error.kind, f"{code.name}: {error}") from error
        finally:
            self._work.progress.clear()
        note(f"One run on the CPU took {format_duration(opened.call_s)}.")
        self._workloads[code.name] = opened.workload
        self.size_texts[code.name] = opened.workload.size_text
        return opened.workload, opened.least_s

    def show(self, event: Event) -> None:
        show_printed(event)

    def make(self, plan: RunPlan) -> None:
        """Make all runs of a plan, and the further runs that their results ask for."""
        requests = plan.requests(len(self.runs) + 1)
        while requests and self.make_all(requests):
            requests = plan.next_requests(self.results, len(self.runs) + 1)

    def make_all(self, requests: Sequence[RunWorkload]) -> bool:
        """Make runs in order, also after an engine that ended; return whether Ctrl-C did not."""
        workload = self._workloads.get(requests[0].workload) if requests else None
        done = 0
        for group in in_turns(requests, workload):
            if self._work.interrupt.is_asked:
                break
            done += len(group)
            self._number = f"{done}/{len(requests)}"
            self._work.run([self.begin(group)], self)
        return not self._work.interrupt.is_asked

    def on_begun(self, run: Run) -> None:
        run.size_text = self.size_texts.get(run.request.workload, run.size_text)
        run.card = identity_at(run.request.device, self._cards.values())
        if not self._work.is_json and self._titled != run.request.workload:
            self._titled = run.request.workload
            self._printed.clear()
            print_line(f"{self._titled}, time per call")
            print_line(self._table.heading, style="dim")

    def line(self, run: Run) -> str:
        return f"{self._number}  {_progress_text(run)}"

    def complaint(self, event: Event) -> str:
        return ""

    def end(self, last: Event) -> None:
        for run in self._group:
            if run.failure is not None:
                skipped = "skipped. " if self._is_skipped(run) else ""
                complain(f"{_title(run)}: {skipped}{run.failure.message}")
            if run.result is not None:
                if not self._work.is_json:
                    self._show(run.result)
                self._finished(run)
            if self._work.interrupt.is_asked:
                note(f"Stopped after {counted(len(run.series), 'sample')} of {_title(run)}.")

    def _show(self, result: RunFinished) -> None:
        self._table.print_row(_cells(result, self.results))
        for line in remarks(result, self._cards.get(result.device)):
            # A workload's findings are the same at every size: print them once.
            if line not in self._printed or line not in result.details.findings:
                print_line(f"{_INDENT}{line}")
        self._printed.update(result.details.findings)


def remarks(result: RunFinished, card: TorchCard | None = None) -> Iterator[str]:
    """Yield the remarks to print below a result's row, one line each."""
    for doubt in doubts_of(result):
        yield f"{IN_DOUBT}{doubt.sentence}"
    if is_worth_a_line(result):
        yield is_this_normal(result, card)
    if result.conditions.loaded_s is not None and not is_cpu(result.device):
        loaded = format_duration(result.conditions.loaded_s)
        yield f"the card was already under load for {loaded} before the first sample"
    if result.conditions.computed_in not in ("", result.dtype):
        yield computed_in_words(result)
    if len(result.details.parts_s) > 1:
        parts = (f"{name} {time}" for name, time, _ in part_rows(result))
        yield f"per call: {', '.join(parts)}"
    if result.details.peak_allocated_bytes is not None:
        yield f"peak memory: {result.details.peak_allocated_bytes / (1 << 20):.1f} MiB"
    if result.details.naive is not None:
        yield f"timed naively: {result.details.naive.sentence}"
    yield from result.details.findings


def _title(run: Run) -> str:
    request = run.request
    size = format_size(request.size, run.size_text)
    title = f"{request.workload} {size} {request.dtype} on {request.device}"
    return f"{title} {request.with_copies}".rstrip()


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
        "" if compared is None else compared.words,
    ]


def verdicts(results: Sequence[RunFinished]) -> Iterator[str]:
    """Yield one verdict for each group of comparable results."""
    groups: list[list[RunFinished]] = []
    for result in results:
        alike = next((group for group in groups if same_kind(group[0], result)), None)
        if alike is None:
            groups.append(alike := [])
        alike.append(result)
    yield from (verdict_of(group).sentence for group in groups)


def is_in_doubt(results: Sequence[RunFinished]) -> bool:
    """Return whether a result is wrong, or which device is faster rests on doubtful times."""
    are_several = len({result.device for result in results}) > 1
    return any(
        result.verified is False or (are_several and bool(doubts_of(result))) for result in results
    )


def export(runs: Sequence[Run], description: EngineDescribed, path: Path) -> None:
    """Write runs to a file in the format of its extension.

    Raises:
        StudioError: the file cannot be written.
    """
    writers = {
        ".csv": lambda: to_csv(runs),
        ".json": lambda: to_json(runs, description, now()),
        ".md": lambda: to_markdown(runs),
    }
    save(path, writers[path.suffix.lower()]().encode())


RECORDING = ".jsonl"
"""The ending of a file that becomes a recording."""


class Recorder:
    """Describes the PC that makes the runs, and writes them to a file.

    Args:
        log_path: the log file of the sensor reader, which reads the driver's version.
        as_json: whether events are printed; `begin` then prints the header first.
        path: the file for `save`; None writes none.
    """

    def __init__(self, log_path: Path, *, as_json: bool, path: Path | None) -> None:
        self._log_path, self._as_json, self._path = log_path, as_json, path
        self._header: RecordingHeader | None = None
        self._described: EngineDescribed | None = None

    def begin(
        self, described: EngineDescribed, workloads: Collection[str], devices: Collection[str]
    ) -> None:
        """Record the PC of the runs that follow.

        Args:
            described: the engine.
            workloads: the names of the workloads to run.
            devices: the addresses of the devices to use.
        """
        if not self._as_json and self._path is None:
            return
        self._described = described
        self._header = header_of(self._pc(described, devices), described, now())
        if self._as_json:
            print_event(self._header)
            print_event(described_for_others(described, workloads))

    def save(
        self,
        runs: Sequence[Run],
        frames: Mapping[str, Sequence[FramesOpened | FrameReady]] | None = None,
    ) -> None:
        """Write the file, if there is to be one.

        Args:
            runs: the runs.
            frames: the frames to keep, as for `recording_of`.

        Raises:
            StudioError: the file cannot be written.
        """
        if self._path is None or self._header is None or self._described is None:
            return
        if not any(map(is_recordable, runs)):
            note("No run started, so there is nothing to record.")
            return
        save(self._path, recording_of(self._header, self._described, runs, frames))

    def _pc(self, described: EngineDescribed, devices: Collection[str]) -> RecordedPc:
        names = {card.address: card.name for card in described.cards}
        cards = tuple(names.get(device, device) for device in sorted(devices) if not is_cpu(device))
        return RecordedPc(
            processor=processor_name(self._log_path),
            system=TARGET.system_name,
            cards=cards,
            driver_version=self._driver_version() if cards else None,
            is_simulated=are_cards_simulated() and bool(cards),
        )

    def _driver_version(self) -> str | None:
        try:
            return read_inventory(self._log_path).driver.version
        except StudioError:
            return None


def processor_name(log_path: Path) -> str:
    """Return the name of the processor of the PC that a command uses."""
    return cpu_name() if TARGET.pc is None else read_inventory(log_path).cpu.name
