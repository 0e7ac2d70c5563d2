"""The out-of-memory experiment: a plan, its run in the engine, and what came of it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.oom_words import Outcome, describe_filling, explain_outcome
from gpu_studio.core.protocol import (
    BreakMemory,
    EngineEnded,
    Event,
    MemoryRead,
    OomFinished,
    Request,
    RequestFailed,
)
from gpu_studio.core.runs import describe_exit
from gpu_studio.core.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from gpu_studio.model.engine_session import EngineSession

MIB = 1 << 20
_LEAST_RESERVE_BYTES = 64 * MIB
_RESERVE_SHARE = 1 / 16
BUDGET_STEP_BYTES = 16 * MIB

SIZES = (
    64, 128, 256, 512, 1024, 1448, 2048, 2896, 4096, 5792, 8192, 11585, 16384, 23170, 32768, 46340,
    65536, 92682, 131072,
)  # fmt: skip
# None is "until it breaks".
COUNTS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256, 512, 1024, None)


class OomPlan(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` square tensors of ``size``; None goes on until it breaks."""

    size: int
    dtype: str
    count: int | None

    @property
    def tensor_bytes(self) -> int:
        """What one tensor takes."""
        return self.size**2 * ITEM_BYTES[self.dtype]

    def count_within(self, budget_bytes: int) -> int:
        """Return how many tensors to ask for: so many that a budget must break."""
        return self.count or budget_bytes // self.tensor_bytes + 2


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with a name and where it is from."""

    name: str
    plan: OomPlan
    sentence: str


PRESETS = (
    Preset(
        name="The GT 1030 experiment: 8192 × 8192 float32 until it breaks",
        plan=OomPlan(size=8192, dtype="float32", count=None),
        sentence="From “How can I run any code on my GPU, instead on CPU?” by Radosław Śmigielski.",
    ),
    Preset(
        name="The same in half precision: 8192 × 8192 float16",
        plan=OomPlan(size=8192, dtype="float16", count=None),
        sentence="Half the bytes a number: twice as many tensors fit.",
    ),
    Preset(
        name="Many tensors of 4 MiB",
        plan=OomPlan(size=1024, dtype="float32", count=None),
        sentence="Five of them share one segment of 20 MiB, so reserved grows in steps.",
    ),
    Preset(
        name="A few that fit: 4 of 64 MiB",
        plan=OomPlan(size=4096, dtype="float32", count=4),
        sentence="What PyTorch does when nothing breaks.",
    ),
)


def largest_budget(total_bytes: int) -> int:
    """Return the most that may be asked of a card: all but a reserve for its other users."""
    reserve = max(_LEAST_RESERVE_BYTES, round(total_bytes * _RESERVE_SHARE))
    return max(_in_steps(total_bytes - reserve), BUDGET_STEP_BYTES)


def default_budget(total_bytes: int, free_bytes: int) -> int:
    """Return three quarters of what is free."""
    return min(max(_in_steps(free_bytes * 3 // 4), BUDGET_STEP_BYTES), largest_budget(total_bytes))


def _in_steps(size_bytes: int) -> int:
    return size_bytes // BUDGET_STEP_BYTES * BUDGET_STEP_BYTES


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
    """Runs one experiment at a time and keeps its outcome.

    Signals:
        state_changed(): began, was asked to stop, or is over.
        outcome_changed(Outcome): what there is to say now, while it runs as well.
    """

    state_changed = Signal()
    outcome_changed = Signal(object)

    def __init__(self, session: EngineSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._request: BreakMemory | None = None
        self._has_begun = False
        self._is_stopping = False
        self._outcome: Outcome | None = None
        session.event_received.connect(self._receive)

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

    def run(self, device: str, plan: OomPlan, budget_bytes: int) -> None:
        """Begin; does nothing while one is going on."""
        if self._request is not None:
            return
        request = BreakMemory(
            device=device,
            size=plan.size,
            count=plan.count_within(budget_bytes),
            dtype=plan.dtype,
            budget_bytes=budget_bytes,
        )
        self._request, self._has_begun, self._is_stopping = request, False, False
        busy = not self._session.state.is_idle
        self._say(
            Outcome(
                headline="Waiting." if busy else "Running.",
                sentence="The engine finishes what it does first."
                if busy
                else "Tensors are made, one after another.",
            )
        )
        self.state_changed.emit()
        self._session.submit(request)

    def stop(self) -> None:
        """Stop it; what it allocated is freed."""
        if self._request is not None and not self._is_stopping:
            self._is_stopping = True
            self.state_changed.emit()
            self._session.stop(self._request)

    def _receive(self, request: Request, event: Event) -> None:
        if request is not self._request or self._request is None:
            return
        match event:
            case MemoryRead():
                self._fill(event, self._request)
            case OomFinished():
                self._finish(explain_outcome(event))
            case RequestFailed():
                self._finish(_explain_failure(event))
            case EngineEnded():
                self._finish(_explain_end(event, has_begun=self._has_begun))
            case _:
                pass

    def _fill(self, read: MemoryRead, request: BreakMemory) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.state_changed.emit()
        sentence = describe_filling(read, request.budget_bytes)
        self._say(Outcome(headline="Running.", sentence=sentence))

    def _finish(self, outcome: Outcome) -> None:
        self._request = None
        self._say(outcome)
        self.state_changed.emit()

    def _say(self, outcome: Outcome) -> None:
        if outcome != self._outcome:
            self._outcome = outcome
            self.outcome_changed.emit(outcome)


def _explain_failure(event: RequestFailed) -> Outcome:
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


def _explain_end(event: EngineEnded, *, has_begun: bool) -> Outcome:
    if event.stopped and not has_begun:
        return Outcome(headline="Stopped.", sentence="It had not begun.")
    if event.stopped:
        return Outcome(
            headline="Stopped.",
            sentence="It was in the middle of a call, so its engine was ended; a fresh one starts.",
        )
    return Outcome(
        headline="The engine died.",
        sentence=f"{describe_exit(event.exit_code)} Its readings are kept, its memory is freed.",
        next_step="A fresh engine starts by itself; try a smaller budget.",
        tone="failure",
    )
