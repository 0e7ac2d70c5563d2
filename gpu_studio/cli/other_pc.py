"""The PC whose devices a command uses: this one, or that of ``--on``.

The command runs here in any case, with that PC's engine and sensors at the end of a line. So its
history, its recordings and whatever ``--save`` names are files of this PC, as in the window; the
same command there, over ssh, would leave them there.
"""

from __future__ import annotations

import argparse
from typing import Any

from gpu_studio.cli.command import WrongUseError
from gpu_studio.cli.screen import note
from gpu_studio.core.benchmark.recording_writer import system_name
from gpu_studio.core.device_name import DeviceName, address_at
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.other_pc import OtherPc, pc_from_text
from gpu_studio.line.clients import LineHello

COMMANDS = frozenset(
    ("devices", "doctor", "bench", "race", "standard", "check", "memory", "place", "pitfall")
)
"""The commands that can use another PC's devices."""


class Target:
    """Where a command's engine and sensors are; a process of the terminal has one.

    Attributes:
        pc: the other PC; None for this one.
        system: its system, "Linux"; None for this one's own.
    """

    pc: OtherPc | None = None
    system: str | None = None

    @property
    def system_name(self) -> str:
        """The system of the PC, with its version if it is this one."""
        return self.system or system_name()

    def use(self, options: argparse.Namespace) -> None:
        """Use the PC of ``--on``, with its names for the devices that the options name.

        Raises:
            WrongUseError: its host is refused, or the command or an option is for this PC alone.
            StudioError: it cannot be used.
        """
        if not options.on:
            return
        if options.command not in COMMANDS:
            raise WrongUseError(f"--on is for {', '.join(sorted(COMMANDS))}.")
        try:
            pc = pc_from_text(options.on)
        except ValueError as error:
            raise WrongUseError(str(error)) from error
        # A snapshot is written, and weights are read, where the work is.
        for name in ("save", "weights") if options.command == "memory" else ():
            if getattr(options, name, None):
                raise WrongUseError(f"--{name} is not for another PC: files stay where they are.")
        found = LineHello(pc).answer()
        if found.problem is not None:
            if found.detail:
                note(found.detail)
            raise StudioError(FailureKind.LINE_LOST, found.problem.notice(pc).words)
        assert found.greeting is not None
        self.pc, self.system = found.pc, found.greeting.platform
        for name in ("device", "then"):
            if hasattr(options, name):
                setattr(options, name, _at(self.pc.name, getattr(options, name)))


TARGET = Target()


def _at(pc: str, devices: Any) -> Any:
    """Return the devices of an option with the PC's name in front."""
    if isinstance(devices, (list, tuple)):
        return type(devices)(_at(pc, one) for one in devices)
    if not isinstance(devices, str) or is_modelled(devices):
        return devices
    try:
        name = DeviceName.parse(devices)
    except ValueError:
        return devices
    return devices if name.pc else address_at(pc, devices)
