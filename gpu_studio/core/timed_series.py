"""Values over time that are complete, and the points of them to draw in any part of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.pyramid import Pyramid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class TimedSeries:
    """A curve of any length, each value of which holds until the next.

    Args:
        times: in any unit, ascending; shape (n,).
        values: shape (n,).
        guide: the series whose extremes are drawn: layers of one stack share those of their sum.
    """

    def __init__(
        self, times: ArrayLike, values: ArrayLike, guide: TimedSeries | None = None
    ) -> None:
        self.times: NDArray[np.float64] = np.asarray(times, np.float64)
        self.values: NDArray[np.float64] = np.asarray(values, np.float64)
        self._guide = guide
        self._pyramid = Pyramid()

    def __len__(self) -> int:
        return len(self.times)

    def itself(self) -> TimedSeries:
        """Return this series, as the source of a curve."""
        return self

    def pick(self, first: float, last: float, most: int) -> NDArray[np.intp]:
        """Return the positions to draw between two times, with the neighbors outside.

        Args:
            first: the start of the visible time.
            last: its end.
            most: the approximate number of points.
        """
        if self._guide is not None:
            return self._guide.pick(first, last, most)
        self._pyramid.follow(self.values)
        begin = max(int(np.searchsorted(self.times, first)) - 1, 0)
        end = min(int(np.searchsorted(self.times, last, "right")) + 1, len(self.times))
        return self._pyramid.pick(self.values, begin, max(begin, end), most)
