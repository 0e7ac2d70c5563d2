"""Axes with readable numbers: 10 µs, 256 MiB, 512, never "(x0.001)"."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyqtgraph as pg

from gpu_studio.core.units import format_bytes, format_duration, format_rate, three_digits

if TYPE_CHECKING:
    from PySide6.QtCore import QRectF

END_ROOM = 16  # pixels that a label may extend beyond an axis' end
_FEWEST_PIXELS = {"bottom": 60, "left": 24}  # between two labeled ticks
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_SECONDS_APART = (5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1200.0)
_DECADES = (1.0, 2.0, 5.0)


class UnitAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis whose ticks include the unit.

    Units: ``""``, ``"s"``, ``"ago"`` (counted back from the end), ``"bytes"``, ``"B/s"``, ``"%"``,
    ``"°C"``, ``"W"``, ``"MHz"``, ``"count"`` (whole numbers), or ``"size"`` (powers of two if it
    is logarithmic).
    """

    def __init__(self, orientation: str, unit: str, *, logarithmic: bool = False) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)
        self._unit = unit
        self._is_logarithmic = logarithmic
        self._end = 0.0
        self.setStyle(tickLength=-4)

    def tickValues(
        self, minimum: float, maximum: float, size: float
    ) -> list[tuple[float | None, list[float]]]:
        """Return the ticks in pyqtgraph's format and scale (log10 if logarithmic)."""
        if not (math.isfinite(minimum) and math.isfinite(maximum)) or maximum <= minimum:
            return []
        most = max(2, int(size / _FEWEST_PIXELS[self.orientation]))
        if self._is_logarithmic:
            if self._unit == "size":
                return [(None, _powers(minimum, maximum, math.log10(2), most))]
            return [(None, _decades(minimum, maximum, most))]
        if self._unit == "bytes":
            step = _binary_step((maximum - minimum) / most)
        else:
            step = _round_step((maximum - minimum) / most)
        if self._unit == "count":
            step = max(step, 1.0)
        if self._unit == "ago":
            # Counted from the end, so that the grid stays still while the curve moves.
            self._end = maximum
            step = next((s for s in _SECONDS_APART if s >= (maximum - minimum) / most), step)
            steps = range(int((maximum - minimum) / step) + 1)
            return [(step, [maximum - i * step for i in steps])]
        first = math.ceil(minimum / step)
        return [(step, [i * step for i in range(first, math.floor(maximum / step) + 1)])]

    def boundingRect(self) -> QRectF:
        """Return the axis' rectangle with space for the end labels, which pyqtgraph omits."""
        room_x, room_y = (END_ROOM, 0) if self.orientation == "bottom" else (0, END_ROOM)
        rect: QRectF = super().boundingRect()
        return rect.adjusted(-room_x, -room_y, room_x, room_y)

    def tickStrings(self, values: list[float], _scale: float, spacing: float | None) -> list[str]:
        """Return the ticks' labels, with enough digits to tell neighbors apart."""
        if spacing and self._unit not in ("ago", "bytes", "B/s", "size"):
            return _even(values, spacing, is_time=self._unit == "s")
        return [self._label(10**value if self._is_logarithmic else value) for value in values]

    def _label(self, value: float) -> str:
        if self._unit == "ago":
            seconds = round(self._end - value)
            if not seconds:
                return "now"
            if seconds >= 120 and seconds % 60 == 0:
                return f"−{seconds // 60}\u202fmin"
            return f"−{seconds}\u202fs"
        if abs(value) < 1e-15:
            return "0"
        if self._unit == "s":
            return _plain(format_duration(value))
        if self._unit == "bytes":
            return format_bytes(value)
        if self._unit == "B/s":
            return _plain(format_rate(value, "B/s"))
        if self._unit == "size" or abs(value) >= 1000:
            return f"{value:.0f}"
        return _plain(three_digits(value))


def _even(values: list[float], spacing: float, *, is_time: bool) -> list[str]:
    """Return a linear axis' values in one unit, with as many decimals as their spacing."""
    unit, factor = "", 1.0
    if is_time:
        largest = format_duration(max(map(abs, values), default=0.0))
        unit = "\u202f" + largest.partition("\u202f")[2]
        factor = _SECONDS[unit[1:]]
    decimals = max(0, -math.floor(math.log10(spacing / factor) + 1e-9))
    labels = (f"{value / factor:.{decimals}f}" for value in values)
    return [f"{label}{unit}" if float(label) else "0" for label in labels]


def _plain(text: str) -> str:
    """Drop needless zeros on an axis: ``10.0 µs`` becomes ``10 µs``."""
    number, gap, unit = text.partition("\u202f")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{gap}{unit}"


def _round_step(step: float) -> float:
    decade = 10.0 ** math.floor(math.log10(step))
    return next((m * decade for m in (*_DECADES, 10.0) if m * decade >= step), 10 * decade)


def _binary_step(step: float) -> float:
    return float(2 ** math.ceil(math.log2(max(step, 1.0))))


def _powers(minimum: float, maximum: float, step: float, most: int) -> list[float]:
    first, last = math.ceil(minimum / step - 1e-9), math.floor(maximum / step + 1e-9)
    every = max(1, -(-(last - first + 1) // most))
    return [i * step for i in range(first, last + 1) if i % every == 0]


def _decades(minimum: float, maximum: float, most: int) -> list[float]:
    """Return log10 positions of 1, 2, 5 per decade, or of whole decades if there are many."""
    ticks = [
        decade + math.log10(mantissa)
        for decade in range(math.floor(minimum), math.ceil(maximum) + 1)
        for mantissa in _DECADES
    ]
    ticks = [tick for tick in ticks if minimum <= tick <= maximum]
    if len(ticks) <= most:
        return ticks
    return _powers(minimum, maximum, 1.0, most)
