"""Plans of runs: one run at a time, and everything that was measured in this session."""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.benchmark.plan import time_left_s
from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.protocol import (
    EngineEnded,
    Event,
    RequestFailed,
    RunFailed,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.units import format_duration
from gpu_studio.model.benchmark.benchmark_devices import run_label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.protocol import RunFinished
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.studio import Studio

_LONG_CALL_S = 0.5
_PHASES = {
    "": "waiting for the engine",
    "set-up": "setting up",
    "verification": "checking the result",
    "warm-up": "warming up",
    "naive": "as a naive script does",
    "timing": "timing",
}
# Numbers change a few times a second: more cannot be read, and it costs. At once where a run hands
# samples over and rests; by the timer where lines come more often or not at all.
_SOONEST_NEWS_MS = 200
_LATEST_NEWS_MS = 400
# What a run leaves to the window after each line of samples: text and curves change in it.
REST_S = 0.04


class Notice(msgspec.Struct, frozen=True):
    """How the last plan ended, in words; ``bad`` where it ended by itself too early."""

    text: str = ""
    bad: bool = False


def progress_sentence(run: Run, device: str, left_s: float | None) -> str:
    """Return what is running now and how long the plan still takes; None where nobody can tell."""
    parts = (
        run.size_label,
        run.request.dtype,
        device,
        "with transfers" if run.request.transfers else "",
        _PHASES.get(run.phase, run.phase),
        "" if left_s is None else _left_text(left_s),
    )
    return " · ".join(part for part in parts if part)


def long_call_warning(run: Run | None) -> str:
    """Return what to know of a call too long to be stopped in between; empty for others."""
    if run is None or (run.expected_call_s or 0.0) <= _LONG_CALL_S:
        return ""
    took = format_duration(run.expected_call_s or 0.0)
    return f"One call takes about {took}; Stop will end the engine and start a fresh one."


def _left_text(left_s: float) -> str:
    if left_s < 60:
        return f"about {max(math.ceil(left_s), 1)}\u202fs left"
    return f"about {math.ceil(left_s / 60)}\u202fmin left"


class PlanState(Enum):
    """Where a plan is.

    ::

        IDLE ─► RUNNING ─► IDLE     (all its runs are over, or the engine ended)
                   └─► STOPPING ─► IDLE
    """

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"

    @property
    def is_busy(self) -> bool:
        """Whether a run of the plan is under way."""
        return self is not PlanState.IDLE


class RunSource(NamedTuple):
    """Who makes a plan's runs: of a recording its label, and what its devices are called."""

    session: EngineSession
    recording: str | None = None
    device_names: Mapping[str, str] = MappingProxyType({})


class Benchmark(QObject):
    """Runs plans and keeps their runs, the stopped and the failed ones included.

    Signals:
        run_begun(Run): the newest of `runs`.
        run_changed(Run): its state or phase, or, about three times a second, its numbers.
        runs_cleared(): all runs were forgotten.
        plan_changed(): a plan began, moved on, or is over.
    """

    run_begun = Signal(object)
    run_changed = Signal(object)
    runs_cleared = Signal()
    plan_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._source = RunSource(studio.session)
        self._state = PlanState.IDLE
        self._runs: list[Run] = []
        self._plan: RunPlan | None = None
        self._planned: list[Run] = []
        self._waiting: deque[RunWorkload] = deque()
        self._running: Run | None = None
        self._reply: Reply | None = None
        self._next_number = 1
        self._notice = Notice()
        self._news = QTimer(self)
        self._news.setInterval(_LATEST_NEWS_MS)
        self._news.timeout.connect(self._tell_news)

    @property
    def state(self) -> PlanState:
        """Where the plan is."""
        return self._state

    @property
    def runs(self) -> Sequence[Run]:
        """All runs of this session, oldest first."""
        return self._runs

    @property
    def results(self) -> list[RunFinished]:
        """The results of the runs that finished, oldest first."""
        return [run.result for run in self._runs if run.result is not None]

    @property
    def running(self) -> Run | None:
        """The run that is under way."""
        return self._running

    @property
    def notice(self) -> Notice:
        """How the last plan ended; empty while one runs."""
        return self._notice

    @property
    def progress(self) -> float:
        """The share of the plan that is done, 0 to 1; 0 where there is none."""
        count = len(self._planned) + len(self._waiting)
        return sum(run.progress for run in self._planned) / count if count else 0.0

    @property
    def sentence(self) -> str:
        """What is running now and how long the plan still takes; empty without a plan."""
        run = self._running
        if run is None:
            return ""
        if self._state is PlanState.STOPPING:
            return "Stopping…"
        device = run_label(run, self._studio.sensors.inventory)
        # A recording is played as fast as somebody likes.
        is_live = self._source.recording is None
        left_s = time_left_s(self._planned, self._waiting) if is_live else None
        return progress_sentence(run, device, left_s)

    @property
    def warning(self) -> str:
        """What to know about the run under way: a call too long to be stopped in between."""
        return long_call_warning(self._running)

    def start(self, plan: RunPlan, source: RunSource | None = None) -> None:
        """Begin a plan; does nothing while another runs.

        Args:
            plan: what is run.
            source: who runs it; the window's engine by default.
        """
        if self._state.is_busy:
            return
        self._source = source or RunSource(self._studio.session)
        self._plan, self._planned = plan, []
        self._wait_for(plan.requests(self._next_number))
        self._notice = Notice()
        if self._waiting:
            self._state = PlanState.RUNNING
            self._news.start()
            self._begin_next()

    def stop(self) -> None:
        """End the run under way and forget the waiting ones; all samples are kept."""
        if self._state is PlanState.RUNNING and self._reply is not None:
            self._state = PlanState.STOPPING
            self.plan_changed.emit()
            self._reply.stop()

    def clear(self) -> None:
        """Forget the runs; does nothing while a plan runs."""
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
        """Return whether the plan goes on from what was found."""
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
                run.size_text = workload.size_text  # a run that cannot begin tells none
        self._running = run
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
        self._news.start()  # from now on: what comes between two turns would disturb
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
        if self._state is PlanState.STOPPING:
            self._finish(Notice(f"Stopped: {self._count()}. What was measured is kept."))
        elif _took_the_engine(event):
            self._finish(self._engine_gone(run, event))
        elif self._waiting or self._refine():
            self._begin_next()
        else:
            failed = sum(other.state is RunState.FAILED for other in self._planned)
            reasons = f" {failed} could not run; the table says why." if failed else ""
            self._finish(Notice(f"Done: {self._count()}.{reasons}", bad=bool(failed)))

    def _finish(self, notice: Notice) -> None:
        self._notice = notice
        self._waiting.clear()
        self._state = PlanState.IDLE
        self._news.stop()
        self.plan_changed.emit()

    def _count(self) -> str:
        """Return how many of the plan's runs finished; before the waiting ones are forgotten."""
        planned = len(self._planned) + len(self._waiting)
        finished = sum(run.state is RunState.FINISHED for run in self._planned)
        return f"{finished} of {planned} {'run' if planned == 1 else 'runs'} finished"

    def _engine_gone(self, run: Run, event: Event) -> Notice:
        # The rest is not begun by itself: what ended one engine may end the next one, too.
        if isinstance(event, EngineEnded) and event.stopped:
            return Notice(f"A fresh engine was asked for: {self._count()}. Press Run to go on.")
        reason = run.failure.message if run.failure else ""
        return Notice(f"{reason} What was measured is kept: press Run to go on.".strip(), bad=True)


def _took_the_engine(event: Event) -> bool:
    """Return whether an engine ended with this last event of a run."""
    if isinstance(event, (RunFailed, RequestFailed)):
        return event.failure.fatal or event.failure.kind is FailureKind.ENGINE_ENDED
    return isinstance(event, EngineEnded)
