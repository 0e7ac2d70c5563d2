"""A pitfall's figures in words, and the lines that its fix changes."""

from __future__ import annotations

import textwrap
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.units import (
    format_bytes,
    format_duration,
    format_percent,
    format_ratio,
    three_digits,
)

if TYPE_CHECKING:
    from gpu_studio.core.messages.pitfall_messages import Figure, PitfallOutcome

# Two measurements of the same work can differ by this much between runs.
_EVEN = 0.05
# The units of the figures that a busy CPU changes.
_TIMED = frozenset({"s", "share", "×"})
_BUSY = "other programs kept the CPU busy"


def format_figure(figure: Figure) -> str:
    """Return a figure's value with its unit."""
    match figure.unit:
        case "s":
            return format_duration(figure.value)
        case "bytes":
            return format_bytes(figure.value)
        case "share":
            return format_percent(figure.value)
        case "×":
            return format_ratio(figure.value)
        case _:
            whole = figure.value == int(figure.value)
            return str(int(figure.value)) if whole else three_digits(figure.value)


def is_even(one: float, other: float) -> bool:
    """Return whether two measurements are too close to call."""
    return abs(one - other) <= _EVEN * max(abs(one), abs(other))


def speed_words(time_s: float, other_s: float) -> str:
    """Return how fast the first of two ways is: ``2.0 × slower``, or ``about as fast``."""
    if is_even(time_s, other_s):
        return "about as fast"
    is_slower = time_s > other_s
    times = format_ratio(time_s / other_s if is_slower else other_s / time_s)
    return f"{times} {'slower' if is_slower else 'faster'}"


def compare_parts(
    otherwise: str, broken: PitfallOutcome | None, fixed: PitfallOutcome | None
) -> str:
    """Return how the fix changed the figures, for better or worse.

    Empty if a part did not run, or if the two parts share no figure.

    Args:
        otherwise: what to say where the fix gains nothing.
        broken: the outcome of the mistake.
        fixed: the outcome after the fix.
    """
    pairs = compared_figures(broken, fixed)
    if not pairs:
        return ""
    changes = "; ".join(
        f"{_inside(now.title)} {format_figure(now)} instead of {format_figure(before)}"
        for before, now in pairs
    )
    reached = [is_reached(before, now) for before, now in pairs]
    is_doubtful = is_disturbed(broken, fixed)
    if all(reached):
        return f"With the fix: {changes}.{f' Doubtful: {_BUSY}.' if is_doubtful else ''}"
    if is_doubtful:
        return (
            f"Whether the fix helps here cannot be told: {_BUSY}. Close them, and run both parts "
            f"again. With the fix: {changes}."
        )
    how = "helped only partly" if any(reached) else "did not help"
    return f"The fix {how} here: {changes}. {otherwise}".rstrip()


def is_disturbed(broken: PitfallOutcome | None, fixed: PitfallOutcome | None) -> bool:
    """Return whether other programs may have changed a compared figure."""
    pairs = compared_figures(broken, fixed)
    was_busy = any(one is not None and one.is_disturbed for one in (broken, fixed))
    return was_busy and any(now.unit in _TIMED for _, now in pairs)


def has_paid(broken: PitfallOutcome | None, fixed: PitfallOutcome | None) -> bool:
    """Return whether every shared figure improved; true if there is none."""
    return all(is_reached(before, now) for before, now in compared_figures(broken, fixed))


def compared_figures(
    broken: PitfallOutcome | None, fixed: PitfallOutcome | None
) -> list[tuple[Figure, Figure]]:
    """Return the figures that both parts have and that the fix should change."""
    if broken is None or fixed is None:
        return []
    after = {figure.name: figure for figure in fixed.figures if figure.aim}
    return [
        (figure, after[figure.name])
        for figure in broken.figures
        if figure.aim and figure.name in after
    ]


def _inside(title: str) -> str:
    """Return a title in the form for the middle of a sentence."""
    return title[:1].lower() + title[1:]


def is_reached(before: Figure, now: Figure) -> bool:
    """Return whether the fix changed a figure as it should."""
    if is_even(before.value, now.value):
        return False
    return (now.value < before.value) is (now.aim == "less")


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
