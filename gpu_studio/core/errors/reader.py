"""Reads an error or a log: what kind it is, what it says, which program printed it, what helps.

The text may be a whole terminal: wrapped and quoted, with tracebacks, several errors, and notes
that mean nothing. Its first words may be missing. The table is in `forms`, the words in `kinds`.
Nothing is said that the text does not carry.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from gpu_studio.core.error_table import (
    BY_NUMBERS,
    ErrorKind,
    Family,
    MessageForm,
    Rank,
    error_table,
)
from gpu_studio.core.errors import sizes
from gpu_studio.core.errors.log import told_lines
from gpu_studio.core.errors.recognised import ToldFact, facts_in, last_error_line
from gpu_studio.core.memory.oom_text import OomNumbers, letters_of, numbers_in
from gpu_studio.core.memory.tank import FitAnswer, FitVerdict, Step, tank_of_error
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_form import typed
from gpu_studio.core.texts import listed

UNKNOWN = "not_known"
"""The kind of a text that has no form of the table."""
_MOST_MATCHES = 200
_ERROR = re.compile(r"[a-z](?:Error|Exception):|Traceback\(mostrecentcalllast\)", re.ASCII)
_PYTORCH = "PyTorch"
_PYTORCH_MARKS = re.compile(
    r"torch|(?:CUDA|HIP|XPU)outofmemory\.|MPSbackend|(?:CUDA|HIP)kernelerrors|DataLoaderworker"
    r"|UnexpectederrorfromcudaGetDeviceCount|c10[/\\]|NumCudaDevices|NoXPUdevices",
    re.ASCII | re.IGNORECASE,
)
_IN_CODE = "In code: "


class ErrorReading(NamedTuple):
    """What is known of an error.

    Attributes:
        kind: a key of the table's kinds, or `UNKNOWN`.
        program: the program that printed it; empty if nothing shows it.
        answer: what it means, the card's memory as the text describes it, and what helps.
        numbers: the sizes of the text, in bytes.
        facts: what the text says of card, build, versions and files.
        errors: the number of errors in the text.
        source: where the form of the message is from.
    """

    kind: str
    program: str
    answer: FitAnswer
    numbers: OomNumbers
    facts: tuple[ToldFact, ...]
    errors: int
    source: str

    @property
    def is_known(self) -> bool:
        """Whether the table has its form."""
        return self.kind != UNKNOWN


class _Found(NamedTuple):
    form: MessageForm
    letters: str
    numbers: OomNumbers
    groups: dict[str, str]

    @property
    def kind(self) -> str:
        if self.form.kind != BY_NUMBERS:
            return self.form.kind
        return sizes.kind_by_numbers(self.letters, self.numbers)


def family_of(text: str) -> Family | None:
    """Return the family of a short error's kind; None if it is not known."""
    kind = kind_of(text)
    return None if kind is None else kind.family


def kind_of(text: str) -> ErrorKind | None:
    """Return the kind of a short error, for programs; None if the table does not have it."""
    found = _errors_in(letters_of(text))
    if not found or found[0].form.rank is Rank.HARMLESS:
        return None
    return error_table().kinds[found[0].kind]


def cuda_codes_of(text: str) -> tuple[int, ...]:
    """Return each cudaError_t of which a short error is the message; none if it is not known."""
    found = _errors_in(letters_of(text))
    return found[0].form.codes if found else ()


def read_error(text: str) -> ErrorReading:
    """Return what is known of the first error in any text: it causes those that follow.

    A text of which nothing is known has a reading, too: of what was recognised in it.
    """
    text = told_lines(text)
    letters = letters_of(text)
    errors = _errors_in(letters)
    facts = facts_in(text)
    own = error_table().program_of("".join(text.split()))
    program = _PYTORCH if _PYTORCH_MARKS.search(letters) else ""
    if own is not None:
        program = own.name
    if not errors:
        return _unknown(text, program, facts)
    first = errors[0]
    kind = error_table().kinds[first.kind]
    words = sizes.words_of(first.letters, first.numbers) | _fact_words(facts, first)
    words["line"] = last_error_line(text).rstrip(".")
    own_steps = own.steps_for(first.kind, kind.family) if own is not None else ()
    answer = FitAnswer(
        verdicts=(_verdict(first, kind, words),),
        sentence=_meaning(errors, kind, words),
        steps=_steps(first.form, kind, own_steps, words),
        details=_details(program, facts, first.form.source),
    )
    return ErrorReading(
        first.kind, program, answer, first.numbers, facts, len(errors), first.form.source
    )


def _unknown(text: str, program: str, facts: tuple[ToldFact, ...]) -> ErrorReading:
    line = last_error_line(text)
    sentences = [
        "This form of error is not in the program's table, so nothing is guessed.",
        f"Its last line of an error: {line}." if line else "No line of it names an error.",
    ]
    if facts:
        sentences.append(f"Recognised: {_listed_facts(facts)}.")
    answer = FitAnswer(
        (FitVerdict(Notice("This error is not known here.", Tone.AMBER)),),
        " ".join(sentences),
        (
            Step("More of the text", "the first error of a log is the cause; the last lines often "
                 "only follow from it"),
            Step(typed("gpu-studio doctor"), "tells whether PyTorch can use the cards of this PC"),
        ),
        _details(program, facts, ""),
    )  # fmt: skip
    return ErrorReading(UNKNOWN, program, answer, OomNumbers(), facts, 0, "")


def _verdict(found: _Found, kind: ErrorKind, words: dict[str, str]) -> FitVerdict:
    headline = (found.form.headline or kind.headline).format(**words)
    tone = Tone.GOOD if kind.family is Family.GOOD else Tone.FAILURE
    tank = tank_of_error(found.numbers) if kind.family is Family.MEMORY else None
    told = "As the text describes it, to two decimals of each unit." if tank is not None else ""
    if tank is not None and tank.card_bytes is not None:
        told += " The line marks the end of what there is."
    return FitVerdict(Notice(headline, tone), tank, told)


def _meaning(errors: list[_Found], kind: ErrorKind, words: dict[str, str]) -> str:
    first, numbers = errors[0], errors[0].numbers
    of_sizes = sizes.SENTENCES if kind.family is Family.MEMORY else ()
    sentences = (*of_sizes, *re.split(r"(?<=\.) (?=\S)", kind.meaning), first.form.about)
    meaning = sizes.filled(sentences, words)
    if first.kind == "card_full" and (numbers.tried_bytes or 0) < (numbers.free_bytes or 0):
        meaning.append("The driver keeps the last part of a card for itself.")
    if kind.family is Family.MEMORY and sizes.may_be_shared(first.letters, numbers):
        meaning.append(sizes.SHARED)
    if len(errors) > 1 and kind.family is not Family.GOOD:
        meaning.append(
            f"The text has {len(errors)} errors. This is the first, which caused the others."
        )
    return " ".join(meaning) or "The text says no more than that."


def _steps(
    form: MessageForm, kind: ErrorKind, own: tuple[Step, ...], words: dict[str, str]
) -> tuple[Step, ...]:
    """Return the steps of the program's user, then those for one's own code.

    These are first if no step of a user is likely to help, and no other program is known.
    """
    first = () if form.step is None else (form.step,)
    is_for_users = own or any(step.enough for step in (*first, *kind.steps))
    if kind.family is Family.MEMORY and not is_for_users:
        steps = (*first, *kind.code, *kind.steps)
    else:
        code = [one._replace(what=_IN_CODE + one.what, enough="") for one in kind.code]
        steps = (*first, *own, *kind.steps, *code)
    found: dict[str, Step] = {}
    for step in steps:
        filled = sizes.filled(step[:2], words)
        if len(filled) == 2:
            found.setdefault(filled[0], Step(typed(filled[0]), filled[1], step.enough))
    return tuple(found.values())


def _details(program: str, facts: tuple[ToldFact, ...], source: str) -> str:
    parts = (
        f"Printed by {program}." if program else "",
        f"In the text: {_listed_facts(facts)}." if facts else "",
        f"The form is known from {source}." if source else "",
    )
    return " ".join(filter(None, parts))


def _listed_facts(facts: tuple[ToldFact, ...]) -> str:
    return listed([f"{what} {value}" for what, value in facts])


def _errors_in(letters: str) -> list[_Found]:
    """Return the errors of a text, each with its part. A log that repeats an error has it once.

    If there is an error with a cause, what only says that something failed is left out.
    """
    matches = _matches(letters)
    ranks = {form.rank for form, _ in matches}
    best = next((rank for rank in Rank if rank in ranks), None)
    if best is Rank.HARMLESS and _names_an_error(letters, [match for _, match in matches]):
        return []
    kept = [(form, match) for form, match in matches if form.rank is best]
    ends = [*(match.start() for _, match in kept), len(letters)][1:]
    found: list[_Found] = []
    for (form, match), end in zip(kept, ends, strict=True):
        part = letters[match.start() : end]
        groups = {name: value for name, value in match.groupdict().items() if value}
        one = _Found(form, part, numbers_in(part), groups)
        if not any((old.form.kind, old.numbers) == (form.kind, one.numbers) for old in found):
            found.append(one)
    return found


def _names_an_error(letters: str, harmless: list[re.Match[str]]) -> bool:
    """Return whether a text names an error beside its harmless notes."""
    ends = [0, *(match.end() for match in harmless)]
    begins = [*(match.start() for match in harmless), len(letters)]
    return any(_ERROR.search(letters, end, begin) for end, begin in zip(ends, begins, strict=True))


def _matches(letters: str) -> list[tuple[MessageForm, re.Match[str]]]:
    """Return what matches, from the beginning; nothing begins within an earlier match."""
    lower = letters.lower()
    if len(lower) != len(letters):
        lower = letters
    every: list[tuple[int, bool, int, re.Match[str]]] = []
    for number, form in enumerate(error_table().forms):
        if any(anchor in lower for anchor in form.anchors):
            is_general = form.rank in (Rank.WORDS, Rank.GENERAL, Rank.LAST)
            for match in islice(form.pattern.finditer(letters), _MOST_MATCHES):
                every.append((match.start(), is_general, number, match))
    every.sort(key=lambda one: one[:3])
    kept: list[tuple[MessageForm, re.Match[str]]] = []
    end = 0
    for start, _, number, match in every:
        if start >= end:
            kept.append((error_table().forms[number], match))
            end = match.end()
    return kept


def _fact_words(facts: tuple[ToldFact, ...], found: _Found) -> dict[str, str]:
    """Return what an error's words may name; empty for what the text does not have."""
    groups = found.groups
    said = {fact.what: fact.value for fact in facts}
    names = ("file", "imported", "needed", "xid")
    words = {name: groups.get(name, "") for name in names}
    words["file"] = re.split(r"[/\\]", words["file"])[-1]
    words["card"], words["chip"] = said.get("Card", ""), said.get("Chip", "")
    words["torch"] = said.get("PyTorch", "")
    number = groups.get("sm") or groups.get("other_sm") or ""
    words["capability"] = groups.get("dotted") or (
        f"{number[:-1]}.{number[-1]}" if number else said.get("Capability", "")
    )
    words["builds"] = " ".join(re.findall(r"(?:sm|compute)_\d+[af]?", groups.get("builds", "")))
    words["builds"] = words["builds"] or groups.get("range", "").strip(".")
    version = int(groups.get("found", "0"))
    words["driver_cuda"] = f"{version // 1000}.{version % 1000 // 10}" if version else ""
    words["other_build"] = sizes.other_build(words["capability"])
    return words
