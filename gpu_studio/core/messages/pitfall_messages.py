"""What window and engine say to each other about the pitfalls lab."""

from __future__ import annotations

import msgspec

from gpu_studio.core.failure import Failure  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.messages.message import Message


class RunPitfall(Message, frozen=True, kw_only=True):
    """Fall into a pitfall on purpose.

    ``part`` is ``broken``, ``fixed`` or ``both``. ``device`` is the one that would be used
    together with the CPU; ``cpu`` where there is no card.
    """

    name: str
    device: str
    part: str = "both"


class PitfallDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One pitfall, told by the file that implements it.

    ``sentence`` is what goes wrong, ``why`` one paragraph, ``remedy`` the fix in a sentence.
    ``source`` names where it is taught; ``remark`` says where that is wrong or old; ``otherwise``
    is the sentence for a PC on which the fix gained nothing.
    """

    name: str
    title: str
    sentence: str
    why: str
    remedy: str
    source: str = ""
    remark: str = ""
    otherwise: str = ""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One number that was measured.

    ``unit`` is ``s``, ``bytes``, ``share``, ``×`` or empty. ``aim`` is what the fix is meant to do
    with it: make it ``less`` or ``more``; empty where it is not to be set against the other part's.
    """

    name: str
    title: str
    value: float
    unit: str = ""
    aim: str = ""


class PitfallOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the broken or of the fixed code.

    ``error`` is the real error's own text, ``sentence`` says in words what was seen. ``stand_in``
    says what took the place of something that this PC does not have; empty where all was real.
    """

    part: str
    sentence: str
    error: str = ""
    figures: tuple[Figure, ...] = ()
    curves: dict[str, tuple[float, ...]] = msgspec.field(default_factory=dict)
    stand_in: str = ""
    output: str = ""


class PitfallStarted(Message, frozen=True, kw_only=True):
    """A part begins; ``snippet`` is the code that does the same."""

    name: str
    part: str
    snippet: str = ""


class PitfallFinished(Message, frozen=True, kw_only=True):
    """What came of a pitfall: the parts that were asked for, and both snippets.

    ``comparison`` says what the fix did to the numbers, in words; empty where one part alone was
    run, or where the two have no number to be compared.
    """

    name: str
    device: str
    broken: PitfallOutcome | None = None
    fixed: PitfallOutcome | None = None
    comparison: str = ""
    broken_snippet: str = ""
    fixed_snippet: str = ""
    snippet: str = ""
    elapsed_s: float = 0.0


class PitfallFailed(Message, frozen=True, kw_only=True):
    """A pitfall could not be run; the error is not the one that it is about."""

    name: str
    failure: Failure
