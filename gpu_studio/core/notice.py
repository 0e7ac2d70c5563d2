"""A notice: a sentence with its tone, what belongs to it, and what can be done about it."""

from __future__ import annotations

from enum import Enum

import msgspec


class Tone(Enum):
    """How good or bad something is; the value is the name of its look in the style sheet."""

    PLAIN = ""
    QUIET = "quiet"  # not known yet, or still running
    GOOD = "good"
    AMBER = "amber"
    FAILURE = "failure"


class Notice(msgspec.Struct, frozen=True):
    """A sentence to show, from the most important part to the least.

    Attributes:
        sentence: what is so; empty if there is nothing to say.
        tone: how good or bad it is.
        detail: its evidence or explanation, in one or more lines.
        next_step: what you can do about it.
    """

    sentence: str = ""
    tone: Tone = Tone.PLAIN
    detail: str = ""
    next_step: str = ""
