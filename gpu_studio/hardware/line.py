"""Another PC's first word and its sensors: how their child starts, and what its lines mean here."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.line_trouble import (
    Introduction,
    LineGreeting,
    LineProblem,
    LineTrouble,
    detail_of_ssh,
)
from gpu_studio.core.line_values import UntrustedError, sensors_here
from gpu_studio.core.messages.message import LineOpening
from gpu_studio.core.other_pc import PLACES, ssh_command
from gpu_studio.core.protocol import encode
from gpu_studio.hardware.client import SensorReader
from gpu_studio.process.line_child import LineChild

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import SensorEvent
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.process.child_process import ChildProcess

_LONGEST_END_S = 2.0
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
            trouble = found.trouble
            if self._is_closed or not trouble or trouble.problem is not LineProblem.NO_PROGRAM:
                return found
        return found

    def close(self) -> None:
        """Ask no longer; any thread may call it."""
        self._is_closed = True
        if self._child is not None:
            self._child.kill()

    def _answer_at(self, pc: OtherPc) -> Introduction:
        accepts = LineGreeting(pc, "hello")
        try:
            child = self._child = LineChild(ssh_command(pc, "hello"), b"", accepts)
        except OSError:
            return Introduction(pc, trouble=LineTrouble(LineProblem.NO_SSH, pc))
        if self._is_closed:
            child.kill()
        next(child.lines(), None)  # nothing follows a greeting
        exit_code = child.end(_LONGEST_END_S)
        trouble = None
        if accepts.problem is not None:
            trouble = accepts.trouble(child, exit_code)
        return Introduction(pc, accepts.greeting, trouble, detail_of_ssh(child.error_text))


class LineSensors(SensorReader):
    """The sensors of another PC; its devices have the PC's name in front.

    Args:
        pc: the other PC.
        period_s: seconds between two readings.
    """

    def __init__(self, pc: OtherPc, period_s: float = 1.0) -> None:
        super().__init__(period_s)
        self._pc = pc
        self._accepts = LineGreeting(pc, "sensors")
        self._identities: dict[str, str] = {}

    def _new_child(self) -> ChildProcess:
        self.trouble, self._accepts = None, LineGreeting(self._pc, "sensors")
        opening = encode(LineOpening(period_s=self._period_s))
        try:
            return LineChild(ssh_command(self._pc, "sensors"), opening, self._accepts)
        except OSError:
            self._complain(LineProblem.NO_SSH)
            raise

    def _event_of(self, line: bytes) -> SensorEvent:
        event = super()._event_of(line)
        try:
            here = sensors_here(event, self._pc.name)
        except UntrustedError:
            self._complain(LineProblem.NOT_OURS)
            raise
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
        self._complain(self._accepts.trouble(child, exit_code).problem)
        _log.warning("The line ended: %s", detail_of_ssh(child.error_text))

    def _complain(self, problem: LineProblem) -> None:
        if self.trouble is None:
            self.trouble = LineTrouble(problem, self._pc)
