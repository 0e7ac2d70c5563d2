"""The table of errors (`resources/errors.json`): forms of messages, their kinds, and programs.

A newcomer adds a row there. A row's shape is a pattern, written with the spaces of the message. The
reader takes out all spaces first, because a terminal wraps in the middle of a word.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.memory.oom_text import SIZE
from gpu_studio.core.memory.tank import Step  # noqa: TC001
from gpu_studio.core.resources import read_resource

if TYPE_CHECKING:
    from collections.abc import Iterator

BY_NUMBERS = "by numbers"
"""In place of a kind: the sizes of the text decide."""
_REQUEST = rf"Tried to allocate {SIZE}(?:on(?:private|shared)pool|\.?\(?GPU\d{{1,4}}(?:;|hasatot))"
_TOKEN = re.compile(r"\(\?(?::|<?[!=]|P<\w+>)|\\.|\[\^?.[^\]]*\]|[?*+]|\{[\d,]+\}|.", re.DOTALL)
# A smaller model does not help with these: a program's own steps for memory are left out.
_NOT_OF_THE_CARD = frozenset(
    {"ram", "workers", "kernel_blocks", "over_budget", "addresses", "too_large"}
)


class Advice(NamedTuple):
    """What to do next if CUDA does not start: in words, and as a command or an address to copy.

    Both may have names in braces: attributes of `core.devices.unused_cards.UnusedCards`.
    """

    words: str
    command: str = ""


class Family(Enum):
    """What a program of ours does about an error."""

    MEMORY = "memory"
    NO_CODE = "no_code"
    NO_CARD = "no_card"
    DTYPE = "dtype"
    LIBRARY = "library"
    BROKEN = "broken"
    RUNTIME = "runtime"
    OTHER = "other"
    GOOD = "good"


class Rank(Enum):
    """How much a form says."""

    CAUSE = "cause"
    WORDS = "words"  # “out of memory”, and no more
    GENERAL = "general"  # something failed
    LAST = "last"  # other words alone
    HARMLESS = "harmless"


class MessageForm(msgspec.Struct, frozen=True, kw_only=True):
    """A form of message.

    Attributes:
        shape: the message, as a pattern. Named groups fill the words of its kind.
        kind: a key of the kinds, or `BY_NUMBERS`.
        source: where it is from.
        about: what this program's error means beyond its kind.
        step: what to try before the steps of the kind.
        headline: its name; empty for that of the kind.
        codes: each cudaError_t of which it is the message.
    """

    shape: str
    kind: str
    source: str
    rank: Rank = Rank.CAUSE
    about: str = ""
    step: Step | None = None
    headline: str = ""
    codes: tuple[int, ...] = ()

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern for a text without spaces."""
        return _compiled(self.shape)

    @property
    def anchors(self) -> tuple[str, ...]:
        """Texts in lower case of which each match has one."""
        return _anchors(self.shape)


class ErrorKind(msgspec.Struct, frozen=True, kw_only=True):
    """What an error means.

    Attributes:
        headline: its name.
        meaning: sentences, with the names of facts and sizes in braces.
        steps: what to try as a user of a program.
        code: what to try in one's own code.
        library: the library that does not work, in that family.
        places: for an error with which CUDA does not start: what to do, by where that is, see
            `core.devices.unused_cards.UnusedCards.places`; "any" is for all other places.
        gives_card: whether a container may lack the card.
        source: where those are from.
    """

    headline: str
    family: Family
    meaning: str = ""
    steps: tuple[Step, ...] = ()
    code: tuple[Step, ...] = ()
    library: str = ""
    places: dict[str, Advice] = {}
    gives_card: bool = False
    source: str = ""


class PrintingProgram(msgspec.Struct, frozen=True, kw_only=True):
    """A program.

    Attributes:
        name: as its makers write it.
        marks: what only its texts have, as a pattern for a text without spaces.
        source: where its switches were looked up.
        steps: what to try first, by kind, or by family of kinds.
    """

    name: str
    marks: str
    source: str = ""
    steps: dict[str, tuple[Step, ...]] = {}

    def steps_for(self, kind: str, family: Family) -> tuple[Step, ...]:
        """Return this program's own steps for a kind of error."""
        general = () if kind in _NOT_OF_THE_CARD else self.steps.get(family.value, ())
        return self.steps.get(kind, general)

    def printed(self, letters: str) -> bool:
        """Return whether a text without spaces has this program's marks."""
        return _compiled(self.marks).search(letters) is not None


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table; of two forms that begin at the same place, the first counts."""

    about: str
    forms: tuple[MessageForm, ...]
    kinds: dict[str, ErrorKind]
    programs: tuple[PrintingProgram, ...]

    def program_of(self, letters: str) -> PrintingProgram | None:
        """Return the program that printed a text without spaces; None without a mark of one."""
        return next((one for one in self.programs if one.printed(letters)), None)

    def start_kind(self, code: int | None) -> ErrorKind | None:
        """Return what it means that CUDA does not start with an error; None if no row has it."""
        kinds = (self.kinds[form.kind] for form in self.forms if code in form.codes)
        return next((kind for kind in kinds if kind.places), None)


@lru_cache(maxsize=1)
def error_table() -> ErrorTable:
    """Return the table; without its file, an empty one: then no error is known."""
    empty = ErrorTable(about="", forms=(), kinds={}, programs=())
    return read_resource("errors.json", ErrorTable, empty)


@cache
def _compiled(shape: str) -> re.Pattern[str]:
    plain = "".join(shape.split()).replace("{REQUEST}", _REQUEST).replace("{SIZE}", SIZE)
    return re.compile("".join(plain.split()), re.ASCII | re.IGNORECASE)


@cache
def _anchors(shape: str) -> tuple[str, ...]:
    """Return texts in lower case of which each match of a pattern has one."""
    plain = "".join(shape.split()).replace("{REQUEST}", "Triedtoallocate.").replace("{SIZE}", ".")
    return tuple(one.lower() for one in _literals_of(iter(_TOKEN.findall(plain))))


def _literals_of(tokens: Iterator[str]) -> tuple[str, ...]:
    """Return a literal of each alternative of a group, up to its end: the longest one.

    If a group within has a longer one in each of its own alternatives, these take its place.
    """
    found: list[str] = []
    runs: list[tuple[str, ...]] = [("",)]
    for token in tokens:
        if token[0] == "(":
            within = _literals_of(tokens)
            runs += [("",) if token.endswith(("!", "=")) else within, ("",)]
        elif token in "|)":
            found.extend(_longest(runs))
            runs = [("",)]
            if token == ")":
                return tuple(found)
        elif token in "?*+" or (token[0] == "{" and len(token) > 1):
            _leave_out(runs)
        elif token[0] in ".[^$" or (token[0] == "\\" and token[1].isalnum()):
            runs += [("",), ("",)]
        else:
            runs[-1] = (runs[-1][0] + token[-1],)
    return (*found, *_longest(runs))


def _leave_out(runs: list[tuple[str, ...]]) -> None:
    """Take back what a quantifier repeats or leaves out: a letter, a class or a group."""
    if runs[-1] == ("",) and len(runs) > 1:
        runs[-2] = ("",)
    else:
        runs[-1] = (runs[-1][0][:-1],)
    runs.append(("",))


def _longest(runs: list[tuple[str, ...]]) -> tuple[str, ...]:
    return max(runs, key=lambda literals: min(map(len, literals)))
