"""Another PC's greeting, its sensors and its engine, as this PC's programs ask for them.

How each child starts, and what its lines mean here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import LineOpening
from gpu_studio.core.other_pc import PLACES, Introduction, LineProblem
from gpu_studio.core.protocol import decode_line, encode
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.hardware.client import SensorReader
from gpu_studio.line.line_child import LineChild
from gpu_studio.line.line_values import UntrustedError, event_here, request_there, sensors_here
from gpu_studio.line.ssh import LineGreeting, detail_of_ssh, ssh_command

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import SensorEvent
    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.messages.engine_messages import Heartbeat
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.process.child_process import ChildProcess

_MOST_ANSWER_BYTES = 1 << 30

_log = logging.getLogger(__name__)


class LineHello:
    """Asks another PC's program for its greeting, once.

    The program is looked for in `PLACES`, by one conversation each: every shell there understands a
    single command, and not every shell the same list of them. Where it was last is the first.
    """

    def __init__(self, pc: OtherPc) -> None:
        self._pc = pc
        self._child: LineChild | None = None
        self._is_closed = False

    def answer(self) -> Introduction:
        """Return what its program says; blocks up to half a minute for each place."""
        found = Introduction(self._pc)
        for place in dict.fromkeys((self._pc.program or PLACES[0], *PLACES)):
            found = self._answer_at(msgspec.structs.replace(self._pc, program=place))
            if self._is_closed or found.problem is not LineProblem.NO_PROGRAM:
                return found
        return found

    def close(self) -> None:
        """Ask no longer; any thread may call it."""
        self._is_closed = True
        if self._child is not None:
            self._child.kill()

    def _answer_at(self, pc: OtherPc) -> Introduction:
        accepts = LineGreeting("hello")
        try:
            child = self._child = LineChild(ssh_command(pc, "hello"), b"", accepts)
        except OSError:
            return Introduction(pc, problem=LineProblem.NO_SSH)
        if self._is_closed:
            child.kill()
        next(child.lines(), None)  # nothing follows a greeting
        exit_code = child.end(limits.current.child_end_s)
        problem = accepts.problem
        if problem is not None:
            problem = accepts.why_ended(child, exit_code)
        return Introduction(pc, accepts.greeting, problem, detail_of_ssh(child.error_text))


class LineSensors(SensorReader):
    """The sensors of another PC; its devices have the PC's name in front.

    Args:
        pc: the other PC.
        period_s: seconds between two readings.
    """

    def __init__(self, pc: OtherPc, period_s: float = 1.0) -> None:
        super().__init__(period_s)
        self._pc = pc
        self._identities: dict[str, str] = {}

    def _new_child(self) -> ChildProcess:
        opening = encode(LineOpening(period_s=self._period_s))
        return LineChild(ssh_command(self._pc, "sensors"), opening, LineGreeting("sensors"))

    def _event_of(self, line: bytes) -> SensorEvent:
        event = super()._event_of(line)
        here = sensors_here(event, self._pc.name)
        if isinstance(event, Inventory) and isinstance(here, Inventory):
            pairs = zip(event.devices, here.devices, strict=True)
            self._identities = {there.identity: one.identity for there, one in pairs}
            return here
        assert isinstance(here, Reading)
        cards = (
            msgspec.structs.replace(one, uuid=self._identities.get(one.uuid, one.uuid))
            for one in here.cards
        )
        return msgspec.structs.replace(here, cards=tuple(cards))

    def _on_ended(self, child: ChildProcess, exit_code: int | None) -> None:
        assert isinstance(child, LineChild)
        _log.warning("The line of sensors ended: %s", detail_of_ssh(child.error_text))


class LineEngine(ProcessEngine):
    """An engine of another PC; its devices have the PC's name in front.

    Args:
        pc: the other PC.
        environment: the settings that CUDA reads there at the engine's start.
    """

    def __init__(self, pc: OtherPc, environment: EngineEnvironment | None = None) -> None:
        super().__init__(environment)
        self._pc = pc
        self._greeting = LineGreeting("engine")
        self._answer_bytes = 0  # since the last request

    def _new_child(self) -> ChildProcess:
        self._greeting = LineGreeting("engine")
        opening = LineOpening(
            visible_devices=self._environment.visible_devices,
            allocator_configuration=self._environment.allocator_configuration,
        )
        return LineChild(ssh_command(self._pc, "engine"), encode(opening), self._greeting)

    def _not_started(self, error: OSError) -> Event:
        return self._failed(LineProblem.NO_SSH, str(error))

    def _line_of(self, request: Request) -> bytes:
        self._answer_bytes = 0
        return encode(request_there(request, self._pc.name))

    def _event_of(self, line: bytes) -> Event | Heartbeat:
        self._answer_bytes += len(line)
        if self._answer_bytes > _MOST_ANSWER_BYTES:
            raise UntrustedError("an answer that does not end")
        try:
            return event_here(decode_line(line), self._pc.name)
        except (msgspec.MsgspecError, RecursionError, UntrustedError) as error:
            raise ValueError(str(error)) from error

    def _unreadable(self, error: ValueError) -> Event:
        return self._failed(LineProblem.NOT_OURS, str(error))

    def _ended(self, child: ChildProcess, exit_code: int | None) -> Event:
        assert isinstance(child, LineChild)
        if self._abandoned:
            return EngineEnded(exit_code=None, stopped=True)
        problem = self._greeting.why_ended(child, exit_code)
        return self._failed(problem, detail_of_ssh(child.error_text))

    def _failed(self, problem: LineProblem, why: str) -> RequestFailed:
        _log.warning("The line to another PC ended (%s): %s", problem.name, why)
        return RequestFailed(failure=problem.failure(self._pc))
