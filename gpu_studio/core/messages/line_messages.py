"""The messages of a line to another PC, which are about the line itself.

Every conversation begins with a `Greeting` from there. `LineOpening` answers it, and only then come
the lines of the engine or of the sensor reader. An empty line is a sign of life, both ways.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpu_studio.core.messages.message import Message

LONGEST_GREETING = 4096
LONGEST_PERIOD_S = 60.0
PcSystem = Literal["linux", "windows", "macos"]
EngineReadiness = Literal["ready", "missing", "outdated"]


class Greeting(Message, frozen=True, kw_only=True):
    """What a program says first: no names, no paths, nothing of the PC's user.

    Attributes:
        protocol: changes with the messages; see `core.protocol_version`.
        version: the program's own, to show.
        system: of the PC, as far as commands to type differ.
        engine: whether it has one that can start.
    """

    protocol: Annotated[str, Meta(max_length=64)]
    version: Annotated[str, Meta(max_length=64)]
    system: PcSystem
    engine: EngineReadiness

    @property
    def has_engine(self) -> bool:
        """Whether an engine can start there."""
        return self.engine == "ready"

    @property
    def platform(self) -> str:
        """The name that `platform.system` has for the PC's system."""
        return {"linux": "Linux", "windows": "Windows", "macos": "Darwin"}[self.system]


class LineOpening(Message, frozen=True, kw_only=True):
    """What the part there needs before its first line.

    Attributes:
        visible_devices: `EngineEnvironment.visible_devices`.
        allocator_configuration: `EngineEnvironment.allocator_configuration`.
        period_s: seconds between two readings of the sensors.
    """

    visible_devices: Annotated[str, Meta(max_length=10_000)] | None = None
    allocator_configuration: Annotated[str, Meta(max_length=10_000)] | None = None
    period_s: Annotated[float, Meta(gt=0, le=LONGEST_PERIOD_S)] = 1.0


def decode_greeting(line: bytes) -> Greeting | None:
    """Return the greeting in a line; None for anything else."""
    try:
        return None if len(line) > LONGEST_GREETING else msgspec.json.decode(line, type=Greeting)
    except (msgspec.MsgspecError, RecursionError):
        return None
