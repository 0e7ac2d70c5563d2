"""What rounding explains of all numbers of a result together; without PyTorch."""

from __future__ import annotations

import math

# The allowed error of a result's norm, in eps: each rounding is at most half an eps, with a random
# sign. Measured on the CPU: up to 0.6 for the ten statements, in every dtype.
_NORM_EPS = 1.0
# A few numbers do not average out: a single number may be off by the sum of its roundings.
_CHANCE = 8.0


def explained_share(eps: float, numbers: int) -> float:
    """Return the share of a result's norm by which rounding to ``eps`` explains an error.

    Args:
        eps: of the result's type, with the reference's where it counts.
        numbers: how many the result has.
    """
    return eps * (_NORM_EPS + _CHANCE / math.sqrt(numbers))
