"""Which bits of a memory's words are wrong, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.int64]

_WORD_BYTES = 8
_MOST_NAMED = 8  # wrong bits of a word


def wrong_bits(seen: Words, expected: Words, first_byte: int) -> tuple[int, str]:
    """Return how many bits of words from an address on are wrong, and which, in words."""
    difference = seen ^ expected
    wrong = np.flatnonzero(difference)
    if not len(wrong):
        return 0, ""
    first, last = (first_byte + _WORD_BYTES * int(at) for at in wrong[[0, -1]])
    to_one, to_zero = _ones(difference & seen), _ones(difference & expected)
    every = int(np.bitwise_or.reduce(difference))
    bits = [str(bit) for bit in range(64) if every >> bit & 1]
    which = f"{len(bits)} of 64" if len(bits) > _MOST_NAMED else ", ".join(bits)
    return to_one + to_zero, (
        f"from {format_bytes(first)} to {format_bytes(last + _WORD_BYTES - 1)} of the tested part: "
        f"{format_count(to_one)} went from 0 to 1, {format_count(to_zero)} from 1 to 0. "
        f"The first is at byte {first:#x}; bits of a word: {which}"
    )


def _ones(words: Words) -> int:
    return int(np.unpackbits(words.view(np.uint8)).sum())
