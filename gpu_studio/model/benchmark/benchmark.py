"""Plans of runs, one run at a time, and all results of this session."""

from __future__ import annotations

import math
from collections import deque
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

from gpu_studio.core.benchmark.plan import time_left_s
from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload, SamplesMeasured
from gpu_studio.core.units import format_duration
from gpu_studio.model.benchmark.benchmark_devices import run_label
from gpu_studio.model.work_state import WorkState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.studio import Studio

_LONG_CALL_S = 0.5
_PHASES = {
    "": "waiting for the engine",
    "set-up": "setting up",
    "verification": "checking the result",
    "warm-up": "warming up",
    "naive": "timing as a naive script",
    "timing": "timing",
}
# Numbers change a few times a second: faster is unreadable, and it costs time. They change at once
# if a run sends samples and rests, by the timer if lines come more often or not at all.
_SOONEST_NEWS_MS = 200
_LATEST_NEWS_MS = 400
# A run's pause after each line of samples: the window updates its texts and curves in it.
REST_S = 0.04


class Notice(msgspec.Struct, frozen=True):
    """How the last plan ended, in words; ``bad`` if it ended too early by itself."""

    text: str = ""
    bad: bool = False


def progress_sentence(run: Run, device: str, left_s: float | None) -> str:
    """Return the current run and the plan's remaining time in words; None: time not known."""
    parts = (
        run.size_label,
        run.request.dtype,
        device,
        "with copies" if run.request.transfers else "",
        _PHASES.get(run.phase, run.phase),
        "" if left_s is None else left_words(left_s),
    )
    return " · ".join(part for part in parts if part)


def long_call_warning(run: Run | None) -> str:
    """Return a warning for a call that is too long to stop midway; empty for others."""
    if run is None or (run.expected_call_s or 0.0) <= _LONG_CALL_S:
        return ""
    took = format_duration(run.expected_call_s or 0.0)
    return f"One call takes about {took}. Stop will end the engine and start a new one."


def left_words(left_s: float) -> str:
    """Return a remaining time in words: ``about 12 s left``."""
    if left_s < 60:
        return f"about {max(math.ceil(left_s), 1)}\u202fs left"
    return f"about {math.ceil(left_s / 60)}\u202fmin left"


class RunSource(NamedTuple):
    """The source of a plan's runs: for a recording, its label and its devices' names."""

    session: EngineSession
    recording: str | None = None
    device_names: Mapping[str, str] = MappingProxyType({})


class Benchmark(QObject):
    """Runs plans and keeps their runs, including stopped and failed ones.

    Signals:
        run_begun(Run): the newest of `runs`.
        run_changed(Run): its state or phase changed, or its numbers (about three times a second).
        runs_cleared(): all runs were removed.
        plan_changed(): a plan began, progressed or ended.
    """

    run_begun = Signal(object)
    run_changed = Signal(object)
    runs_cleared = Signal()
    plan_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._source = RunSource(studio.session)
        self._state = WorkState.IDLE
        self._runs: list[Run] = []
        self._plan: RunPlan | None = None
        self._planned: list[Run] = []
        self._waiting: deque[RunWorkload] = deque()
        self._running: Run | None = None
        self._reply: Reply | None = None
        self._next_number = 1
        self._begun = QElapsedTimer()
        self._notice = Notice()
        self._news = QTimer(self)
        self._news.setInterval(_LATEST_NEWS_MS)
        self._news.timeout.connect(self._tell_news)

    @property
    def state(self) -> WorkState:
        """The state of the plan."""
        return self._state

    @property
    def titles(self) -> Mapping[str, str]:
        """The titles of the engine's workloads, by their names."""
        description = self._studio.session.description
        workloads = description.workloads if description else ()
        return {workload.name: workload.title for workload in workloads}

    def title_of(self, workload: str) -> str:
        """Return a workload's title; its name in words if the engine does not have it."""
        return self.titles.get(workload, workload.replace("_", " "))

    @property
    def runs(self) -> Sequence[Run]:
        """All runs of this session, oldest first."""
        return self._runs

    @property
    def results(self) -> list[RunFinished]:
        """The results of the finished runs, oldest first."""
        return [run.result for run in self._runs if run.result is not None]

    @property
    def running(self) -> Run | None:
        """The current run."""
        return self._running

    @property
    def notice(self) -> Notice:
        """How the last plan ended; empty while a plan runs."""
        return self._notice

    @property
    def planned(self) -> Sequence[Run]:
        """The runs of the current or last plan that have begun."""
        return self._planned

    @property
    def waiting(self) -> Sequence[RunWorkload]:
        """The requests of the current plan that have not begun."""
        return list(self._waiting)

    @property
    def left_s(self) -> float | None:
        """The plan's remaining seconds; None without a plan and for a recording.

        The user chooses the playback speed of a recording.
        """
        if self._running is None or self._source.recording is not None:
            return None
        preparing_s = self._begun.elapsed() / 1000
        return time_left_s(self._planned, self._waiting, preparing_s, self._runs)

    @property
    def progress(self) -> float:
        """The finished share of the plan, 0 to 1; 0 without a plan."""
        count = len(self._planned) + len(self._waiting)
        return sum(run.progress for run in self._planned) / count if count else 0.0

    @property
    def sentence(self) -> str:
        """The current run and the plan's remaining time in words; empty without a plan."""
        run = self._running
        if run is None:
            return ""
        if self._state is WorkState.STOPPING:
            return "Stopping…"
        device = run_label(run, self._studio.sensors.inventory)
        return progress_sentence(run, device, self.left_s)

    @property
    def warning(self) -> str:
        """The warning about the current run: a call that is too long to stop midway."""
        return long_call_warning(self._running)

    def start(self, plan: RunPlan, source: RunSource | None = None) -> None:
        """Start a plan; does nothing while another runs.

        Args:
            plan: the runs to make.
            source: makes the runs; the window's engine by default.
        """
        if self._state.is_busy:
            return
        self._source = source or RunSource(self._studio.session)
        self._plan, self._planned = plan, []
        self._wait_for(plan.requests(self._next_number))
        self._notice = Notice()
        if self._waiting:
            self._state = WorkState.RUNNING
            self._news.start()
            self._begin_next()

    def stop(self) -> None:
        """Stop the current run and drop the waiting ones; all samples are kept."""
        if self._state is WorkState.RUNNING and self._reply is not None:
            self._state = WorkState.STOPPING
            self.plan_changed.emit()
            self._reply.stop()

    def clear(self) -> None:
        """Remove all runs; does nothing while a plan runs."""
        if not self._state.is_busy:
            self._runs, self._planned = [], []
            self._notice = Notice()
            self.runs_cleared.emit()
            self.plan_changed.emit()

    def _wait_for(self, requests: Sequence[RunWorkload]) -> None:
        self._next_number += len(requests)
        self._waiting = deque(
            msgspec.structs.replace(request, rest_s=REST_S) for request in requests
        )

    def _refine(self) -> bool:
        """Return whether the plan continues from the results so far."""
        if self._plan is None:
            return False
        results = [run.result for run in self._planned if run.result is not None]
        self._wait_for(self._plan.next_requests(results, self._next_number))
        return bool(self._waiting)

    def _begin_next(self) -> None:
        run = Run(self._waiting.popleft())
        run.recording = self._source.recording
        run.device_name = self._source.device_names.get(run.request.device, "")
        engine = self._source.session.description
        for workload in engine.workloads if engine else ():
            if workload.name == run.request.workload:
                run.size_text = workload.size_text  # a run that cannot begin sends none
        self._running = run
        self._begun.start()
        self._runs.append(run)
        self._planned.append(run)
        self.run_begun.emit(run)
        self.plan_changed.emit()
        self._reply = self._source.session.submit(run.request)
        self._reply.event_received.connect(self._receive)
        self._reply.finished.connect(self._end)

    def _receive(self, event: Event) -> None:
        assert self._running is not None
        assert self._reply is not None
        self._running.apply(event)
        if self._reply.is_finished:
            return
        if not isinstance(event, SamplesMeasured) or self._is_time_for_news:
            self._tell_news()

    @property
    def _is_time_for_news(self) -> bool:
        return self._news.remainingTime() <= _LATEST_NEWS_MS - _SOONEST_NEWS_MS

    def _tell_news(self) -> None:
        self._news.start()  # restarted here: an update between two batches would disturb the timing
        if self._running is not None:
            self.run_changed.emit(self._running)
            self.plan_changed.emit()

    def _end(self) -> None:
        run, reply = self._running, self._reply
        self._running = self._reply = None
        assert run is not None
        assert reply is not None
        event = reply.last
        assert event is not None
        self.run_changed.emit(run)
        if self._state is WorkState.STOPPING:
            self._finish(Notice(f"Stopped: {self._count()}. The results so far are kept."))
        elif _took_the_engine(event):
            self._finish(self._engine_gone(run, event))
        elif self._waiting or self._refine():
            self._begin_next()
        else:
            failed = sum(other.state is RunState.FAILED for other in self._planned)
            reasons = f" {failed} could not run: see the table." if failed else ""
            self._finish(Notice(f"Done: {self._count()}.{reasons}", bad=bool(failed)))

    def _finish(self, notice: Notice) -> None:
        self._notice = notice
        self._waiting.clear()
        self._state = WorkState.IDLE
        self._news.stop()
        self.plan_changed.emit()

    def _count(self) -> str:
        """Return the number of finished runs in words; call it before dropping the waiting ones."""
        planned = len(self._planned) + len(self._waiting)
        finished = sum(run.state is RunState.FINISHED for run in self._planned)
        return f"{finished} of {planned} {'run' if planned == 1 else 'runs'} finished"

    def _engine_gone(self, run: Run, event: Event) -> Notice:
        # The rest does not start by itself: the same run may end the next engine as well.
        if isinstance(event, EngineEnded) and event.stopped:
            return Notice(f"A new engine was started: {self._count()}. Press Run to continue.")
        reason = run.failure.message if run.failure else ""
        what_now = "The results so far are kept. Press Run to continue."
        return Notice(f"{reason} {what_now}".strip(), bad=True)


def _took_the_engine(event: Event) -> bool:
    """Return whether the engine ended with this last event of a run."""
    if isinstance(event, (RunFailed, RequestFailed)):
        return event.failure.fatal or event.failure.kind is FailureKind.ENGINE_ENDED
    return isinstance(event, EngineEnded)
