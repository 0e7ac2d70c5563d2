"""The bases of all messages between window and engine, and the ranges of the numbers in them.

A message is declared once, as a class in this folder: its base says what it is (a `Request`, an
`Event`, one of the ends), and `core.protocol` finds it there.

msgspec holds these ranges when it decodes a message, which may come from a stranger's file. It does
not hold them for a message that Python code makes.

Every conversation with another PC begins with a `Greeting` from there. `LineOpening` answers it,
and only then come the lines of the engine or of the sensor reader. An empty line is a sign of life.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

LONGEST_S = 1e6
"""The longest time in a message: 11 days."""
LARGEST_COUNT = (1 << 31) - 1
"""The largest number of things in a message; Qt counts in 32 bits."""
_LARGEST_NUMBER = 1e100  # the difference of two of them is still a number, which a plot needs

Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
PositiveCount = Annotated[int, Meta(ge=1, le=LARGEST_COUNT)]
CardCount = Annotated[int, Meta(ge=0, le=1000)]
"""As many cards as ``cuda:0`` to ``cuda:999`` can name."""
Bytes = Annotated[int, Meta(ge=0, le=1 << 62)]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_S)]
Amount = Annotated[float, Meta(ge=0, le=_LARGEST_NUMBER)]
"""A throughput, a share, or the work of a call."""
Ordinate = Annotated[float, Meta(ge=-_LARGEST_NUMBER, le=_LARGEST_NUMBER)]
"""A point of a curve."""
SHORTEST_S = 1e-12
"""Shorter than any call; its inverse and its share of `LONGEST_S` are numbers."""
CallSeconds = Annotated[float, Meta(ge=SHORTEST_S, le=LONGEST_S)]
"""A time of a call."""


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=_tag):
    """The base of all messages; a message's tag is its class name in snake case."""

    @property
    def ends_engine(self) -> bool:
        """Whether the engine cannot continue after this message: it crashed, or a card is lost."""
        return False


class Request(Message, frozen=True, kw_only=True):
    """What the window asks of an engine; an engine works on one request at a time."""


class Event(Message, frozen=True, kw_only=True):
    """A part of the answer to a request."""

    def ends(self, request: Request) -> bool:
        """Return whether this event is the last one of the answer to a request."""
        return False


class LastEvent(Event, frozen=True, kw_only=True):
    """An event that ends the answer to every request."""

    def ends(self, request: Request) -> bool:
        """Return True."""
        return True


LONGEST_GREETING = 4096
LONGEST_PERIOD_S = 60.0
PcSystem = Literal["linux", "windows", "macos"]
EngineReadiness = Literal["ready", "missing", "outdated"]


class Greeting(Message, frozen=True, kw_only=True):
    """What a program says first: no names, no paths, nothing of the PC's user.

    Attributes:
        protocol: changes with the messages; see `core.protocol.protocol_version`.
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
