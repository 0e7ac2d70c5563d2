"""The experiments of the memory lab: a plan, its run in an engine of its own, what came of it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.memory.outcome import Outcome, describe_filling, outcome_told
from gpu_studio.core.protocol import (
    EngineEnded,
    Event,
    MemoryRead,
    OomFinished,
    RequestFailed,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
)

if TYPE_CHECKING:
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.lab_engines import LabEngines

MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"
_LEAST_RESERVE_BYTES = 64 * MIB
_RESERVE_SHARE = 1 / 16
BUDGET_STEP_BYTES = 16 * MIB
_RANKS = {"held": 1, "oom": 2}  # of the marks of a `MemoryRead`: which is kept
WATCH_S = 2.5  # long enough to watch, short enough to wait for

SIZES = (
    64, 128, 256, 512, 1024, 1448, 2048, 2896, 4096, 5792, 8192, 11585, 16384, 23170, 32768, 46340,
    65536, 92682, 131072,
)  # fmt: skip
# None is "until it breaks".
COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024, None)
GROWTHS = (0, 8, 16, 32, 64, 128, 256, 512, 1024)
_FRESH_MS = 8000


def largest_budget(total_bytes: int) -> int:
    """Return the most that may be asked of a card: all but a reserve for its other users."""
    reserve = max(_LEAST_RESERVE_BYTES, round(total_bytes * _RESERVE_SHARE))
    return max(_in_steps(total_bytes - reserve), BUDGET_STEP_BYTES)


def default_budget(total_bytes: int, free_bytes: int) -> int:
    """Return three quarters of what is free."""
    return min(max(_in_steps(free_bytes * 3 // 4), BUDGET_STEP_BYTES), largest_budget(total_bytes))


def _in_steps(size_bytes: int) -> int:
    return size_bytes // BUDGET_STEP_BYTES * BUDGET_STEP_BYTES


class LabResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to.

    Attributes:
        request: what was asked.
        conf: the allocator's options; empty for PyTorch's default.
        outcome: in words.
        finished: the engine's own account; None where it failed or died.
        reached: the reading that the outcome speaks of: at the failure; without one, at the end.
        segments: the segments at that moment.
        pid: the process it ran in; None where there was none yet.
    """

    request: RunMemoryExperiment
    conf: str
    outcome: Outcome
    finished: OomFinished | None = None
    reached: MemoryRead | None = None
    segments: SegmentsRead | None = None
    pid: int | None = None


class OomState(Enum):
    """Where the experiment is.

    ::

        IDLE ─► WAITING ─► RUNNING ─► IDLE      (with an outcome)
                   └──────────┴─► STOPPING ─► IDLE
    """

    IDLE = "idle"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"


class OomExperiment(QObject):
    """Runs one experiment at a time and keeps what came of it, and of it in other words.

    Signals:
        state_changed(): began, was asked to stop, or is over.
        outcome_changed(Outcome): what there is to say now, while it runs as well.
        results_changed(): another run is over, or earlier ones are forgotten.
    """

    state_changed = Signal()
    outcome_changed = Signal(object)
    results_changed = Signal()

    def __init__(self, lab: LabEngines, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lab = lab
        self._session: EngineSession | None = None
        self._request: RunMemoryExperiment | None = None
        self._reply: Reply | None = None
        self._conf = ""
        self._has_begun = self._is_stopping = False
        self._outcome: Outcome | None = None
        self._reached: MemoryRead | None = None
        self._segments: SegmentsRead | None = None
        self.stage = ""
        self.results: tuple[LabResult, ...] = ()

    @property
    def state(self) -> OomState:
        """Where it is."""
        if self._request is None:
            return OomState.IDLE
        if self._is_stopping:
            return OomState.STOPPING
        return OomState.RUNNING if self._has_begun else OomState.WAITING

    @property
    def outcome(self) -> Outcome | None:
        """What there is to say; None before the first run."""
        return self._outcome

    @property
    def request(self) -> RunMemoryExperiment | None:
        """What runs now."""
        return self._request

    @property
    def can_compare(self) -> bool:
        """Whether the one result there is could be tried with expandable segments."""
        return (
            self._request is None
            and len(self.results) == 1
            and self.results[0].finished is not None
            and EXPANDABLE not in self.results[0].conf
        )

    def run(self, request: RunMemoryExperiment, conf: str = "") -> None:
        """Begin, and forget earlier results; does nothing while one is going on."""
        if self._request is None:
            self.results = ()
            self.results_changed.emit()
            self._begin(request, conf)

    def compare(self) -> None:
        """Run the same in a fresh engine with expandable segments, to lay it beside the first."""
        if self.can_compare:
            request = self.results[0].request
            # A snapshot of the first is not to be written over.
            self._begin(msgspec.structs.replace(request, snapshot_path=""), EXPANDABLE)

    def stop(self) -> None:
        """Stop it; what it allocated is freed."""
        if self._reply is not None and not self._is_stopping:
            self._is_stopping = True
            self.state_changed.emit()
            self._reply.stop()

    def _begin(self, request: RunMemoryExperiment, conf: str) -> None:
        self._request, self._conf = request, conf
        self._has_begun = self._is_stopping = False
        self._reached = self._segments = None
        self.stage = ""
        modelled = is_modelled(request.device)
        self._say(
            Outcome(
                headline="Starting.",
                sentence="The lab's own engine starts: PyTorch is being loaded into it."
                if not modelled
                else "The model of the allocator is made.",
            )
        )
        self.state_changed.emit()
        self._session = self._lab.engage(is_modelled=modelled, conf=conf)
        self._reply = self._session.submit(request)
        self._reply.event_received.connect(self._receive)
        self._reply.finished.connect(self._conclude)

    def _receive(self, event: Event) -> None:
        assert self._request is not None
        match event:
            case MemoryRead():
                self._fill(event, self._request)
            case SegmentsRead():
                self._keep(event.read, event)
            case StageBegan():
                self.stage = event.sentence
                self._say(Outcome(headline="Running.", sentence=event.sentence))
            case _:
                pass

    def _conclude(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        match event:
            case OomFinished():
                self._finish(outcome_told(event), event)
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
        self._say(Outcome(headline="Running.", sentence=f"{self.stage} {filling}".strip()))

    def _keep(self, read: MemoryRead, segments: SegmentsRead | None = None) -> None:
        """Remember the moment that the outcome speaks of.

        It is the first failure; without one, when all was there and nothing freed yet; and where
        neither comes, because the engine died, when most was taken.
        """
        reached = self._reached
        if reached is not None and reached != read:
            rank, reached_rank = _rank(read), _rank(reached)
            is_more = (read.allocated_bytes or 0) >= (reached.allocated_bytes or 0)
            if rank < reached_rank or (rank == reached_rank and (rank or not is_more)):
                return
        self._reached = read
        self._segments = segments or self._segments

    def _finish(self, outcome: Outcome, finished: OomFinished | None = None) -> None:
        assert self._request is not None
        # What the engine says of itself counts: the user's own environment may have options, too.
        conf = finished.conf if finished is not None else self._conf
        description = self._session.description if self._session is not None else None
        result = LabResult(
            request=self._request, conf=conf, outcome=outcome, finished=finished,
            reached=self._reached, segments=self._segments,
            pid=description.pid if description is not None else None,
        )  # fmt: skip
        self._request = None
        self.stage = ""
        self.results = (*self.results, result)
        if not is_modelled(result.request.device):
            self._session = None
            self._lab.end()  # its context would take memory of the card
        self._say(outcome)
        self.state_changed.emit()
        self.results_changed.emit()

    def _say(self, outcome: Outcome) -> None:
        if outcome != self._outcome:
            self._outcome = outcome
            self.outcome_changed.emit(outcome)


def _rank(read: MemoryRead) -> int:
    return _RANKS.get(read.mark or "", 0)


def explain_failure(event: RequestFailed) -> Outcome:
    """Return why the engine refused, and what next."""
    failure = event.failure
    next_step = {
        FailureKind.NO_CUDA: "The Devices tab says what is missing.",
        FailureKind.NO_SUCH_DEVICE: "Choose another card above.",
        FailureKind.TOO_LARGE: "Take smaller tensors or a smaller budget.",
        FailureKind.DTYPE_UNSUPPORTED: "Choose another type.",
    }.get(failure.kind, "The details are in the log; try it once more.")
    return Outcome(
        headline="It could not be done.",
        sentence=failure.message,
        next_step=next_step,
        tone="failure",
    )


def explain_end(event: EngineEnded, *, has_begun: bool) -> Outcome:
    """Return how the lab's engine ended in the middle; ``has_begun``: it had read something."""
    if event.stopped and not has_begun:
        return Outcome(headline="Stopped.", sentence="It had not begun.")
    if event.stopped:
        return Outcome(
            headline="Stopped.",
            sentence="It was in the middle of a call, so the lab's engine was ended.",
        )
    return Outcome(
        headline="The engine died.",
        sentence=f"{describe_exit(event.exit_code)} Its readings are kept, its memory is freed.",
        next_step="It was the lab's own: the program's engine lives. Try a smaller budget.",
        tone="failure",
    )


class HeldResult(QObject):
    """The last result of an experiment, and whether it is so new that it hides the present.

    Signals:
        aged(): the last result is not new any more.
    """

    aged = Signal()

    def __init__(self, experiment: OomExperiment, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._experiment = experiment
        self._ageing = QTimer(self)
        self._ageing.setSingleShot(True)
        self._ageing.setInterval(_FRESH_MS)
        self._ageing.timeout.connect(self.aged)
        experiment.results_changed.connect(self._begin)

    @property
    def latest(self) -> LabResult | None:
        """The last result; None while an experiment runs, and where nothing was read."""
        results = self._experiment.results
        if not results or self._experiment.state is not OomState.IDLE:
            return None
        return results[-1] if results[-1].reached is not None else None

    @property
    def is_fresh(self) -> bool:
        """Whether there is a result that came some seconds ago."""
        return self._ageing.isActive() and self.latest is not None

    def let_go(self) -> None:
        """Let the present be seen now."""
        self._ageing.stop()
        self.aged.emit()

    def _begin(self) -> None:
        self._ageing.start()
