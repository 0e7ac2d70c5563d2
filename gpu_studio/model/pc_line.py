"""The line to another PC: a greeting, then its engine and its sensors; lost, and opened again."""

from __future__ import annotations

import threading
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.line_trouble import LineProblem, LineTrouble
from gpu_studio.core.messages.line_messages import EngineReadiness, PcSystem
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.sensors import SensorSource
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.engine import Engine, EngineEnvironment
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.line_messages import Greeting
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.doctor import Doctor
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.sensors import Sensors

_LONGEST_END_MS = 1500
_SYSTEMS = {PcSystem.LINUX: "Linux", PcSystem.WINDOWS: "Windows", PcSystem.MACOS: "Darwin"}
"""The systems as `core.operating_system` names them."""


class PcIntroduction(Protocol):
    """What came of a first word with a PC: `hardware.greeting.Introduction`.

    Attributes:
        pc: the PC, with the place where its program was found.
        greeting: what its program said; None if it said nothing.
        trouble: why it cannot be used; None if it can.
        detail: ssh's own last line; it may name the host.
    """

    @property
    def pc(self) -> OtherPc: ...
    @property
    def greeting(self) -> Greeting | None: ...
    @property
    def trouble(self) -> LineTrouble | None: ...
    @property
    def detail(self) -> str: ...


class LineSensors(SensorSource, Protocol):
    """The stream of another PC's telemetry."""

    @property
    def trouble(self) -> LineTrouble | None:
        """Why the stream has ended; None if it has not, or was closed here."""


class PcPort(Protocol):
    """Reaches other PCs; each conversation is a process of its own."""

    def greet(self, pc: OtherPc, is_over: Callable[[], bool]) -> PcIntroduction:
        """Return what a PC says first; call it in a thread that may wait.

        Args:
            pc: where to ask.
            is_over: asked regularly: whether to give up.
        """

    def engine(self, pc: OtherPc, environment: EngineEnvironment) -> Engine:
        """Return an engine that runs there."""

    def sensors(self, pc: OtherPc) -> LineSensors:
        """Return the stream of its telemetry."""


class PcReach:
    """Where a PC is, and what reaches it.

    Attributes:
        address: as the user gave it.
        found: the same, with the place where its program was found at the last connection.
    """

    def __init__(self, address: OtherPc, port: PcPort) -> None:
        self.address = self.found = address
        self._port = port

    def greetings(self, is_over: Callable[[], bool]) -> Iterator[PcIntroduction]:
        """Yield what the PC says first; blocks."""
        yield self._port.greet(self.address, is_over)

    def engine(self, environment: EngineEnvironment) -> Engine:
        """Return an engine that runs there."""
        return self._port.engine(self.found, environment)

    def sensors(self) -> SensorSource:
        """Return the stream of its telemetry."""
        return self._port.sensors(self.found)


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
        reach: where the PC is.
        engines: the conversations with its engine and with its lab's.
        sensors: those of that PC.
        doctor: the findings about it.
        parent: owns the line.

    Signals:
        changed(): `state` changed.

    Attributes:
        address: where the PC is, as the user gave it.
        state: whether it is connected.
        greeting: what its program said at the last connection; None before.
        trouble: why it could not be connected; None otherwise.
        detail: ssh's own words about that; empty without any.
    """

    changed = Signal()

    def __init__(
        self,
        reach: PcReach,
        engines: tuple[EngineSession, EngineSession],
        sensors: Sensors,
        doctor: Doctor,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._reach = reach
        self._session, self._lab = engines
        self._sensors, self._doctor = sensors, doctor
        self.address = reach.address
        self.state = LineState.CLOSED
        self.greeting: Greeting | None = None
        self.trouble: LineTrouble | None = None
        self.detail = self._why_lost = ""
        self._worker: Worker | None = None
        self._is_over = threading.Event()
        self._is_ended = False
        self._session.set_absence(self.sentence)
        self._session.state_changed.connect(self._on_engine_state)
        sensors.ended.connect(self._on_sensors_ended)

    @property
    def found(self) -> OtherPc:
        """Where the PC is, with the place where its program was found."""
        return self._reach.found

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
        if not self.is_open or self.greeting is None:
            return ""
        if self.greeting.engine is EngineReadiness.READY:
            return ""
        missing = LineTrouble(problem=LineProblem.NO_ENGINE, pc=self.address.name)
        return f"{missing.sentence} {missing.action(self.address.host)}"

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
                known = self.trouble or LineTrouble(problem=LineProblem.UNKNOWN, pc=name)
                return known.sentence
            case LineState.LOST:
                lost = LineTrouble(problem=LineProblem.LOST, pc=name)
                return self._why_lost or lost.sentence

    @property
    def notice(self) -> Notice:
        """The state with its reason, and what can be done about it."""
        match self.state:
            case LineState.REFUSED:
                what_now = self.trouble.action(self.address.host) if self.trouble else ""
                return Notice(
                    self.sentence, Tone.FAILURE, next_step=what_now, action=Action.CONNECT_AGAIN
                )
            case LineState.LOST:
                return Notice(
                    self.sentence, Tone.AMBER, "The results are kept.",
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
        self.trouble, self.detail, self._why_lost = None, "", ""
        self._is_over = threading.Event()
        worker = Worker(partial(self._reach.greetings, self._is_over.is_set), self)
        worker.value_produced.connect(self._on_greeted)
        worker.failure_raised.connect(self._on_failed)
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

    def _on_greeted(self, said: PcIntroduction) -> None:
        if self._is_ended or self.sender() is not self._worker:
            return  # given up meanwhile
        self._worker = None
        self.greeting, self.trouble, self.detail = said.greeting, said.trouble, said.detail
        if said.trouble is not None or said.greeting is None:
            self._end(LineState.REFUSED)
            return
        self._reach.found = said.pc
        self.state = LineState.OPEN
        self._doctor.system = _SYSTEMS[said.greeting.system]
        self._sensors.follow(self._reach.sensors())
        self._session.set_absence(self.engine_trouble)
        self._session.restart()
        self.changed.emit()

    def _on_failed(self, failure: Failure) -> None:
        if self._is_ended or self.sender() is not self._worker:
            return
        self.trouble = LineTrouble(problem=LineProblem.UNKNOWN, pc=self.address.name)
        self.detail = failure.message
        self._end(LineState.REFUSED)

    def _on_engine_state(self, state: EngineState) -> None:
        failure = self._session.line_failure
        if state is EngineState.FAILED and failure is not None:
            self._why_lost = failure.message
            # Not yet: the session is about to refuse what waits for it.
            QTimer.singleShot(0, self, self._lose)

    def _on_sensors_ended(self) -> None:
        """Without an engine there, the sensors are all that notices."""
        if self.engine_trouble:
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
