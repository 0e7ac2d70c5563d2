"""The runs of a plan in the engines of their PCs, one request after the other.

A plan decides after each end what comes next. So it can measure devices in turns, run a race in
slices, or stop at the first failure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.run_messages import RunInTurns

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.model.engine_session import EngineSession, Reply


class WorkState(Enum):
    """What a piece of work does that a user starts and may stop.

    From IDLE to RUNNING, and back when it is over or its engine ended; by a stop, over STOPPING.
    """

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"

    @property
    def is_busy(self) -> bool:
        """Whether it is in progress."""
        return self is not WorkState.IDLE


class QueueStep(NamedTuple):
    """A request of a plan.

    Attributes:
        request: for the engine.
        runs: the runs that its events belong to; several steps may continue the same run.
        session: the engine of another PC; None for the plan's own.
    """

    request: Request
    runs: tuple[Run, ...] = ()
    session: EngineSession | None = None


def step_of(runs: Sequence[Run], session: EngineSession | None = None) -> QueueStep:
    """Return the step of a run, or of several that take turns in one engine."""
    requests = tuple(run.request for run in runs)
    request = requests[0] if len(runs) == 1 else RunInTurns(runs=requests)
    return QueueStep(request, tuple(runs), session)


# Returns the next step, given the runs that have begun and the event that ended the step before,
# None at first; None if the plan is over.
Plan = Callable[[Sequence["Run"], "Event | None"], QueueStep | None]


class RunSource(NamedTuple):
    """Another source of a plan's runs than the PCs: a recording, with its devices' names.

    ``described`` is what an engine said before that starts anew for the plan.
    """

    session: EngineSession
    recording: str | None = None
    device_names: Mapping[str, str] = MappingProxyType({})
    described: EngineDescribed | None = None


class RunQueue(QObject):
    """Runs one plan at a time, and keeps its runs, including stopped and failed ones.

    Signals:
        step_begun(QueueStep): the step is about to be submitted.
        event_received(Event, tuple[Run, ...]): the next event of the step, and the runs that it
            changed.
        step_ended(QueueStep): its last event was received.
        finished(): the plan is over or was stopped.

    Attributes:
        state: the state of the plan.
        step: the current step.
        runs: the runs of the current or last plan that have begun.
        last: the event that ended the last step; None before.
        is_stopped: whether the user stopped the plan.
    """

    step_begun = Signal(object)
    event_received = Signal(object, object)
    step_ended = Signal(object)
    finished = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state, self.is_stopped = WorkState.IDLE, False
        self.step: QueueStep | None = None
        self.runs: list[Run] = []
        self.last: Event | None = None
        self._plan: Plan | None = None
        self._session: EngineSession | None = None
        self._reply: Reply | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the current step has received its last event."""
        return self._reply is not None and self._reply.is_finished

    def start(self, plan: Plan, session: EngineSession) -> None:
        """Start a plan; does nothing while another one runs.

        Args:
            plan: its steps may name other engines.
            session: the engine of all other steps.
        """
        if not self.state.is_busy:
            self._plan, self._session = plan, session
            self.runs, self.last, self.is_stopped = [], None, False
            self._begin(plan(self.runs, None))

    def stop(self) -> bool:
        """Stop the current step, and begin no other one; return whether there was one to stop."""
        if self.state is not WorkState.RUNNING or self._reply is None:
            return False
        self.state, self.is_stopped = WorkState.STOPPING, True
        self._reply.stop()
        return True

    def _begin(self, step: QueueStep | None) -> None:
        self.step = step
        was_busy, self.state = self.state.is_busy, WorkState.RUNNING if step else WorkState.IDLE
        if step is None:
            if was_busy:
                self.finished.emit()
            return
        self.runs += [run for run in step.runs if run not in self.runs]
        self.step_begun.emit(step)
        session = step.session or self._session
        assert session is not None
        self._reply = session.submit(step.request)
        self._reply.event_received.connect(self._on_event)
        self._reply.finished.connect(self._on_reply_finished)

    def _on_event(self, event: Event) -> None:
        assert self.step is not None
        changed = tuple(run for run in self.step.runs if run.apply(event))
        self.event_received.emit(event, changed)

    def _on_reply_finished(self) -> None:
        assert self._plan is not None
        assert self._reply is not None
        step, self.last = self.step, self._reply.last
        self.step = self._reply = None
        self.step_ended.emit(step)
        self._begin(None if self.is_stopped else self._plan(self.runs, self.last))
