"""Reads the sizes that a user types, with a sentence for every mistake, and names sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.tensors import LARGEST_SIZE
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SIZES = 64
_MOST_LISTED = 3


def parse_sizes(text: str) -> list[int]:
    """Return the sizes in ``512, 1024 2048`` in the order given, each once.

    ``64..4096`` is 64 and its doubles up to 4096: 64, 128, 256, and so on.

    Raises:
        StudioError: the sentence names the entry and the range.
    """
    sizes: list[int] = []
    for entry in text.replace("…", "..").replace(",", " ").replace(";", " ").split():
        sizes += (size for size in _sizes(entry) if size not in sizes)
    if not sizes:
        raise StudioError(
            FailureKind.BAD_REQUEST, "Enter at least one size, for example 512 or 512, 1024."
        )
    if len(sizes) > MOST_SIZES:
        raise StudioError(FailureKind.BAD_REQUEST, f"Enter at most {MOST_SIZES} sizes.")
    return sizes


def _sizes(entry: str) -> list[int]:
    first, dots, last = entry.partition("..")
    if not dots:
        return [_size(entry)]
    sizes, end = [_size(first or entry)], _size(last or entry)
    if end < sizes[0]:
        raise StudioError(
            FailureKind.BAD_REQUEST, f"The range {entry} is empty: enter the smaller size first."
        )
    while 2 * sizes[-1] <= end:
        sizes.append(2 * sizes[-1])
    return sizes


def _size(entry: str) -> int:
    shown = entry if len(entry) <= 20 else entry[:17] + "…"
    if not (entry.isascii() and entry.isdecimal()):
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"“{shown}” is not a size: use whole numbers from 1 to {LARGEST_SIZE}.",
        )
    # int() raises a different error for thousands of digits.
    if len(entry) > 9 or not 1 <= int(entry) <= LARGEST_SIZE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The size {shown} is out of range: use whole numbers from 1 to {LARGEST_SIZE}.",
        )
    return int(entry)


def powers_of_two(low: int, high: int) -> list[int]:
    """Return both ends and the powers of two between them, ascending."""
    between = (1 << exponent for exponent in range(low.bit_length(), high.bit_length()))
    return sorted({low, high, *(size for size in between if low < size < high)})


def parse_sweep(text: str) -> list[int]:
    """Return the sizes of a sweep's grid, ascending.

    ``LOW:HIGH`` is both ends and the powers of two between them; a list of two or more sizes, as
    for `parse_sizes`, is used unchanged.

    Raises:
        StudioError: the sentence names the mistake.
    """
    first, colon, last = text.strip().partition(":")
    if not colon:
        return _grid(text)
    low, high = _size(first.strip()), _size(last.strip())
    if low > high:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The range {low}:{high} is empty: enter the smaller size first.",
        )
    return powers_of_two(low, high)


def _grid(text: str) -> list[int]:
    sizes = parse_sizes(text)
    if len(sizes) < 2:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{sizes[0]} is a single size, not a range. Enter the smallest and largest, such as "
            "64:4096.",
        )
    return sorted(sizes)


def sizes_text(sizes: Sequence[str], most: int = _MOST_LISTED) -> str:
    """Return sizes for a sentence; many of them by number, first and last.

    Args:
        sizes: ascending, each as its workload writes it.
        most: how many are named.
    """
    if len(sizes) > most:
        return f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]}"
    return listed(sizes)
