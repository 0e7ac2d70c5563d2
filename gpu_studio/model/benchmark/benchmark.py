"""Plans of runs, one run at a time, and all results of this session."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.benchmark.plan import in_turns, planned_s
from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.device_name import is_cpu, pc_of
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.run_messages import RunFailed, SamplesMeasured
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import about_time, format_duration
from gpu_studio.model.devices.device_board import label_of
from gpu_studio.model.run_queue import QueueStep, RunQueue, RunSource, WorkState, step_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.plan import RunPlan
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload, WorkloadDescription
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.model.studio import Studio


_LONG_CALL_S = 0.5
_PHASES = {
    "": "waiting for PyTorch",
    "set-up": "setting up",
    "verification": "checking the result",
    "warm-up": "warming up",
    "naive": "timing as a naive script",
    "timing": "timing",
}
# Numbers change a few times a second: faster is unreadable, and it costs time. They change at once
# if a run sends samples and rests, by the timer if lines come more often or not at all.
_SOONEST_UPDATE_MS = 200
_LATEST_UPDATE_MS = 400
# A run's pause after each line of samples: the window updates its texts and curves in it.
REST_S = 0.04


class _Steps:
    """The steps of a plan: its runs so far, then the runs that follow from their results.

    The plan ends with its engine: the same run may end the next engine as well. If the engine is
    that of one PC of several, the plan goes on without this PC.
    """

    def __init__(
        self, plan: RunPlan, pcs: Pcs, source: RunSource | None, first_number: int
    ) -> None:
        self._plan, self._pcs, self._source = plan, pcs, source
        self._first_number, self._count = first_number, 0
        self.waiting: deque[RunWorkload] = deque()
        self.left_out = 0
        self.lost: set[str] = set()
        self._add(plan.requests(first_number))

    @property
    def next_number(self) -> int:
        return self._first_number + self._count

    def next_step(self, runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        if last is not None and _ended_the_engine(last):
            self.lost.add(pc_of(runs[-1].request.device))
        self._leave_out()
        if self.lost and not self.waiting:
            return None
        if not self.waiting and last is not None:
            results = [run.result for run in runs if run.result is not None]
            self._add(self._plan.next_requests(results, self.next_number))
        if not self.waiting:
            return None
        group = [self._run(request) for request in self._next_group()]
        return step_of(group, self._session_of(group[0].request.device))

    def _leave_out(self) -> None:
        """Drop what waits for an engine that has ended, or for a PC that is not connected."""
        if self._source is None:
            waited_for = {pc_of(one.device) for one in self.waiting}
            others = (pc for pc in self._pcs.others if pc.name in waited_for)
            self.lost.update(pc.name for pc in others if pc.why_not)
        left = [one for one in self.waiting if pc_of(one.device) not in self.lost]
        self.left_out += len(self.waiting) - len(left)
        self.waiting = deque(left)

    def _next_group(self) -> tuple[RunWorkload, ...]:
        is_recorded = self._source is not None and self._source.recording
        described = None if is_recorded else self._described(self.waiting[0])
        (group, *_) = in_turns(self.waiting, described)
        for _ in group:
            self.waiting.popleft()
        return group

    def _session_of(self, address: str) -> EngineSession:
        return self._source.session if self._source else self._pcs.session_of(address)

    def _add(self, requests: Sequence[RunWorkload]) -> None:
        self._count += len(requests)
        self.waiting += (msgspec.structs.replace(request, rest_s=REST_S) for request in requests)

    def _described(self, request: RunWorkload) -> WorkloadDescription | None:
        told = self._source.described if self._source is not None else None
        engine = told or self._session_of(request.device).description
        known = engine.workloads if engine else ()
        return next((one for one in known if one.name == request.workload), None)

    def _run(self, request: RunWorkload) -> Run:
        run = Run(request)
        if self._source is not None:
            run.recording = self._source.recording
            run.is_without_pytorch = run.recording is None and self._source.described is not None
            run.device_name = self._source.device_names.get(request.device, "")
        described = self._described(request)
        if described is not None:
            run.size_text = described.size_text  # a run that cannot begin sends none
        return run


class Benchmark(QObject):
    """Runs plans and keeps their runs, including stopped and failed ones.

    Signals:
        run_ended(Run): it has its result, or will have none.
        plan_changed(): a plan began, progressed (about three times a second) or ended, or runs were
            removed.

    Attributes:
        runs: all runs of this session, oldest first.
    """

    run_ended = Signal(object)
    plan_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._source: RunSource | None = None
        self._queue = RunQueue(self)
        self._queue.step_begun.connect(self._begin_run)
        self._queue.event_received.connect(self._receive)
        self._queue.step_ended.connect(self._end_run)
        self._queue.finished.connect(self._finish)
        self._steps: _Steps | None = None
        self._plan: RunPlan | None = None
        self.runs: list[Run] = []
        self._running: Run | None = None
        self._next_number = 1
        self.notice = Notice()
        self._updating = QTimer(self)
        self._updating.setInterval(_LATEST_UPDATE_MS)
        self._updating.timeout.connect(self._emit_update)
        studio.board.changed.connect(self._follow_cards)

    @property
    def state(self) -> WorkState:
        """The state of the plan."""
        return self._queue.state

    @property
    def titles(self) -> Mapping[str, str]:
        """The titles of the engine's workloads, by their names."""
        description = self._studio.session.description
        workloads = description.workloads if description else ()
        known = (*self._studio.adapters.workloads.values(), *workloads)
        return {workload.name: workload.title for workload in known}

    def title_of(self, workload: str) -> str:
        """Return a workload's title; its name in words if the engine does not have it."""
        return self.titles.get(workload, workload.replace("_", " "))

    @property
    def results(self) -> list[RunFinished]:
        """The results of the finished runs, oldest first."""
        return [run.result for run in self.runs if run.result is not None]

    @property
    def running(self) -> Run | None:
        """The current run; of runs in turns the one that was heard of last."""
        return self._running if self._queue.step is not None else None

    @property
    def planned(self) -> Sequence[Run]:
        """The runs of the current or last plan that have begun."""
        return self._queue.runs

    @property
    def waiting(self) -> Sequence[RunWorkload]:
        """The requests of the current plan that have not begun."""
        return list(self._steps.waiting) if self._steps and self.state.is_busy else []

    @property
    def left(self) -> str:
        """The plan's remaining time in words, ``about 12 s left``; empty if it is not known.

        The user chooses the playback speed of a recording.
        """
        if self.running is None or (self._source is not None and self._source.recording):
            return ""
        left_s = planned_s(self.waiting)
        left_s += sum((1 - run.progress) * planned_s([run.request]) for run in self.planned)
        return f"{about_time(left_s)} left"

    @property
    def progress(self) -> float:
        """The finished share of the plan, 0 to 1; 0 without a plan."""
        count = len(self.planned) + len(self.waiting)
        return sum(run.progress for run in self.planned) / count if count else 0.0

    @property
    def sentence(self) -> str:
        """The current run and the plan's remaining time in words; empty without a plan."""
        run = self.running
        if run is None:
            return ""
        if self.state is WorkState.STOPPING:
            return "Stopping…"
        parts = (
            run.size_label, run.request.dtype, run_label(run, self._studio.board.rows),
            "with copies" if run.request.transfers else "", _PHASES.get(run.phase, run.phase),
            self.left,
        )  # fmt: skip
        return " · ".join(part for part in parts if part)

    @property
    def warning(self) -> str:
        """The warning about the current run: a call that is too long to stop midway."""
        run = self.running
        if run is None or (run.expected_call_s or 0.0) <= _LONG_CALL_S:
            return ""
        duration = format_duration(run.expected_call_s or 0.0)
        return f"One call takes about {duration}. Stop will end PyTorch and start it anew."

    def start(self, plan: RunPlan, source: RunSource | None = None) -> None:
        """Start a plan; does nothing while another runs.

        Args:
            plan: the runs to make.
            source: makes the runs; the engines of their PCs by default.
        """
        if self.state.is_busy:
            return
        self._source = source
        if source is not None and source.described is not None:
            source.session.start()
        self._plan = plan if source is None or source.recording is None else None
        self._steps = _Steps(plan, self._studio.pcs, source, self._next_number)
        self.notice = Notice()
        self._queue.start(self._steps.next_step, self._studio.session)

    @property
    def can_run_again(self) -> bool:
        """Whether the last plan can be repeated; not a recording, which stays as it is."""
        return self._plan is not None and not self.state.is_busy

    def run_again(self) -> None:
        """Repeat the last plan; does nothing while one runs, or after a recording."""
        if self._plan is not None:
            self.start(self._plan, self._source)

    def stop(self) -> None:
        """Stop the current run and drop the waiting ones; all samples are kept."""
        if self._queue.stop():
            self.plan_changed.emit()

    def clear(self) -> None:
        """Remove all runs; does nothing while a plan runs."""
        if not self.state.is_busy:
            self._show_again([])

    def _follow_cards(self) -> None:
        """Give runs the numbers that their cards have now.

        A hidden card has none. If its number is now that of another card, its runs go: they would
        stand among the other's. The history keeps them.
        """
        board = self._studio.board
        if self.state.is_busy or not board.is_complete:
            return
        numbers = {
            row.identity: row.number for row in board.rows if row.obstacle is not Obstacle.NO_LINE
        }
        moved, lost = [], []
        for run in self.runs:
            number = numbers.get(run.card)
            if run.card not in numbers or number == run.request.device:
                continue
            if number is not None:
                moved.append((run, number))
            elif board.at(run.request.device) is not None:
                lost.append(run)
        if moved or lost:
            for run, number in moved:
                run.move_to(number)
            self._show_again([run for run in self.runs if run not in lost], _hidden(len(lost)))

    def _show_again(self, runs: list[Run], sentence: str = "") -> None:
        self.runs, self._queue.runs = runs, [run for run in self._queue.runs if run in runs]
        self.notice = Notice(sentence)
        self.plan_changed.emit()

    def _begin_run(self, step: QueueStep) -> None:
        self._running = step.runs[0]
        self._updating.start()
        for run in step.runs:
            if run.recording is None:
                run.card = self._studio.board.identity_of(run.request.device)
            self.runs.append(run)
        self.plan_changed.emit()

    def _receive(self, event: Event, changed: Sequence[Run]) -> None:
        if changed and changed[-1] is not self._running:
            self._emit_update()  # of the one before
            self._running = changed[-1]
        if not self._queue.is_answered and (
            not isinstance(event, SamplesMeasured) or self._is_update_due
        ):
            self._emit_update()

    @property
    def _is_update_due(self) -> bool:
        return self._updating.remainingTime() <= _LATEST_UPDATE_MS - _SOONEST_UPDATE_MS

    def _emit_update(self) -> None:
        # Restarted here: an update between two batches would disturb the timing.
        self._updating.start()
        if self.running is not None:
            self.plan_changed.emit()

    def _end_run(self, step: QueueStep) -> None:
        for run in step.runs:
            self.run_ended.emit(run)

    def _finish(self) -> None:
        assert self._steps is not None
        self._next_number = self._steps.next_number
        self.notice = self._ended()
        self._updating.stop()
        self.plan_changed.emit()
        self._follow_cards()

    @property
    def has_lost_engine(self) -> bool:
        """Whether the last plan ended because its engine did, which its notice explains."""
        last = self._queue.last
        return last is not None and not self._queue.is_stopped and _ended_the_engine(last)

    def _ended(self) -> Notice:
        """Return how the plan ended."""
        last = self._queue.last
        if self._queue.is_stopped:
            return Notice(f"Stopped: {self._count()}. The results so far are kept.")
        if last is not None and self.has_lost_engine:
            failed_runs = [run for run in self.planned if run.failure is not None]
            return self._engine_gone((failed_runs or self.planned)[-1], last)
        if self._steps is not None and self._steps.lost:
            why = [pc.why_not for pc in self._studio.pcs.others if pc.name in self._steps.lost]
            reason = " ".join(filter(None, why)) or "PyTorch ended."
            return Notice(f"{reason} {self._count()}. They are kept.", Tone.FAILURE)
        failed = sum(run.state is RunState.FAILED for run in self.planned)
        reasons = f" {failed} could not run: see the table." if failed else ""
        tone = Tone.FAILURE if failed else Tone.PLAIN
        return Notice(f"Done: {self._count()}.{reasons}", tone)

    def _count(self) -> str:
        """Return the number of finished runs in words, of all that were planned."""
        steps = self._steps
        waiting = len(steps.waiting) + steps.left_out if steps is not None else 0
        planned = len(self.planned) + waiting
        finished = sum(run.state is RunState.FINISHED for run in self.planned)
        return f"{finished} of {planned} {'run' if planned == 1 else 'runs'} finished"

    def _engine_gone(self, run: Run, event: Event) -> Notice:
        if isinstance(event, EngineEnded) and event.stopped:
            return Notice(f"PyTorch was started anew: {self._count()}. Press Run to continue.")
        reason = run.failure.message if run.failure else ""
        what_now = "The results so far are kept. Press Run to continue."
        return Notice(f"{reason} {what_now}".strip(), Tone.FAILURE)


_ENDS = (FailureKind.ENGINE_ENDED, FailureKind.LINE_LOST)


def _ended_the_engine(event: Event) -> bool:
    """Return whether the engine ended with this last event of a run."""
    if isinstance(event, (RunFailed, RequestFailed)):
        return event.failure.fatal or event.failure.kind in _ENDS
    return isinstance(event, EngineEnded)


def _hidden(count: int) -> str:
    """Return where the runs of a card are that this engine does not see; empty without any."""
    if not count:
        return ""
    runs = "The run" if count == 1 else f"The {count} runs"
    return f"{runs} of a card that is hidden now: see History."


def run_label(run: Run, rows: Sequence[DeviceRow]) -> str:
    """Return the name of a run's device; a recording names its own devices."""
    name = run.result.device_name if run.result else run.device_name
    return _label(run.request.device, name, run.recording, rows)


def result_label(result: RunFinished, rows: Sequence[DeviceRow]) -> str:
    """Return the name of a result's device, as `run_label` does."""
    return _label(result.device, result.device_name, result.recording, rows)


def _label(address: str, name: str, recording: str | None, rows: Sequence[DeviceRow]) -> str:
    if recording is None:
        return label_of(address, rows)
    return f"{'CPU' if is_cpu(address) else short_name(name or address)}, recorded"
