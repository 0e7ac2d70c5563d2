"""The lines in which two versions of a script differ."""

from __future__ import annotations

import textwrap
from difflib import SequenceMatcher
from typing import NamedTuple


class ChangedLine(NamedTuple):
    """One line that only one of the two versions has.

    Attributes:
        is_added: whether it is in the version after the change.
        text: the line, indented as far as its place in the change needs.
    """

    is_added: bool
    text: str


def changed_lines(before: str, after: str) -> tuple[tuple[ChangedLine, ...], ...]:
    """Return the places in which two scripts differ, in order, each with its lines.

    In each place, the removed lines come first. Blank lines are left out, and so are places that
    differ only in blank lines.
    """
    old, new = before.splitlines(), after.splitlines()
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    places = (
        _place(old[old_from:old_to], new[new_from:new_to])
        for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes()
        if tag != "equal"
    )
    return tuple(place for place in places if place)


def _place(removed: list[str], added: list[str]) -> tuple[ChangedLine, ...]:
    marked = [*((False, line) for line in removed), *((True, line) for line in added)]
    written = [(is_added, line.rstrip()) for is_added, line in marked if line.strip()]
    if not written:
        return ()
    texts = textwrap.dedent("\n".join(line for _, line in written)).splitlines()
    return tuple(
        ChangedLine(is_added, text) for (is_added, _), text in zip(written, texts, strict=True)
    )
