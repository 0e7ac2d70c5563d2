"""What the allocator's model takes for a size and for a fraction, and what it refuses."""

from __future__ import annotations

import operator
from typing import SupportsIndex


def whole_bytes(size: SupportsIndex) -> int:
    """Return a size as a whole number of bytes; also one of NumPy's.

    Raises:
        TypeError: it is none: a float, even a whole one, or a text.
    """
    try:
        return operator.index(size)
    except TypeError:
        message = f"a size is a whole number of bytes, an int, not {size!r}"
        raise TypeError(message) from None


def check_fraction(fraction: object) -> None:
    """Refuse what is no share of a card, in PyTorch's words.

    Raises:
        TypeError: it is no number.
        ValueError: it is not from 0 to 1.
    """
    if not isinstance(fraction, (float, int)):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
