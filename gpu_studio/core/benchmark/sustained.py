"""The sustained speed: the load on a device before its first sample, and whether it is steady.

A card boosts its clock until it is warm or reaches its power limit. Old cards keep their highest
clock for about 7 s (GTX 1050 Ti), so the samples of a short run may be up to 50 % too fast.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.statistics import interval_of_rounds, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

BOOST_HELD_S = 7.0
FIRST_S = 3.0
"""A load's first seconds, in which even an old card still has its boost clock."""
# A run whose halves differ by no more than this has settled.
_STEADY_WITHIN = 0.02


class HeldSpeed(NamedTuple):
    """How fast a device was in a load's first seconds, and in its second half.

    Attributes:
        seconds: how long the load was, by its samples.
        first_s: the median call of the first `FIRST_S` seconds, of half the load if it is shorter.
        steady_s: the median call of the second half.
        ratio_ci95: the 95 % interval of first over steady: 0.9 is a tenth slower.
    """

    seconds: float
    first_s: float
    steady_s: float
    ratio_ci95: tuple[float, float]


def held_speed(
    samples_s: Sequence[float] | NDArray[np.float64], calls_per_sample: int
) -> HeldSpeed | None:
    """Return how the speed of a load held; None for fewer than two samples.

    Args:
        samples_s: seconds per call, in the order of their measurement.
        calls_per_sample: the calls of each sample.
    """
    if len(samples_s) < 2:
        return None
    values = [float(sample) for sample in samples_s]
    ends_s = [calls_per_sample * end for end in itertools.accumulate(values)]
    first = [value for value, end in zip(values, ends_s, strict=True) if is_first(end, ends_s[-1])]
    steady = [
        value for value, end in zip(values, ends_s, strict=True) if is_steady(end, ends_s[-1])
    ]
    first, steady = first or values[:1], steady or values[-1:]
    first_s, steady_s = quantile(sorted(first), 0.5), quantile(sorted(steady), 0.5)
    (first_low, first_high), (low, high) = interval_of_rounds(first), interval_of_rounds(steady)
    # The two parts are of two times, so their intervals do not cancel anything out.
    return HeldSpeed(ends_s[-1], first_s, steady_s, (first_low / high, first_high / low))


def is_first(at_s: float, whole_s: float) -> bool:
    """Return whether a moment of a load belongs to its first seconds."""
    return at_s <= min(FIRST_S, whole_s / 2)


def is_steady(at_s: float, whole_s: float) -> bool:
    """Return whether a moment of a load belongs to its second half."""
    return at_s > whole_s / 2


def unsteadiness(samples_s: Sequence[float], clocks_mhz: Sequence[float] = ()) -> str:
    """Return why a run has not reached its sustained speed; empty if it has, or nobody can tell.

    Args:
        samples_s: in the order of their measurement.
        clocks_mhz: the card's SM clock during that time; empty if the driver does not report it.
    """
    if len(samples_s) < 2:
        return "one sample cannot show whether the speed lasts: give it more time"
    least, most = _change(samples_s)
    if least or most:
        slower = "slower" if least > 0 else "faster"
        by = _between(least, most)
        return f"the second half was {by} {slower} than the first: give it more time"
    least, most = _change(clocks_mhz) if len(clocks_mhz) > 1 else (0.0, 0.0)
    if least or most:
        moved = "rose" if least > 0 else "fell"
        return f"the card's clock {moved} by {_between(least, most)}: give it more time"
    return ""


def _change(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the change from the first half to the second, as a share.

    Both ends are 0 if the interval holds no change, or the change is no larger than a steady one.
    """
    half = len(numbers) // 2
    first, later = numbers[:half], numbers[-half:]
    first_median, later_median = (quantile(sorted(part), 0.5) for part in (first, later))
    (low, high), (later_low, later_high) = map(interval_of_rounds, (first, later))
    if low <= 0 or abs(later_median / first_median - 1) <= _STEADY_WITHIN:
        return 0.0, 0.0
    least, most = later_low / high - 1, later_high / low - 1
    return (least, most) if least > 0 or most < 0 else (0.0, 0.0)


def _between(least: float, most: float) -> str:
    """Return a change with its interval: ``3 to 9 %``."""
    low, high = sorted((round(100 * abs(least)), round(100 * abs(most))))
    return f"{low} to {high}\u202f%" if low < high else f"{low}\u202f%"
