"""The one form of an answer about memory: for a network, an error and a recorded history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.notice import Notice

if TYPE_CHECKING:
    from gpu_studio.core.memory.tank import Tank

ENOUGH = {True: "✔ yes", False: "✖ no", None: "? nearly"}
LIKELY = "likely"


class FitVerdict(NamedTuple):
    """Whether something fits, with its bar, and what that does not say; None: it is not known."""

    notice: Notice = Notice()
    tank: Tank | None = None
    told: str = ""


class Step(NamedTuple):
    """What helps, how, and whether it is enough; empty if that is not known."""

    what: str
    how: str
    enough: str = ""


class FitAnswer(NamedTuple):
    """An answer.

    Attributes:
        verdicts: one, or two: to use and to train a network.
        sentence: what decides it.
        steps: what helps, first what helps most people.
        details: the arithmetic, and what is not known.
    """

    verdicts: tuple[FitVerdict, ...]
    sentence: str = ""
    steps: tuple[Step, ...] = ()
    details: str = ""
