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


class MapSquare(NamedTuple):
    """A part of the memory from ``first_byte`` on; ``places`` are the known wrong words in it."""

    state: SquareState
    first_byte: int
    places: tuple[WrongWord, ...] = ()


class MemoryMap(NamedTuple):
    """The squares in the order of their addresses; those outside of the test come last."""

    square_bytes: int
    squares: tuple[MapSquare, ...]

    @property
    def bad(self) -> tuple[MapSquare, ...]:
        """The squares with a wrong word."""
        return tuple(square for square in self.squares if square.state == "bad")

    @property
    def caption(self) -> str:
        """What a square is, and what cannot be known."""
        size = format_bytes(self.square_bytes)
        bad = [format_bytes(square.first_byte) for square in self.bad]
        words = ""
        if bad:
            more = f" and {format_count(len(bad) - _MOST_LISTED)} more" * (len(bad) > _MOST_LISTED)
            words = f"Bad, marked with a cross: {', '.join(bad[:_MOST_LISTED])}{more}. "
        return (
            f"{words}A square is {size} of the test's own memory. Gray was not tested: other "
            "programs use it, or it was kept free. Which memory chip a place is on is not known."
        )

    def tip(self, square: MapSquare) -> str:
        """Return what is known of a square, in a line or more."""
        end = square.first_byte + self.square_bytes
        where = f"{format_bytes(square.first_byte)} to {format_bytes(end)}"
        match square.state:
            case "good":
                return f"{where} of the test's memory: no error"
            case "waiting":
                return f"{where} of the test's memory: not read yet"
            case "untested":
                return "Not tested: other programs use it, or it was kept free"
            case _:
                lines = [place_words(place) for place in square.places[:_MOST_LISTED]]
                return "\n".join([f"{where} of the test's memory: wrong", *lines])


def place_words(place: WrongWord) -> str:
    """Return what was wrong at a place: its address, its bits and what was written."""
    expected, seen = int(place.expected, 16), int(place.seen, 16)
    bits = [bit for bit in range(64) if (expected ^ seen) >> bit & 1]
    address = f"{place.at_byte:#x}"
    written = f", written: {place.pattern}" if place.pattern else ""
    if len(bits) == 1:
        now, was = (seen >> bits[0]) & 1, (expected >> bits[0]) & 1
        return f"Byte {address}: bit {bits[0]} read {now} instead of {was}{written}"
    both = f"{place.seen} instead of {place.expected}"
    return f"Byte {address}: {len(bits)} bits wrong, {both}{written}"


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
    size = _square_bytes(coverage)
    places = [
        place
        for finding in findings
        if finding.bits is not None and finding.stage == "memory"
        for place in finding.bits.places
    ]
    bad = {place.at_byte // size for place in places}
    chunk = coverage.chunk_bytes
    for number in coverage.bad_chunks:
        # A chunk with a listed word needs no other mark.
        first, last = number * chunk // size, ((number + 1) * chunk - 1) // size
        if chunk and not any(first <= square <= last for square in bad):
            bad |= set(range(first, min(last, MOST_SQUARES) + 1))
    tested = -(-coverage.tested_bytes // size)
    planned = min(coverage.free_bytes - coverage.reserve_bytes, coverage.total_bytes)
    in_test = max(tested, planned // size) if is_running else tested
    count = min(max(in_test, -(-coverage.total_bytes // size)), MOST_SQUARES)
    squares = tuple(
        MapSquare(
            _state(number, bad, tested, in_test),
            number * size,
            tuple(place for place in places if place.at_byte // size == number),
        )
        for number in range(count)
    )
    return MemoryMap(size, squares)


def _state(number: int, bad: set[int], tested: int, in_test: int) -> SquareState:
    if number in bad:
        return "bad"
    if number < tested:
        return "good"
    return "waiting" if number < in_test else "untested"


def _square_bytes(coverage: MemoryCoverage) -> int:
    """Return a power of two, so that there are not too many squares."""
    size = _SMALLEST
    whole = max(coverage.total_bytes, coverage.tested_bytes)
    while size * MOST_SQUARES < whole:
        size *= 2
    return size
