"""The sustained speed: the load on a device before its first sample, and whether it is steady.

A card boosts its clock until it is warm or reaches its power limit. Old cards keep their highest
clock for about 7 s (GTX 1050 Ti), so the samples of a short run may be up to 50 % too fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.statistics import quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

BOOST_HELD_S = 7.0
# Twice as long as an old card keeps its boost clock.
SUSTAINED_LOAD_S = 15.0
# A run whose halves differ by more than this has not settled.
_STEADY_WITHIN = 0.02


def sustained_budget_s(budget_s: float) -> float:
    """Return the timed part of a sustained run: as requested, and at least as long as its load."""
    return max(budget_s, SUSTAINED_LOAD_S)


def unsteadiness(
    samples_s: Sequence[float] | NDArray[np.float64], clocks_mhz: Sequence[float] = ()
) -> str:
    """Return why a run has not reached its sustained speed; empty if it has.

    Args:
        samples_s: in the order of their measurement.
        clocks_mhz: the card's SM clock during that time; empty if the driver does not report it.
    """
    if len(samples_s) < 2:
        return "one sample cannot show whether the speed lasts: give it more time"
    change = _change(samples_s)
    if abs(change) > _STEADY_WITHIN:
        slower = "slower" if change > 0 else "faster"
        return f"the second half was {abs(change):.0%} {slower} than the first: give it more time"
    if len(clocks_mhz) > 1 and abs(drift := _change(clocks_mhz)) > _STEADY_WITHIN:
        moved = "rose" if drift > 0 else "fell"
        return f"the card's clock {moved} by {abs(drift):.0%} during the run: give it more time"
    return ""


def _change(numbers: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the change of the median from the first half to the second, as a share."""
    import numpy as np  # 80 ms

    half = len(numbers) // 2
    # np.median would import numpy.ma: in the window, 4 MiB for ever.
    first = quantile(np.sort(numbers[:half]).tolist(), 0.5)
    last = quantile(np.sort(numbers[-half:]).tolist(), 0.5)
    return last / first - 1.0 if first else 0.0
