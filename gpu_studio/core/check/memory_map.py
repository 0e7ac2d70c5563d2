"""A map of the memory that a check tested, in squares, with the bad places.

The places are those of the test's own memory: a program does not see the chips behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from gpu_studio.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_studio.core.messages.check_messages import CheckFinding, MemoryCoverage, WrongWord

MOST_SQUARES = 264
_SMALLEST = 1 << 20
_MOST_LISTED = 4
SquareState = Literal["good", "bad", "waiting", "untested"]
"""Waiting: part of the test, and not read yet. Untested: other programs or the reserve hold it."""


class MemoryMap(NamedTuple):
    """The squares in the order of their addresses; those outside of the test come last."""

    square_bytes: int
    squares: tuple[SquareState, ...]

    @property
    def bad(self) -> tuple[int, ...]:
        """The numbers of the squares with a wrong word."""
        return tuple(number for number, state in enumerate(self.squares) if state == "bad")

    @property
    def caption(self) -> str:
        """What a square is, and what cannot be known."""
        words = ""
        if self.bad:
            listed = (format_bytes(one * self.square_bytes) for one in self.bad[:_MOST_LISTED])
            more = max(len(self.bad) - _MOST_LISTED, 0)
            rest = f" and {format_count(more)} more" if more else ""
            words = (
                f"{len(self.bad)} bad of {len(self.squares)} squares, marked with a cross: "
                f"{', '.join(listed)}{rest}. "
            )
        return (
            f"{words}A square is {format_bytes(self.square_bytes)} of the test's own memory. Gray "
            "was not tested: other programs use it, or it was kept free. Which memory chip a place "
            "is on is not known."
        )


def place_words(place: WrongWord) -> str:
    """Return what was wrong at a place: its address, its bits and what was written."""
    expected, seen = int(place.expected, 16), int(place.seen, 16)
    bits = [bit for bit in range(64) if (expected ^ seen) >> bit & 1]
    written = f", written: {place.pattern}" if place.pattern else ""
    words = f"{len(bits)} bits wrong, {place.seen} instead of {place.expected}"
    if len(bits) == 1:
        now, was = (seen >> bits[0]) & 1, (expected >> bits[0]) & 1
        words = f"bit {bits[0]} read {now} instead of {was}"
    return f"Byte {place.at_byte:#x}: {words}{written}"


def memory_map(
    coverage: MemoryCoverage | None,
    findings: Iterable[CheckFinding] = (),
    *,
    is_running: bool = False,
) -> MemoryMap | None:
    """Return the map of a test; None if no memory was tested.

    Args:
        coverage: how much was tested.
        findings: all of the check.
        is_running: whether more will be tested.
    """
    if coverage is None or not coverage.total_bytes:
        return None
    size = _SMALLEST  # a power of two, so that there are not too many squares
    while size * MOST_SQUARES < max(coverage.total_bytes, coverage.tested_bytes):
        size *= 2
    bits = (one.bits for one in findings if one.bits is not None and one.stage == "memory")
    bad = {place.at_byte // size for one in bits for place in one.places}
    chunk = coverage.chunk_bytes
    for number in coverage.bad_chunks if chunk else ():
        # A chunk with a listed word needs no other mark.
        first, last = number * chunk // size, ((number + 1) * chunk - 1) // size
        if not any(first <= square <= last for square in bad):
            bad |= set(range(first, min(last, MOST_SQUARES) + 1))
    tested = -(-coverage.tested_bytes // size)
    planned = min(coverage.free_bytes - coverage.reserve_bytes, coverage.total_bytes)
    in_test = max(tested, planned // size) if is_running else tested
    count = min(max(in_test, -(-coverage.total_bytes // size)), MOST_SQUARES)

    def state(number: int) -> SquareState:
        if number in bad:
            return "bad"
        if number < tested:
            return "good"
        return "waiting" if number < in_test else "untested"

    return MemoryMap(size, tuple(state(number) for number in range(count)))
