"""A run as everybody reads it: curve, table, verdict and export look at the same object."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import SQUARE
from gpu_studio.core.protocol import (
    EngineEnded,
    Event,
    RequestFailed,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.statistics import Summary, grouped_interval, outlier_bound, summarize
from gpu_studio.core.units import format_size

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.trust import TrustStamp


class RunState(Enum):
    """Where a run is.

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
        """Whether nothing more will come."""
        return self in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)


class Batch(NamedTuple):
    """Which samples came together: those before ``end`` that are in no batch before it."""

    end: int
    calls_per_sample: int
    spent_s: float


class Run:
    """One workload on one device with its parameters, its samples and its result."""

    def __init__(self, request: RunWorkload) -> None:
        # numpy is imported with the first run, not with the window.
        from gpu_studio.core.series import Series

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
        self.has_begun = False
        self._summary: Summary | None = None
        self._interval_s: tuple[float, float] | None = None

    @property
    def size_label(self) -> str:
        """The size as the workload writes it: ``512 × 512``."""
        return format_size(self.request.size, self.size_text)

    @property
    def progress(self) -> float:
        """The share of the time budget that is spent, or of the calls asked for; 0 to 1."""
        if self.state.is_over:
            return 1.0
        if self.request.calls is not None:
            return min(len(self.series) * self.calls_per_sample / self.request.calls, 1.0)
        return min(self.spent_s / self.request.budget_s, 1.0) if self.request.budget_s else 0.0

    @property
    def summary(self) -> Summary | None:
        """The statistics of the samples so far; None before the first."""
        if self._summary is None or self._summary.samples != len(self.series):
            import numpy as np

            # numpy sorts first: for a long run Python's own sort would be felt in the window.
            self._summary = summarize(np.sort(self.series.values).tolist())
        return self._summary

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """The 95 % interval of the median, seconds; None while samples come, and without any.

        It takes the samples in their order, which the summary of a run under way does not.
        """
        if self.result is not None:
            return self.result.ci95_s
        if self._interval_s is None and self.state.is_over and len(self.series):
            values = self.series.values.tolist()
            self._interval_s = grouped_interval(values, self.calls_per_sample)
        return self._interval_s

    @property
    def outliers(self) -> int:
        """How many samples are marked as outliers; see `statistics.outlier_bound`."""
        summary = self.summary
        return int((self.series.values > outlier_bound(summary)).sum()) if summary else 0

    @property
    def stamp(self) -> TrustStamp | None:
        """The trust stamp of the result; None while there is none."""
        from gpu_studio.core.benchmark.trust import stamp_of

        return stamp_of(self.result) if self.result else None

    def apply(self, event: Event) -> bool:
        """Take over what an event says; return whether it was about this run."""
        run_id = getattr(event, "run_id", self.request.run_id)
        if run_id != self.request.run_id or self.state.is_over:
            return False
        match event:
            case RunStarted():
                self.state, self.has_begun = RunState.PREPARING, True
                self.snippet, self.recording = event.snippet, event.recording
                self.size_text, self.device_name = event.size_text, event.device_name
            case RunPhaseChanged():
                self._enter_phase(event)
            case SamplesMeasured():
                self.state = RunState.TIMING
                self.calls_per_sample = event.calls_per_sample
                self.spent_s = event.spent_s
                self.series.append(event.samples_s)
                self.batches.append(Batch(len(self.series), event.calls_per_sample, event.spent_s))
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

    def _enter_phase(self, event: RunPhaseChanged) -> None:
        self.phase = event.phase
        if event.expected_call_s is not None:
            self.expected_call_s = event.expected_call_s
        if event.phase == "timing":
            self.state = RunState.TIMING

    def _engine_ended(self, event: EngineEnded) -> None:
        if event.stopped:
            self.state = RunState.STOPPED
            return
        self.state = RunState.FAILED
        self.failure = Failure(FailureKind.ENGINE_ENDED, describe_exit(event.exit_code))
