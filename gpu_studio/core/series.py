"""The samples of one run: the only place that holds them, and the points of them to draw.

A screen has a few thousand columns of pixels. Among the samples of one column, the lowest and the
highest are all that is visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class Series:
    """A growing buffer of float64 values and their times; appending is amortized constant time.

    `values` is a view of the present samples, shape (n,), not a copy. A plot that keeps the view
    always sees n values, and asks again when `len` has grown.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self._buffer: NDArray[np.float64] = np.empty((2, max(capacity, 1)), np.float64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[np.float64]:
        """The values so far, read-only, shape (n,)."""
        return self._view(0)

    @property
    def times(self) -> NDArray[np.float64]:
        """The time of each value, ascending, read-only, shape (n,)."""
        return self._view(1)

    def append(self, values: ArrayLike, times: ArrayLike | None = None) -> None:
        """Add values at the end, with their times; values without times are counted from 1."""
        added = np.asarray(values, np.float64)
        begin, end = self._count, self._count + len(added)
        if end > self._buffer.shape[1]:
            grown = np.empty((2, max(end, 2 * self._buffer.shape[1])), np.float64)
            grown[:, :begin] = self._buffer[:, :begin]
            self._buffer = grown
        self._buffer[0, begin:end] = added
        self._buffer[1, begin:end] = np.arange(begin + 1, end + 1) if times is None else times
        self._count = end

    def _view(self, row: int) -> NDArray[np.float64]:
        view = self._buffer[row, : self._count]
        view.flags.writeable = False
        return view


def pick(values: NDArray[np.float64], first: int, last: int, most: int) -> NDArray[np.intp]:
    """Return the positions of the points to draw between two positions, ascending.

    Args:
        values: shape (n,).
        first: the first position; any integer.
        last: the end of the range, exclusive; any integer.
        most: the approximate number of points.

    Returns:
        Shape (m,): all positions if there are at most ``most``, otherwise the lowest and the
        highest of each stretch.
    """
    first = min(max(first, 0), len(values))
    last = min(max(last, first), len(values))
    if last - first <= most:
        return np.arange(first, last)
    stretch = -(-(last - first) // (most // 2))
    whole = last - (last - first) % stretch
    picks = _extremes_of(values[first:whole].reshape(-1, stretch), first)
    if whole < last:
        rest = _extremes_of(values[whole:last].reshape(1, -1), whole)
        picks = np.concatenate([picks, rest])
    return np.sort(picks, axis=1).ravel()


def _extremes_of(blocks: NDArray[np.float64], first: int) -> NDArray[np.intp]:
    """Return the positions of the lowest and the highest value of each row, shape (rows, 2)."""
    begins = first + blocks.shape[1] * np.arange(len(blocks))
    return np.stack([begins + blocks.argmin(1), begins + blocks.argmax(1)], axis=1)
