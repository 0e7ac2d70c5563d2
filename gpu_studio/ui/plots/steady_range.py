"""A range that follows growing data in steps: an axis that moves is drawn anew at every frame."""

from __future__ import annotations

_TOO_LOOSE = 0.5  # the data fill less than this share of the range
_ALL_BUT_EQUAL = 1e-9
_NOTHING = 1e-30


class SteadyRange:
    """Where an axis begins and ends.

    Args:
        below: room under the data, as a share of their span.
        above: room over them, into which they grow.
    """

    def __init__(self, below: float, above: float) -> None:
        self._below, self._above = below, above
        self._range: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Where it begins and ends; 0 to 1 before any data."""
        return self._range or (0.0, 1.0)

    def follow(self, lowest: float, highest: float) -> bool:
        """Take the data in; return whether the range has changed."""
        largest = max(abs(lowest), abs(highest))
        if largest < _NOTHING:
            largest = 1.0
        # All but equal values get a range around them that floating point can tell from them.
        span = highest - lowest if highest - lowest > _ALL_BUT_EQUAL * largest else largest
        if self._range is not None:
            low, high = self._range
            if low <= lowest and highest <= high and span >= _TOO_LOOSE * (high - low):
                return False
        changed = (lowest - self._below * span, highest + self._above * span)
        if changed == self._range:
            return False
        self._range = changed
        return True
