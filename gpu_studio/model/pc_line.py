"""The line to another PC: a greeting, then its engine and its sensors; lost, and opened again."""

from __future__ import annotations

import threading
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.engine import Engine, EngineEnvironment
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.doctor import Doctor
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors, SensorSource

_LONGEST_END_MS = 1500


class PcGreeting(Protocol):
    """What a PC says of itself before anything else.

    Attributes:
        system: "Linux", "Windows" or "Darwin".
        engine_trouble: why it has no engine, as a sentence; empty if it has one.
    """

    @property
    def system(self) -> str: ...

    @property
    def engine_trouble(self) -> str: ...


class PcPort(Protocol):
    """Reaches other PCs; each conversation is a process of its own."""

    def greetings(self, pc: OtherPc, is_over: Callable[[], bool]) -> Iterator[PcGreeting]:
        """Yield the greeting of a PC; call it in a thread that may wait.

        Args:
            pc: where to ask.
            is_over: checked regularly: whether to give up.

        Raises:
            StudioError: the PC cannot be used, with the reason and what to do as its sentence.
        """

    def engine(self, pc: OtherPc, environment: EngineEnvironment) -> Engine:
        """Return an engine that runs there."""

    def sensors(self, pc: OtherPc) -> SensorSource:
        """Return the stream of its telemetry."""


class LineState(Enum):
    """The state of a line.

    ::

        CLOSED ─► OPENING ─► OPEN ─► LOST ─► OPENING
           ▲          └─► REFUSED ─► OPENING    │
           └──────────┴─────┴────────┴──────────┘  by the user
    """

    CLOSED = "not connected"
    OPENING = "connecting"
    OPEN = "connected"
    REFUSED = "not reached"
    LOST = "connection lost"


class PcLine(QObject):
    """Connects a PC, and notices when it is gone.

    What was measured stays, and so do the devices that are known: nobody can use them meanwhile.

    Args:
        address: where the PC is.
        port: reaches it.
        engines: the conversations with its engine and with its lab's.
        sensors: those of that PC.
        doctor: the findings about it.
        parent: owns the line.

    Signals:
        changed(): `state` changed.

    Attributes:
        address: where the PC is.
        state: whether it is connected.
        greeting: what it answered at the last connection; None before.
        refusal: why it could not be reached; None otherwise.
    """

    changed = Signal()

    def __init__(
        self,
        address: OtherPc,
        port: PcPort,
        engines: tuple[EngineSession, EngineSession],
        sensors: Sensors,
        doctor: Doctor,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._port = port
        self._session, self._lab = engines
        self._sensors, self._doctor = sensors, doctor
        self.address = address
        self.state = LineState.CLOSED
        self.greeting: PcGreeting | None = None
        self.refusal: Failure | None = None
        self._worker: Worker | None = None
        self._is_over = threading.Event()
        self._is_ended = False
        self._session.set_absence(self.sentence)
        self._session.state_changed.connect(self._on_engine_state)
        sensors.ended.connect(self._on_sensors_ended)

    @property
    def is_open(self) -> bool:
        """Whether the PC is connected."""
        return self.state is LineState.OPEN

    @property
    def is_shut(self) -> bool:
        """Whether the user disconnected the PC, or never connected it."""
        return self.state is LineState.CLOSED

    @property
    def engine_trouble(self) -> str:
        """Why the connected PC has no engine; empty if it has one."""
        return self.greeting.engine_trouble if self.is_open and self.greeting is not None else ""

    @property
    def sentence(self) -> str:
        """The state in words."""
        name = self.address.name
        match self.state:
            case LineState.CLOSED:
                return f"{name} is not connected."
            case LineState.OPENING:
                return f"Connecting to {name}…"
            case LineState.OPEN:
                return f"{name} is connected."
            case LineState.REFUSED:
                return f"{name} cannot be reached."
            case LineState.LOST:
                return f"The connection to {name} was lost."

    @property
    def notice(self) -> Notice:
        """The state with its reason, and what can be done about it."""
        match self.state:
            case LineState.REFUSED:
                reason = self.refusal.message if self.refusal is not None else ""
                return Notice(self.sentence, Tone.FAILURE, reason, action=Action.CONNECT_AGAIN)
            case LineState.LOST:
                return Notice(
                    self.sentence, Tone.AMBER, "What was measured is kept.",
                    action=Action.CONNECT_AGAIN,
                )  # fmt: skip
            case LineState.CLOSED:
                return Notice(self.sentence, action=Action.CONNECT)
            case LineState.OPENING:
                return Notice(self.sentence, Tone.QUIET)
            case LineState.OPEN:
                return Notice(self.sentence, Tone.GOOD)

    def open(self) -> None:
        """Connect, for the first time or again; does nothing while it connects or is connected."""
        if self._is_ended or self.state in (LineState.OPENING, LineState.OPEN):
            return
        self.refusal = None
        self._is_over = threading.Event()
        worker = Worker(partial(self._port.greetings, self.address, self._is_over.is_set), self)
        worker.value_produced.connect(self._on_greeted)
        worker.failure_raised.connect(self._on_refused)
        worker.finished.connect(worker.deleteLater)
        self._worker = worker
        self._enter(LineState.OPENING)
        worker.start()

    def shut(self) -> None:
        """Disconnect, and end everything there. The devices stay known."""
        if self.state is not LineState.CLOSED:
            self._end(LineState.CLOSED)

    def close(self) -> None:
        """Ask nothing more; nothing is left running."""
        self._is_ended = True
        self._is_over.set()
        for worker in self.findChildren(Worker):
            worker.wait(_LONGEST_END_MS)

    def _on_greeted(self, greeting: PcGreeting) -> None:
        if self._is_ended or self.sender() is not self._worker:
            return  # given up meanwhile
        self._worker = None
        self.greeting = greeting
        self.state = LineState.OPEN
        self._doctor.system = greeting.system
        self._sensors.follow(self._port.sensors(self.address))
        self._session.set_absence(greeting.engine_trouble)
        self._session.restart()
        self.changed.emit()

    def _on_refused(self, failure: Failure) -> None:
        if self._is_ended or self.sender() is not self._worker:
            return
        self.refusal = failure
        self._end(LineState.REFUSED)

    def _on_engine_state(self, state: EngineState) -> None:
        if state is EngineState.FAILED and self._session.has_lost_line:
            # Not yet: the session is about to refuse what waits for it.
            QTimer.singleShot(0, self, self._lose)

    def _on_sensors_ended(self) -> None:
        """Without an engine there, the sensors are all that notices."""
        if self._session.absence:
            self._lose()

    def _lose(self) -> None:
        if self.is_open and not self._is_ended:
            self._end(LineState.LOST)

    def _end(self, state: LineState) -> None:
        self._is_over.set()
        self._worker = None
        self.state = state
        self._sensors.follow(None)
        self._lab.end()
        self._session.set_absence(self.sentence)
        self._session.end()
        self.changed.emit()

    def _enter(self, state: LineState) -> None:
        self.state = state
        self._session.set_absence(self.sentence)
        self.changed.emit()
