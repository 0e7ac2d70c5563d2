"""The messages between window and engine about the pitfalls."""

from __future__ import annotations

import msgspec

from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.message import Event, LastEvent, Request


class RunPitfall(Request, frozen=True, kw_only=True):
    """Run a pitfall on purpose.

    ``part`` is ``broken``, ``fixed`` or ``both``. ``device`` is the device to use together with
    the CPU; ``cpu`` if there is no card.
    """

    name: str
    device: str
    part: str = "both"


class PitfallDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One pitfall, described by the file that implements it.

    ``shows`` says in a few words what you see, for a list; ``sentence`` says what goes wrong,
    ``why`` explains it in a paragraph, ``remedy`` is the fix in a sentence. ``source`` names the
    tutorial that teaches it, ``remark`` what is wrong or outdated there. ``otherwise`` is the
    sentence for a PC on which the fix gained nothing.
    """

    name: str
    title: str
    sentence: str
    why: str
    remedy: str = ""
    shows: str = ""
    source: str = ""
    remark: str = ""
    otherwise: str = ""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One measured number.

    ``unit`` is ``s``, ``bytes``, ``share``, ``×`` or empty. ``aim`` is the intended effect of the
    fix, ``less`` or ``more``; empty if the number is not compared with the other part's.
    """

    name: str
    title: str
    value: float
    unit: str = ""
    aim: str = ""


class PitfallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of the broken or the fixed code.

    ``error`` is the text of the real error, ``sentence`` describes the outcome. ``stand_in`` names
    the replacement for something that this PC does not have; empty if everything was real.
    ``is_disturbed``: other programs kept the CPU busy meanwhile.
    """

    part: str
    sentence: str
    error: str = ""
    figures: tuple[Figure, ...] = ()
    curves: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    stand_in: str = ""
    output: str = ""
    is_disturbed: bool = False


class PitfallStarted(Event, frozen=True, kw_only=True):
    """A part begins; ``snippet`` is equivalent code."""

    name: str
    part: str
    snippet: str = ""


class PitfallFinished(LastEvent, frozen=True, kw_only=True):
    """The outcomes of the requested parts of a pitfall, and the code of both parts for a card.

    ``snippet`` is the code that ran, where there is no card that of the stand-in.

    ``comparison`` says how the fix changed the numbers, in words, and that the PC slept; empty if
    only one part ran, or if the two parts share no number.
    ``untested`` is a sentence if nobody has run this program on such a card.
    """

    name: str
    device: str
    broken: PitfallOutcome | None = None
    fixed: PitfallOutcome | None = None
    comparison: str = ""
    untested: str = ""
    broken_snippet: str = ""
    fixed_snippet: str = ""
    snippet: str = ""
    elapsed_s: float = 0.0


class PitfallFailed(LastEvent, frozen=True, kw_only=True):
    """A pitfall failed to run, with a different error from the one it demonstrates."""

    name: str
    failure: Failure
