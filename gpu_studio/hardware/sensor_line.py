"""The sensors of another PC: how their child starts, and what their lines mean here."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.line_greeting import LineGreeting
from gpu_studio.core.line_trouble import LineProblem, LineTrouble, detail_of_ssh
from gpu_studio.core.line_values import UntrustedError, sensors_here
from gpu_studio.core.messages.line_messages import LineOpening
from gpu_studio.core.other_pc import ALIVE_EVERY_S, SILENCE_S, ssh_command, ssh_program
from gpu_studio.core.protocol import encode
from gpu_studio.process.line_child import LineChild

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import SensorEvent
    from gpu_studio.core.other_pc import OtherPc

_log = logging.getLogger(__name__)


class SensorLine:
    """The line to another PC's sensor reader.

    Args:
        pc: the other PC.
        period_s: seconds between two readings.

    Attributes:
        pc: the other PC.
        trouble: why the last line ended; None before the first has.
    """

    def __init__(self, pc: OtherPc, period_s: float) -> None:
        self.pc, self._period_s = pc, period_s
        self._greeting = LineGreeting(pc, "sensors")
        self._identities: dict[str, str] = {}
        self.trouble: LineTrouble | None = None

    def start(self) -> LineChild:
        """Start ssh; raise `OSError` if this PC has none."""
        self.trouble, self._greeting = None, LineGreeting(self.pc, "sensors")
        ssh = ssh_program()
        if ssh is None:
            self._complain(LineProblem.NO_SSH)
            raise FileNotFoundError
        return LineChild(
            ssh_command(self.pc, "sensors", ssh),
            encode(LineOpening(period_s=self._period_s)),
            self._greeting,
            alive_every_s=ALIVE_EVERY_S,
            silence_s=SILENCE_S,
        )

    def here(self, event: SensorEvent) -> SensorEvent:
        """Return an event with the names that the devices have here.

        Raises:
            ValueError: it has more than any reader of ours sends.
        """
        try:
            here = sensors_here(event, self.pc.name)
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

    def on_ended(self, child: object, exit_code: int | None) -> None:
        """Note why a line has ended that nobody here has closed."""
        if isinstance(child, LineChild):
            trouble = self._greeting.trouble(child, exit_code)
            self._complain(trouble.problem)
            _log.warning(
                "The line ended (%s): %s", trouble.problem.value, detail_of_ssh(child.errors)
            )

    def _complain(self, problem: LineProblem) -> None:
        if self.trouble is None:
            self.trouble = LineTrouble(problem=problem, pc=self.pc.name)
