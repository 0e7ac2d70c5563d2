"""The samples of one run: the only place that holds them, and the points of them to draw.

A screen has a few thousand columns of pixels. Among the samples of one column, the lowest and the
highest are all that is visible. A pyramid keeps both for blocks of samples, and for blocks of
blocks, while a series grows. So a frame costs the same for a thousand samples and ten million.
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
        self._pyramid = Pyramid()

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


_BASE = 64  # samples per block of the lowest level
_FACTOR = 8  # blocks of one level per block of the next


class Pyramid:
    """The positions of the lowest and the highest sample of each block, for each level."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    def follow(self, values: NDArray[np.float64]) -> None:
        """Add the samples since the last call, in amortized constant time per sample.

        Args:
            values: the whole series, shape (n,); the old samples have not changed.
        """
        size, below, number = _BASE, None, 0
        while len(values) >= size:
            if number == len(self._levels):
                self._levels.append(_Level(size))
            self._levels[number].follow(values, below)
            below = self._levels[number].blocks
            size, number = size * _FACTOR, number + 1

    def pick(
        self, values: NDArray[np.float64], first: int, last: int, most: int
    ) -> NDArray[np.intp]:
        """Return the positions of the points to draw between two positions, ascending.

        Args:
            values: the series that was followed, shape (n,).
            first: the first position, 0 or more.
            last: the end of the range, exclusive; at most n.
            most: the approximate number of points; the ends may add a few.

        Returns:
            Shape (m,): all positions if there are at most ``most``, otherwise the lowest and the
            highest of each stretch.
        """
        if last - first <= most:
            return np.arange(first, last)
        stretch = -(-(last - first) // (most // 2))
        level = next((each for each in reversed(self._levels) if each.size <= stretch), None)
        if level is None:
            return _of_stretches(values, first, last, stretch)
        begin, end = -(-first // level.size), min(last // level.size, len(level.blocks))
        together = -(-stretch // level.size)
        middle = _of_blocks(values, level.blocks[begin:end], together)
        head = _of_stretches(values, first, begin * level.size, level.size)
        tail = _of_stretches(values, end * level.size, last, level.size)
        return np.concatenate([head, middle, tail])


class _Level:
    """The positions of the lowest and highest sample of each complete block of one size."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._buffer: NDArray[np.intp] = np.empty((64, 2), np.intp)
        self._count = 0

    @property
    def blocks(self) -> NDArray[np.intp]:
        """Shape (blocks, 2)."""
        return self._buffer[: self._count]

    def follow(self, values: NDArray[np.float64], below: NDArray[np.intp] | None) -> None:
        """Add the blocks that are now complete, from the samples or from the level below."""
        whole = len(values) // self.size
        if whole == self._count:
            return
        if below is None:
            first = self._count * self.size
            found = _extremes_of(values[first : whole * self.size].reshape(-1, self.size), first)
        else:
            found = _merged(values, below[self._count * _FACTOR : whole * _FACTOR], _FACTOR)
        if whole > len(self._buffer):
            grown = np.empty((max(whole, 2 * len(self._buffer)), 2), np.intp)
            grown[: self._count] = self.blocks
            self._buffer = grown
        self._buffer[self._count : whole] = found
        self._count = whole


def _extremes_of(blocks: NDArray[np.float64], first: int) -> NDArray[np.intp]:
    """Return the positions of the lowest and the highest value of each row, shape (rows, 2)."""
    begins = first + blocks.shape[1] * np.arange(len(blocks))
    return np.stack([begins + blocks.argmin(1), begins + blocks.argmax(1)], axis=1)


def _merged(
    values: NDArray[np.float64], blocks: NDArray[np.intp], together: int
) -> NDArray[np.intp]:
    """Return the extremes of groups of blocks; the number of blocks is a multiple of the group."""
    rows = np.arange(len(blocks) // together)
    lowest = blocks[:, 0].reshape(-1, together)
    highest = blocks[:, 1].reshape(-1, together)
    return np.stack(
        [
            lowest[rows, values[lowest].argmin(1)],
            highest[rows, values[highest].argmax(1)],
        ],
        axis=1,
    )


def _of_blocks(
    values: NDArray[np.float64], blocks: NDArray[np.intp], together: int
) -> NDArray[np.intp]:
    """Return the extremes of consecutive groups in order; a remainder stays unchanged."""
    whole = len(blocks) // together * together
    merged = _merged(values, blocks[:whole], together)
    return np.sort(np.concatenate([merged, blocks[whole:]]), axis=1).ravel()


def _of_stretches(
    values: NDArray[np.float64], first: int, last: int, stretch: int
) -> NDArray[np.intp]:
    """Return the extremes of each stretch in order, directly from the samples."""
    whole = first + (last - first) // stretch * stretch
    rows = values[first:whole].reshape(-1, stretch)
    found = np.sort(_extremes_of(rows, first), axis=1).ravel() if len(rows) else _NOTHING
    if whole == last:
        return found
    rest = np.sort(_extremes_of(values[whole:last].reshape(1, -1), whole), axis=1).ravel()
    return np.concatenate([found, rest])


_NOTHING: NDArray[np.intp] = np.empty(0, np.intp)
