"""The experiments of the memory lab: a plan, its run in a separate engine, its outcome."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.engine import EngineEnvironment, describe_exit
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.memory.outcome import describe_filling, outcome_notice
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    MemoryRead,
    OomFinished,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.notice import Notice, Tone

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.studio import Studio

EXPANDABLE = "expandable_segments:True"
_RANKS = {"held": 1, "oom": 2}  # of the marks of a `MemoryRead`: the highest is kept


class LabResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run.

    Attributes:
        request: the request of the run.
        conf: the allocator's options; empty for PyTorch's default.
        outcome: the outcome in words.
        finished: the engine's result; None if it failed or died.
        reached: the reading that the outcome is about: at the failure, or else at the end.
        segments: the segments at that moment.
        pid: the process that it ran in; None if it had not started.
    """

    request: RunMemoryExperiment
    conf: str
    outcome: Notice
    finished: OomFinished | None = None
    reached: MemoryRead | None = None
    segments: SegmentsRead | None = None
    pid: int | None = None


class OomState(Enum):
    """The state of the experiment.

    ::

        IDLE ─► WAITING ─► RUNNING ─► IDLE      (with an outcome)
                   └──────────┴─► STOPPING ─► IDLE
    """

    IDLE = "idle"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"


class OomExperiment(QObject):
    """Runs one experiment at a time and keeps its results, with those of other options.

    The engine of an experiment on a card stays after it, with the memory that its allocator keeps,
    until `end_engine`, the next experiment, or a failure.

    Signals:
        state_changed(): the experiment began, is stopping or ended.
        outcome_changed(): the current outcome is another, also during the run.
        results_changed(): another run ended, or earlier results were removed.

    Attributes:
        outcome: the current outcome in words; None before the first run.
        request: the request that runs now.
        device: the address of the last experiment's device; empty before the first.
        keeps_engine: whether the engine of an experiment that ends now stays.
    """

    state_changed = Signal()
    outcome_changed = Signal()
    results_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._session: EngineSession | None = None
        self.request: RunMemoryExperiment | None = None
        self._reply: Reply | None = None
        self._conf = ""
        self._has_begun = self._is_stopping = False
        self.device, self.keeps_engine = "", False
        self.outcome: Notice | None = None
        self._reached: MemoryRead | None = None
        self._segments: SegmentsRead | None = None
        self.stage = ""
        self.results: tuple[LabResult, ...] = ()

    @property
    def state(self) -> OomState:
        if self.request is None:
            return OomState.IDLE
        if self._is_stopping:
            return OomState.STOPPING
        return OomState.RUNNING if self._has_begun else OomState.WAITING

    @property
    def can_compare(self) -> bool:
        """Whether the only result can be repeated with expandable segments."""
        return (
            self.request is None
            and len(self.results) == 1
            and self.results[0].finished is not None
            and EXPANDABLE not in self.results[0].conf
        )

    def run(self, request: RunMemoryExperiment, conf: str = "") -> None:
        """Start, and remove earlier results; does nothing while an experiment runs."""
        if self.request is None:
            self.results = ()
            self.results_changed.emit()
            self._begin(request, conf)

    def compare(self) -> None:
        """Run the same in a new engine with expandable segments, to compare it with the first."""
        if self.can_compare:
            self._begin(self.results[0].request, EXPANDABLE)

    def stop(self) -> None:
        """Stop the experiment; its memory is freed."""
        if self._reply is not None and not self._is_stopping:
            self._is_stopping = True
            self.state_changed.emit()
            self._reply.stop()

    def end_engine(self) -> None:
        """End the engine that an experiment has left; its card's memory is free again."""
        if self.request is None and self.device and not is_modelled(self.device):
            self._studio.pcs.of(self.device).lab.end()

    def _begin(self, request: RunMemoryExperiment, conf: str) -> None:
        if self.device and self.device != request.device:
            self.end_engine()
        self.request, self._conf, self.device = request, conf, request.device
        self._has_begun = self._is_stopping = False
        self._reached = self._segments = None
        self.stage = ""
        modelled = is_modelled(request.device)
        self._set_outcome(
            Notice(
                "Starting.",
                detail=f"{'The simulated card' if modelled else 'PyTorch'} is starting.",
            )
        )
        self.state_changed.emit()
        self._session = self._fresh_session(request.device, modelled, conf)
        self._reply = self._session.submit(request)
        self._reply.event_received.connect(self._receive)
        self._reply.finished.connect(self._conclude)

    def _fresh_session(self, address: str, modelled: bool, conf: str) -> EngineSession:
        studio = self._studio
        pc = studio.pcs.of(address)
        session = studio.modelled if modelled else pc.lab
        # The same numbers must mean the same cards in both engines.
        visible_devices = None if modelled else pc.session.environment.visible_devices
        session.restart(
            EngineEnvironment(visible_devices=visible_devices, allocator_configuration=conf or None)
        )
        return session

    def _receive(self, event: Event) -> None:
        assert self.request is not None
        match event:
            case MemoryRead():
                self._fill(event, self.request)
            case SegmentsRead():
                self._keep(event.read, event)
            case StageBegan():
                self.stage = event.sentence
                self._set_outcome(Notice("Running.", detail=event.sentence))
            case _:
                pass

    def _conclude(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        match event:
            case OomFinished():
                self._finish(outcome_notice(event), event)
            case RequestFailed():
                self._finish(explain_failure(event))
            case EngineEnded():
                self._finish(explain_end(event, has_begun=self._has_begun))
            case _:
                pass

    def _fill(self, read: MemoryRead, request: RunMemoryExperiment) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.state_changed.emit()
        self._keep(read)
        budget_bytes = read.limit_bytes or request.budget_bytes or read.total_bytes or 0
        filling = describe_filling(read, budget_bytes)
        self._set_outcome(Notice("Running.", detail=f"{self.stage} {filling}".strip()))

    def _keep(self, read: MemoryRead, segments: SegmentsRead | None = None) -> None:
        """Remember the reading that the outcome is about.

        It is the reading at the first failure; without a failure, the one with everything allocated
        and nothing freed. If the engine died before either, it is the one with the most memory.
        """
        reached = self._reached
        if reached is not None and reached != read and _order(read) <= _order(reached):
            return
        self._reached = read
        self._segments = segments or self._segments

    def _finish(self, outcome: Notice, finished: OomFinished | None = None) -> None:
        assert self.request is not None
        # The engine's own description counts: the user's environment may set options, too.
        conf = finished.conf if finished is not None else self._conf
        description = self._session.description if self._session is not None else None
        result = LabResult(
            request=self.request, conf=conf, outcome=outcome, finished=finished,
            reached=self._reached, segments=self._segments,
            pid=description.pid if description is not None else None,
        )  # fmt: skip
        self.request = None
        self.stage = ""
        self.results = (*self.results, result)
        if finished is None or not self.keeps_engine:
            self.end_engine()
        self._set_outcome(outcome)
        self.state_changed.emit()
        self.results_changed.emit()

    def _set_outcome(self, outcome: Notice) -> None:
        if outcome != self.outcome:
            self.outcome = outcome
            self.outcome_changed.emit()


def _order(read: MemoryRead) -> tuple[int, int]:
    rank = _RANKS.get(read.mark or "", 0)
    return rank, 0 if rank else read.allocated_bytes or 0


def explain_failure(event: RequestFailed) -> Notice:
    """Return why the engine refused, and the next step."""
    sentence = event.failure.message
    next_step = "Use another card, smaller tensors or a smaller budget, and run it again."
    if event.failure.kind is FailureKind.OUT_OF_MEMORY:
        sentence = f"The card had too little memory to begin it. PyTorch says: {sentence}"
        next_step = "Close the programs that use this card, and run it again."
    return Notice(
        "The experiment could not run.", Tone.FAILURE, detail=sentence, next_step=next_step
    )


def explain_end(event: EngineEnded, *, has_begun: bool) -> Notice:
    """Return how the lab's engine ended during a run; ``has_begun``: it had sent a reading."""
    if event.stopped:
        ended = "It was in the middle of a call, so PyTorch was ended."
        return Notice("Stopped.", detail=ended if has_begun else "The experiment had not started.")
    return Notice(
        "PyTorch ended.",
        Tone.FAILURE,
        detail=f"{describe_exit(event.exit_code)} Its readings are kept, and its memory is free.",
        next_step="Try a smaller budget.",
    )
