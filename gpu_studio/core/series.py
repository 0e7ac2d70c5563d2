"""The samples of one run: the only place that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.pyramid import Pyramid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Series:
    """A growing buffer of float64 values; appending is amortized constant time.

    `values` is a view of the present samples, shape (n,), not a copy. A plot that keeps the view
    always sees n values, and asks again when `len` has grown.
    """

    def __init__(self, capacity: int = 1024) -> None:
        self._buffer: NDArray[np.float64] = np.empty(max(capacity, 1), np.float64)
        self._count = 0
        self._pyramid = Pyramid()

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[np.float64]:
        """The values so far, read-only, shape (n,)."""
        view = self._buffer[: self._count]
        view.flags.writeable = False
        return view

    def pick(self, first: int, last: int, most: int) -> NDArray[np.intp]:
        """Return the positions to draw between two positions; see `Pyramid.pick`.

        Args:
            first: the first visible position; any integer.
            last: the end of the visible range; any integer.
            most: the approximate number of points.
        """
        values = self.values
        self._pyramid.follow(values)
        first = min(max(first, 0), len(values))
        return self._pyramid.pick(values, first, min(max(last, first), len(values)), most)

    def append(self, values: Sequence[float]) -> None:
        """Add values at the end."""
        needed = self._count + len(values)
        if needed > len(self._buffer):
            grown = np.empty(max(needed, 2 * len(self._buffer)), np.float64)
            grown[: self._count] = self._buffer[: self._count]
            self._buffer = grown
        self._buffer[self._count : needed] = values
        self._count = needed
