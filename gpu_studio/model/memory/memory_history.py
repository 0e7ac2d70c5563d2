"""The readings of one device's memory since the window opened."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gpu_studio.core.messages.memory_messages import MemoryRead

WINDOW_S = 120.0
_GAP_S = 4.0  # a longer time without readings is a gap in the curve
_MOST_MARKS = 400
_SAME_MARK_S = 1.0  # a loop may free at every step: one mark is enough for this long


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An event; ``is_failure`` has the color of failures, ``is_minor`` is labeled last."""

    at_s: float
    label: str
    is_failure: bool = False
    is_minor: bool = False


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One reading: ``lower`` is allocated or the engine's process, ``upper`` reserved. Bytes."""

    at_s: float
    lower_bytes: int
    upper_bytes: int | None = None


class MemoryHistory:
    """Readings and marks of one device on the window's clock, oldest first."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.marks: list[Mark] = []
        self._times: list[float] = []

    def add(self, read: MemoryRead, at_s: float) -> bool:
        """Keep a reading; return False for one without numbers (no CUDA context)."""
        lower = read.process_bytes if read.allocated_bytes is None else read.allocated_bytes
        if lower is None:
            return False
        at_s = max(at_s, self._times[-1] if self._times else 0.0)
        self.points.append(
            Point(
                at_s=at_s,
                lower_bytes=lower,
                upper_bytes=read.reserved_bytes,
            )
        )
        self._times.append(at_s)
        if at_s - self._times[0] > 2 * WINDOW_S:  # from time to time, not at every reading
            self._forget(at_s - WINDOW_S)
        return True

    def _forget(self, before_s: float) -> None:
        """Keep what the curve shows: an experiment reads 60 times a second."""
        spare = max(bisect_left(self._times, before_s) - 1, 0)
        del self.points[:spare], self._times[:spare]

    def mark(self, mark: Mark) -> None:
        """Keep an event; the same event soon after adds no mark."""
        last = self.marks[-1] if self.marks else None
        again = None if last is None else msgspec.structs.replace(last, at_s=mark.at_s)
        if last is not None and again == mark and mark.at_s - last.at_s < _SAME_MARK_S:
            return
        self.marks.append(mark)
        del self.marks[:-_MOST_MARKS]

    def since(self, start_s: float) -> list[Point]:
        """Return the readings since a time, and the one before, which was still valid then."""
        return self.points[max(bisect_left(self._times, start_s) - 1, 0) :]

    def curve(self, start_s: float, column: str = "lower") -> tuple[list[float], list[float]]:
        """Return x in seconds and y in bytes, with a NaN in each gap.

        Args:
            start_s: the first time, in seconds.
            column: ``lower`` or ``upper``.
        """
        xs: list[float] = []
        ys: list[float] = []
        for point in self.since(start_s):
            value: int | None = getattr(point, f"{column}_bytes")
            if value is None:
                continue
            if xs and point.at_s - xs[-1] > _GAP_S:
                xs.append(xs[-1])
                ys.append(math.nan)
            xs.append(point.at_s)
            ys.append(float(value))
        return xs, ys
