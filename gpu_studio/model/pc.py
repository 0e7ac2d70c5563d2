"""A PC whose devices the window has: this one, or a `RemotePc`.

Another PC is at the end of a line: a greeting, then its engine and its sensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core import limits
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.other_pc import Introduction, LineProblem
from gpu_studio.core.program_form import OF_ANOTHER_PC
from gpu_studio.model.engine_session import EngineSession, EngineState
from gpu_studio.model.sensors import Sensors
from gpu_studio.model.worker import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.engine import Engine, EngineEnvironment, EngineFactory
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.sensors import SensorSource


class Doctor(QObject):
    """The findings about a PC.

    Signals:
        findings_changed(): the findings changed.

    Attributes:
        findings: the findings, worst first; empty until devices are found.
        system: the system of another PC; empty for this one.
    """

    findings_changed = Signal()

    def __init__(
        self, session: EngineSession, sensors: Sensors, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session, self._sensors = session, sensors
        self.findings: Sequence[Finding] = ()
        self.system = ""
        sensors.inventory_changed.connect(self._update)
        sensors.links_changed.connect(self._update)
        session.engine_described.connect(self._update)

    def _update(self) -> None:
        inventory = self._sensors.inventory
        if inventory is None:
            return
        from gpu_studio.core.devices.findings import find  # 20 ms

        findings = find(
            inventory, self._session.description, links=self._sensors.links,
            system=self.system or None, program=OF_ANOTHER_PC if self.system else None,
        )  # fmt: skip
        if self.system:  # the window installs and restarts nothing there
            findings = tuple(msgspec.structs.replace(one, action=None) for one in findings)
        self.findings = findings
        self.findings_changed.emit()


class Pc(QObject):
    """The engines and the sensors of a PC, and the findings about it.

    Args:
        name: what the user calls another PC; empty for this one.
        engine_factory: creates an engine there.
        source: the stream of its telemetry; None until another PC is connected.
        parent: owns it.

    Attributes:
        session: the conversation with the engine that measures.
        lab: the conversation with the memory lab's own engine, so that an experiment can only break
            that: it starts for an experiment and ends with it, because its context uses memory of
            the card.
        engine_factory: creates the engine of other work that may break one, such as a check.
        notice: how it is connected, and what can be done about it; empty for this one.
        why_not: why nothing can be asked of it, as a sentence; empty if something can.
        is_shut: whether the user disconnected it, or never connected it.
    """

    def __init__(
        self,
        name: str,
        engine_factory: EngineFactory,
        source: SensorSource | None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.name = name
        self.engine_factory = engine_factory
        # A stop crosses the line and its answer comes back, before the engine counts as deaf.
        patience_ms = limits.current.stop_over_line_ms if name else None
        self.session = EngineSession(
            engine_factory, self, wakes_cards=False, stop_patience_ms=patience_ms
        )
        self.lab = EngineSession(engine_factory, self, stop_patience_ms=patience_ms)
        self.sensors = Sensors(source, self, shares_clock=not name)
        self.doctor = Doctor(self.session, self.sensors, self)
        self.notice = Notice()
        self.why_not = ""
        self.is_shut = False

    def close(self) -> None:
        """End all its work and its processes."""
        self.lab.close()
        self.session.close()
        self.sensors.close()


class Hello(Protocol):
    """A question for a PC's greeting: `line.clients.LineHello`."""

    def answer(self) -> Introduction:
        """Return what the PC says first; call it in a thread that may wait."""

    def close(self) -> None:
        """Ask no longer; any thread may call it."""


class PcPort(Protocol):
    """Reaches other PCs; each conversation is a process of its own."""

    def hello(self, pc: OtherPc) -> Hello:
        """Return a question for its greeting."""

    def engine(self, pc: OtherPc, environment: EngineEnvironment) -> Engine:
        """Return an engine that runs there."""

    def sensors(self, pc: OtherPc) -> SensorSource:
        """Return the stream of its telemetry."""


class RemotePc(Pc):
    """A PC that the user added, or is about to. It connects, and notices when it is gone.

    What was measured stays, and so do the devices that are known: nobody can use them meanwhile.

    Args:
        address: where it is, as the user gave it.
        port: reaches it.
        parent: owns it.

    Signals:
        changed(): it connects, is connected, or is no longer.

    Attributes:
        address: where it is, with the place where its program was found.
        said: what came of the last attempt to connect; None before.
    """

    changed = Signal()

    def __init__(self, address: OtherPc, port: PcPort, parent: QObject | None = None) -> None:
        super().__init__(address.name, self._new_engine, None, parent)
        self.address, self._port = address, port
        self.said: Introduction | None = None
        self._hello: Hello | None = None
        self._task: Task | None = None
        self._is_closed = False
        self.session.state_changed.connect(self._on_engine_state)
        self.sensors.ended.connect(self._on_sensors_ended)
        self._closed = Notice(f"{self.name} is not connected.", action=Action.CONNECT)
        self._enter(self._closed)

    def open(self) -> None:
        """Connect, for the first time or again; does nothing while it connects or is connected."""
        if self._is_closed or self._hello is not None or not self.why_not:
            return
        self._enter(Notice(f"Connecting to {self.name}…", Tone.QUIET))
        self._hello = self._port.hello(self.address)
        self._task = Task(self._hello.answer, self)
        self._task.succeeded.connect(self._on_greeted)
        self._task.failed.connect(self._on_greeting_failed)
        self._task.start()
        self.changed.emit()

    def shut(self) -> None:
        """Disconnect, and end everything there. The devices stay known."""
        self._end(self._closed)

    def close(self) -> None:
        """See `Pc.close`."""
        self._is_closed = True
        self._cancel_greeting()
        for task in self.findChildren(Task):
            task.wait()
        super().close()

    def _new_engine(self, environment: EngineEnvironment) -> Engine:
        return self._port.engine(self.address, environment)

    def _cancel_greeting(self) -> None:
        if self._hello is not None:
            self._hello.close()
        self._hello = self._task = None

    def _on_greeting_failed(self, failure: Failure) -> None:
        problem = LineProblem.UNKNOWN
        self._on_greeted(Introduction(self.address, problem=problem, detail=failure.message))

    def _on_greeted(self, said: Introduction) -> None:
        if self.sender() is not self._task:
            return  # of an attempt that was given up
        self._hello = self._task = None
        self.said = said
        if said.problem is not None:
            self._break(said.problem.notice(self.address))
            return
        assert said.greeting is not None
        self.address, self.doctor.system = said.pc, said.greeting.platform
        without_engine = LineProblem.NO_ENGINE.notice(self.address).words
        connected = Notice(f"{self.name} is connected.", Tone.GOOD)
        has_engine = said.greeting.has_engine
        self._enter(connected if has_engine else Notice(without_engine, Tone.AMBER), is_open=True)
        self.sensors.use_source(self._port.sensors(self.address))
        self.session.restart()
        self.changed.emit()

    def _on_engine_state(self, state: EngineState) -> None:
        if state is EngineState.FAILED and self.session.line_failure is not None:
            # Not yet: the session is about to refuse what waits for it.
            QTimer.singleShot(0, self, self._on_line_lost)

    def _on_sensors_ended(self) -> None:
        """Without an engine there, the sensors are all that notices."""
        if self.session.absence:
            self._on_line_lost()

    def _on_line_lost(self) -> None:
        if not self.why_not and not self._is_closed:
            lost = LineProblem.LOST.failure(self.address)
            failure = self.session.line_failure or lost
            self._break(Notice(failure.message, Tone.AMBER, "The results are kept."))

    def _break(self, notice: Notice) -> None:
        self._end(msgspec.structs.replace(notice, action=Action.CONNECT_AGAIN))

    def _end(self, notice: Notice) -> None:
        self._cancel_greeting()
        self._enter(notice)
        self.sensors.use_source(None)
        self.lab.end()
        self.session.end()
        self.changed.emit()

    def _enter(self, notice: Notice, *, is_open: bool = False) -> None:
        self.notice, self.is_shut = notice, notice is self._closed
        self.why_not = "" if is_open else notice.sentence
        self.session.set_absence("" if notice.tone is Tone.GOOD else notice.sentence)
