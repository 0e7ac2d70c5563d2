"""A run, shared by curve, table, verdict and export."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.trust import doubts_of, facts_of, trust_sign
from gpu_studio.core.engine import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    SQUARE,
    RunConditions,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunTimes,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.statistics import (
    FEWEST_ROUNDS,
    Summary,
    interval_of_rounds,
    outlier_bound,
    round_medians,
    summarize,
)
from gpu_studio.core.units import format_duration, format_percent, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.message import Event

_SHORT_CAUSES = {
    FailureKind.OUT_OF_MEMORY: "out of memory",
    FailureKind.TOO_LARGE: "too large",
    FailureKind.TOO_SLOW: "too slow",
    FailureKind.DTYPE_UNSUPPORTED: "not supported",
    FailureKind.NO_KERNEL: "no code for it",
    FailureKind.ENGINE_ENDED: "PyTorch ended",
    FailureKind.PC_SLEPT: "PC slept",
    FailureKind.LINE_LOST: "line lost",
    FailureKind.OWN_CODE: "your code",
}


class RunState(Enum):
    """The state of a run.

    ::

        WAITING ─► PREPARING ─► TIMING ─► FINISHED   (its time budget was spent)
                       └───────────┴────► STOPPED    (by the user; samples so far are kept)
                       └───────────┴────► FAILED     (by an error; samples so far are kept)
    """

    WAITING = "waiting"
    PREPARING = "preparing"
    TIMING = "timing"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether the run will not change anymore."""
        return self in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)


class Batch(NamedTuple):
    """A group of samples that arrived together: those before ``end`` and after the last batch.

    ``begin_s`` and ``end_s`` are by the clock of the runs in turns (`SamplesMeasured`).
    """

    end: int
    calls_per_sample: int
    spent_s: float
    begin_s: float
    end_s: float
    round_number: int


class Run:
    """One workload on one device with its parameters, its samples and its result."""

    def __init__(self, request: RunWorkload) -> None:
        from gpu_studio.core.series import Series  # numpy: 80 ms

        self.request = request
        self.state = RunState.WAITING
        self.phase = ""
        self.expected_call_s: float | None = None
        self.calls_per_sample = 0
        self.spent_s = 0.0
        self.series = Series()
        self.batches: list[Batch] = []
        self.result: RunFinished | None = None
        self.failure: Failure | None = None
        self.snippet = ""
        self.size_text = SQUARE
        self.recording: str | None = None
        self.device_name = ""
        self.card = ""
        """The `Device.identity` of its device, if this PC has it."""
        self.has_begun = False
        self.is_without_pytorch = False
        self.is_clocked = False
        """Whether its samples have the time at which they were taken, beside those of others."""
        self.other_processes: bool | None = None
        """Whether other programs worked on its device, as far as that is known before its end."""
        self.last_frame: FrameReady | None = None
        self.finish_steps: int | None = None
        self._summary: Summary | None = None
        self._interval_s: tuple[float, float] | None = None

    def move_to(self, address: str) -> None:
        """Follow the device, which has another name in a new engine."""
        self.request = msgspec.structs.replace(self.request, device=address)
        if self.result is not None:
            self.result = msgspec.structs.replace(self.result, device=address)

    @property
    def size_label(self) -> str:
        """The size in the workload's format: ``512 × 512``."""
        return format_size(self.request.size, self.size_text)

    @property
    def progress(self) -> float:
        """The share of the time budget, or of the requested calls, that is done; 0 to 1."""
        if self.state.is_over:
            return 1.0
        if self.request.calls is not None:
            return min(len(self.series) * self.calls_per_sample / self.request.calls, 1.0)
        # The load of a sustained run gives no samples, but you wait for it, too.
        load_s = self.request.load_s
        whole_s = load_s + self.request.timed_s
        done_s = self.spent_s + (load_s if self.state is RunState.TIMING else 0.0)
        return min(done_s / whole_s, 1.0) if whole_s else 0.0

    @property
    def summary(self) -> Summary | None:
        """The statistics of the samples so far; None before the first sample."""
        if self._summary is None or self._summary.samples != len(self.series):
            import numpy as np  # 80 ms

            # numpy sorts first: in a long run, Python's own sort would make the window stutter.
            self._summary = summarize(np.sort(self.series.values).tolist())
        return self._summary

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """The 95 % interval of the median, in seconds; None during the run and without samples.

        It needs the samples in their order, unlike the summary of a run in progress.
        """
        if self.result is not None:
            return self.result.ci95_s
        if self._interval_s is None and self.state.is_over and len(self.series):
            values = self.series.values.tolist()
            self._interval_s = interval_of_rounds(values)
        return self._interval_s

    @property
    def outliers(self) -> int:
        """The number of samples marked as outliers; see `statistics.outlier_bound`."""
        summary = self.summary
        return int((self.series.values > outlier_bound(summary)).sum()) if summary else 0

    def apply(self, event: Event) -> bool:
        """Apply an event; return whether it belongs to this run."""
        run_id = getattr(event, "run_id", self.request.run_id)
        if run_id != self.request.run_id or self.state.is_over:
            return False
        match event:
            case RunStarted():
                self.state, self.has_begun = RunState.PREPARING, True
                self.snippet, self.recording = event.snippet, event.recording
                self.size_text = event.size_text
                self.device_name = event.device_name or self.device_name
            case RunPhaseChanged():
                self._enter_phase(event)
            case SamplesMeasured():
                self.state = RunState.TIMING
                self.calls_per_sample = event.calls_per_sample
                self.spent_s = event.spent_s
                self._append(event)
            case FramesOpened():
                pass  # what shows the frames keeps their size
            case FrameReady():
                self.last_frame = event
            case RunFinished():
                self.state, self.result = RunState.FINISHED, event
            case RunStopped():
                self.state = RunState.STOPPED
            case RunFailed() | RequestFailed():
                self.state, self.failure = RunState.FAILED, event.failure
            case EngineEnded():
                self._engine_ended(event)
            case _:
                return False
        return True

    def _append(self, batch: SamplesMeasured) -> None:
        """Add samples with the time of each one's end: they followed each other without a pause.

        In a file of an older version, the time is that of the timed part alone.
        """
        import numpy as np  # 80 ms

        last_s = self.batches[-1].end_s if self.batches else 0.0
        end_s = max(batch.spent_s if batch.ended_s is None else batch.ended_s, last_s)
        ends_s = np.cumsum(batch.samples_s) * batch.calls_per_sample
        begin_s = max(end_s - float(ends_s[-1]), last_s) if len(ends_s) else end_s
        self.series.append(batch.samples_s, np.minimum(begin_s + ends_s, end_s))
        self.is_clocked = batch.ended_s is not None
        self.other_processes = batch.other_processes
        self.batches.append(
            Batch(
                len(self.series), batch.calls_per_sample, batch.spent_s, begin_s, end_s,
                batch.round_number,
            )
        )  # fmt: skip

    def _enter_phase(self, event: RunPhaseChanged) -> None:
        self.phase = event.phase
        if event.expected_call_s is not None:
            self.expected_call_s = event.expected_call_s
        self.finish_steps = event.finish_steps or self.finish_steps
        if event.phase == "timing":
            self.state = RunState.TIMING

    def _engine_ended(self, event: EngineEnded) -> None:
        if event.stopped:
            self.state = RunState.STOPPED
            return
        self.state = RunState.FAILED
        self.failure = Failure(FailureKind.ENGINE_ENDED, describe_exit(event.exit_code))


def state_text(run: Run) -> str:
    """Return a run's state, with the reason if it failed."""
    if run.failure is not None:
        return f"{run.state.value}: {run.failure.message}"
    return run.state.value


def sign_of(run: Run) -> str:
    """Return a run's state or trust in short, with a sign that works without color."""
    if run.result is not None:
        return trust_sign(run.result)
    if run.state is RunState.STOPPED:
        return "■ stopped" + ", recording" * bool(run.recording)
    if run.state is RunState.FAILED:
        return f"✖ {_short_cause(run)}"
    return f"… {run.phase or run.state.value}" + ", recording" * bool(run.recording)


def _short_cause(run: Run) -> str:
    """Return why a run failed in two or three words, for the cell of a table."""
    if run.failure is None:
        return run.state.value
    return _SHORT_CAUSES.get(run.failure.kind, run.state.value)


def interval_words(interval_s: tuple[float, float], samples: int, rounds: int = 0) -> str:
    """Return the interval of a median in words. It says nothing about another run.

    Args:
        interval_s: its ends.
        samples: fewer than six have no 95 % interval, only a range, and a single one has neither.
        rounds: those of the run, which count instead; 0 if unknown.
    """
    low, high = (format_duration(end) for end in interval_s)
    if samples == 1:
        return "from one sample"
    if (rounds or samples) < FEWEST_ROUNDS:
        return f"all between {low} and {high}"
    return f"95\u202f% interval within this run {low} to {high}"


def spread_text(iqr_s: float, median_s: float, samples: int) -> str:
    """Return the IQR as a share of the median: ``1.2 %``; a single sample has none: ``–``."""
    return format_percent(iqr_s / median_s) if samples > 1 and median_s else "–"


def describe_run(run: Run, device_label: str, title: str = "") -> list[str]:
    """Return everything known about a run, a sentence per line.

    Args:
        run: at any stage.
        device_label: the name of its device in the table.
        title: what to call its workload; its name if empty.
    """
    request = run.request
    texts = (title or request.workload, run.size_label, request.dtype, mode_words(request))
    what = [part for part in texts if part]
    name = run.result.device_name if run.result else device_label
    lines = [f"{' · '.join(what)} · {_both_names(name, device_label)}: {_median(run)}"]
    lines += _samples(run)
    if run.result is not None:
        doubts = [doubt.sentence for doubt in doubts_of(run.result)]
        if doubts:
            lines.append(f"▲ {_capitalized('; '.join(doubts))}.")
        sign = "✔" if run.result.verified else "·"
        lines.append(f"{sign} {_capitalized('; '.join(facts_of(run.result)))}.")
    elif run.state.is_over:
        sign = f"✖ {state_text(run)}" if run.failure is not None else sign_of(run)
        lines.append(f"{sign.rstrip('.')}.")
    if run.recording:
        lines.append(f"Recording: {run.recording}.")
    return lines


def _both_names(full: str, short: str) -> str:
    """Return the two names of a device, or the full one if it has the short one in it."""
    return full if short in full else f"{short} ({full})"


def _median(run: Run) -> str:
    summary = run.summary
    if summary is None:
        return "no results." if run.state.is_over else "no results yet."
    if summary.samples == 1:
        return f"{format_duration(summary.median_s)} per call, from one sample."
    text = f"{format_duration(summary.median_s)} per call (median)"
    if run.interval_s is None:
        return f"{text} so far."
    rounds = len(run.result.rounds_s) if run.result is not None else 0
    return f"{text}, {interval_words(run.interval_s, summary.samples, rounds)}."


def _samples(run: Run) -> list[str]:
    summary = run.summary
    if summary is None:
        return []
    count, calls = len(run.series), run.calls_per_sample
    text = f"{count} {_plural('sample', count)} of {calls} {_plural('call', calls)}"
    if count == 1:
        return [f"{text}."]
    text += (
        f"; half of them are within {format_duration(summary.iqr_s)} "
        f"({format_percent(summary.relative_iqr)}), 99 of 100 under "
        f"{format_duration(summary.p99_s)}."
    )
    outliers = run.outliers
    if not outliers:
        return [text]
    bound = format_duration(outlier_bound(summary))
    verb = "lies" if outliers == 1 else "lie"
    return [
        f"{text} {outliers} {_plural('outlier', outliers)} {verb} over {bound} (three IQR above "
        "the median), counted like all others."
    ]


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


# The meaning of each part for beginners; other names explain themselves.
_MEANINGS = {
    "copy in": "copying the operands to the card",
    "launch": "launching the work on the card",
    "compute": "computing",
    "copy out": "copying the result back",
    "loading": "loading and preparing the data",
    "copy": "copying",
    "copying": "copying the data to the device",
    "computing": "computing",
}


def part_rows(result: RunFinished) -> list[tuple[str, str, str]]:
    """Return each part of a call with its time and its share of the total."""
    total_s = sum(result.details.parts_s.values())
    return [
        (name, format_duration(part_s), format_percent(part_s / total_s) if total_s else "–")
        for name, part_s in result.details.parts_s.items()
    ]


PARTS_BESIDE_MEDIAN = (
    "The parts are timed one after the other, in a call of their own. The median may be shorter: "
    "parts overlap in a whole call, and a run without copies leaves them out."
)
"""What to say beside parts, because their sum is not the median."""


def parts_sentence(result: RunFinished, device: str) -> str:
    """Return the longest part of a call, in words; empty if the call was not split.

    Args:
        result: with its ``parts_s``.
        device: the name of its device.
    """
    total_s = sum(result.details.parts_s.values())
    if not total_s:
        return ""
    name, longest_s = max(result.details.parts_s.items(), key=lambda part: part[1])
    if len(result.details.parts_s) == 1:
        return f"{device}: all of {format_duration(total_s)} is {_MEANINGS.get(name, name)}."
    return (
        f"{device}: {format_percent(longest_s / total_s)} of {format_duration(total_s)} is "
        f"{_MEANINGS.get(name, name)}."
    )


# ── turns ────────────────────────────────────────────────────────────────────────────────────────


_MOST_SAMPLES = 2000  # of a run: while it goes on, its claim is told a few times a second


class Turn(NamedTuple):
    """A time in which the samples of one run alone were taken.

    ``first`` is the position of its first sample in the run.
    """

    run: Run
    first: int
    begin_s: float
    end_s: float


def turns_of(runs: Sequence[Run]) -> list[Turn]:
    """Return the turns of runs by the clock of their samples, in order.

    Two rounds of a run without another's between them are one turn.
    """
    lines: list[tuple[float, int, int, Batch]] = []
    for number, run in enumerate(runs):
        first = 0
        for batch in run.batches:
            lines.append((batch.begin_s, number, first, batch))
            first = batch.end
    turns: list[Turn] = []
    for begin_s, number, first, batch in sorted(lines, key=lambda line: line[:3]):
        run = runs[number]
        if turns and turns[-1].run is run:
            turns[-1] = turns[-1]._replace(end_s=batch.end_s)
        else:
            turns.append(Turn(run, first, begin_s, batch.end_s))
    return turns


def results_so_far(runs: Sequence[Run]) -> list[RunFinished]:
    """Return what the samples of runs in turns would say if they ended now, for a claim.

    Nothing is known yet about the check; of the conditions only whether other programs worked too.
    """
    return [_so_far(run) for run in runs if len(run.series) and run.is_clocked]


def _so_far(run: Run) -> RunFinished:
    summary, starts, first = run.summary, list[int](), 0
    assert summary is not None
    rounds = 0
    for batch in run.batches:
        if batch.round_number != rounds:
            rounds = batch.round_number
            starts.append(first)
        first = batch.end
    every = -(-summary.samples // _MOST_SAMPLES)
    samples_s = run.series.values[::every].tolist()
    starts = [first // every for first in starts]
    return RunFinished(
        run_id=run.request.run_id,
        **run.request.parameters,
        device_name=run.device_name,
        median_s=summary.median_s,
        iqr_s=summary.iqr_s,
        ci95_s=interval_of_rounds(samples_s, starts),
        rounds_s=round_medians(samples_s, starts),
        samples=summary.samples,
        calls_per_sample=run.calls_per_sample,
        throughput=0.0,
        throughput_unit="",
        times=RunTimes(first_call_s=0.0, warm_up_s=0.0, elapsed_s=0.0),
        conditions=RunConditions(other_processes=run.other_processes),
        size_text=run.size_text,
        turns="so far",
    )
