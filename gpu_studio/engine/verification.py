"""Whether a device's result is right: with PyTorch or without, by the same rules. No torch here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The allowed error of a result's norm, in eps: each rounding is at most half an eps, with a random
# sign. Measured on the CPU: up to 0.6 for the ten statements, in every dtype.
_NORM_EPS = 1.0
# A few numbers do not average out: a single number may be off by the sum of its roundings.
_CHANCE = 8.0


class Verification(msgspec.Struct, frozen=True):
    """Whether a device's result matches the CPU reference, how closely, and the compared parts.

    ``verified`` is None if the work itself was not checked.
    """

    verified: bool | None
    finding: str
    compared: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The whole sentence: ``exact for whole numbers: all of 512 × 512``."""
        return f"{self.finding}: {' and '.join(self.compared)}"


def within_rounding(off: float, allowed: float, compared: tuple[str, ...]) -> Verification:
    """Return whether a result is as near to float64 as its rounding allows; NaN is not.

    Args:
        off: the largest difference of a number.
        allowed: what rounding explains, in the same unit.
        compared: the compared parts, in words.
    """
    if off <= allowed:
        if not allowed:
            return Verification(True, "exact in every bit", compared)
        return Verification(True, f"within rounding ({allowed:.1e}) of float64", compared)
    return Verification(False, f"off by up to {off:.1e}; rounding explains {allowed:.1e}", compared)


def numbers_compared(
    found: NDArray[np.float64],
    expected: NDArray[np.float64],
    eps: float,
    allowed: float,
    compared: tuple[str, ...],
) -> Verification:
    """Return whether numbers are as near to float64 as rounding allows, each and all together.

    Args:
        found: the device's.
        expected: the reference's.
        eps: of the result's type, with the reference's where it counts.
        allowed: the largest difference of a number that rounding explains.
        compared: the compared parts, in words.
    """
    off = np.abs(found - expected)
    each = within_rounding(float(off.max()), allowed, compared)
    if not each.verified:
        return each
    share = float(np.linalg.norm(off) / np.linalg.norm(expected))
    # The share of the norm that rounding explains.
    explained = eps * (_NORM_EPS + _CHANCE / math.sqrt(expected.size))
    if share > explained:
        finding = f"all numbers together are off by {share:.1e}; rounding explains {explained:.1e}"
        return Verification(False, finding, compared)
    return each


def whole_numbers_compared(
    found: NDArray[np.float64], expected: NDArray[np.float64], what: str, compared: str
) -> Verification:
    """Return whether whole numbers are exact, which they are in any order of additions.

    Args:
        found: the device's.
        expected: the reference's.
        what: their name: ``sums``.
        compared: the compared parts, in words.
    """
    wrong = int(np.count_nonzero(found != expected))
    finding = "exact for whole numbers"
    if wrong:
        finding = f"{wrong} of {expected.size} {what} of whole numbers are wrong"
    return Verification(not wrong, finding, (compared,))
