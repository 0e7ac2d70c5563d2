"""The speed that lasts: how long a device works before its first sample, and whether it is steady.

A card boosts its clock until it is warm, or until its power limit takes hold. Old cards hold their
highest clock for some 7 s (GTX 1050 Ti), so the samples of a short run may be up to 50 % too fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

BOOST_HELD_S = 7.0
# Twice as long as an old card holds its boost.
SUSTAINED_LOAD_S = 15.0
# Halves of a run that are further apart than this are still on their way.
_STEADY_WITHIN = 0.02


def sustained_budget_s(budget_s: float) -> float:
    """Return how long a sustained run is timed: as asked for, and at least as long as its load."""
    return max(budget_s, SUSTAINED_LOAD_S)


def unsteadiness(
    samples_s: Sequence[float] | NDArray[np.float64], clocks_mhz: Sequence[float] = ()
) -> str:
    """Return why a run has not reached the speed that lasts; empty if it has.

    Args:
        samples_s: in the order in which they were taken.
        clocks_mhz: the card's SM clock over the same time; empty if the driver does not tell it.
    """
    if len(samples_s) < 2:
        return "one sample cannot tell whether the speed lasts: give it more time"
    change = _change(samples_s)
    if abs(change) > _STEADY_WITHIN:
        slower = "slower" if change > 0 else "faster"
        return f"the second half was {abs(change):.0%} {slower} than the first: give it more time"
    if len(clocks_mhz) > 1 and abs(drift := _change(clocks_mhz)) > _STEADY_WITHIN:
        moved = "rose" if drift > 0 else "fell"
        return f"the card's clock {moved} by {abs(drift):.0%} during the run: give it more time"
    return ""


def _change(numbers: Sequence[float] | NDArray[np.float64]) -> float:
    """Return how far the median of the second half is from that of the first, as a share."""
    import numpy as np  # with the first run, not with the window

    half = len(numbers) // 2
    first, last = float(np.median(numbers[:half])), float(np.median(numbers[-half:]))
    return last / first - 1.0 if first else 0.0
