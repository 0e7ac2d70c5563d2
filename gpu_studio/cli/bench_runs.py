"""Runs one after the other in a terminal: a row each when it is over, or every event as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.answers import answers
from gpu_studio.cli.screen import Table, note, say, say_bytes
from gpu_studio.core.benchmark.ceiling_words import is_this_normal, is_worth_a_line, share_text
from gpu_studio.core.benchmark.run_words import spread_text
from gpu_studio.core.benchmark.runs import Run, RunState
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.benchmark.verdict import speed_up
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.protocol import EngineEnded, RequestFailed, RunFailed, encode
from gpu_studio.core.units import (
    format_duration,
    format_percent,
    format_rate,
    format_ratio,
    format_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpu_studio.cli.answers import Interrupt
    from gpu_studio.cli.screen import Progress
    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.engine import Engine
    from gpu_studio.core.protocol import Event, RunFinished, RunWorkload

_COLUMNS = (
    ("size", -14), ("dtype", 8), ("device", 13), ("median", -8), ("spread", -6), ("samples", -7),
    ("throughput", -12), ("of peak", -7), ("speed-up", -8),
)  # fmt: skip
_INDENT = " " * 16


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
        self._table = Table(_COLUMNS)
        self._titled = ""
        self._said: set[str] = set()
        self.runs: list[Run] = []
        self.size_texts: Mapping[str, str] = {}
        """How each workload writes its sizes, for what is said before a run tells it."""
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
        for line in remarks(result):
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
    ratio = speed_up(result, results)
    return [
        format_size(result.size, result.size_text),
        result.dtype,
        result.device + ("+copies" if result.transfers else ""),
        format_duration(result.median_s),
        spread_text(result.iqr_s, result.median_s, result.samples),
        str(result.samples),
        format_rate(result.throughput, result.throughput_unit),
        share_text(result),
        "" if ratio is None else format_ratio(ratio),
    ]
