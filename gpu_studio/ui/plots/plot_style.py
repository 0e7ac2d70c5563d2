"""The units of a plot's axes, and what it shows beside its curves."""

from __future__ import annotations

from typing import NamedTuple

from gpu_studio.core.units import format_bytes, format_duration, three_digits


def value_text(value: float, unit: str) -> str:
    """Return a value with its unit, as the axes write it."""
    match unit:
        case "s":
            return format_duration(value)
        case "bytes":
            return format_bytes(value)
        case "size" | "count":
            return f"{value:.0f}"
        case "":
            return three_digits(value)
    return f"{three_digits(value)}\u202f{unit}"


class AxesStyle(NamedTuple):
    """The labels and units of the axes.

    Attributes:
        x_label: what is along the x axis.
        y_label: what is along the y axis.
        x_unit: its number format: ``""``, ``"s"``, ``"bytes"``, ``"°C"``, ``"W"``, ``"MHz"``,
            ``"count"`` or ``"size"``.
        y_unit: that of the y axis.
        logarithmic_x: whether x is; in powers of two if its unit is ``"size"``.
        logarithmic_y: whether y is; every value is above zero.
        has_legend: whether the labels of the curves stand in a row above the plot.
    """

    x_label: str = ""
    y_label: str = ""
    x_unit: str = ""
    y_unit: str = ""
    logarithmic_x: bool = False
    logarithmic_y: bool = False
    has_legend: bool = False


class Marker(NamedTuple):
    """A vertical line, with a band from ``low`` to ``high`` if its place is uncertain.

    ``row`` is the row of its label, so that neighbors do not cover each other.
    """

    x: float
    label: str
    role: str
    low: float | None = None
    high: float | None = None
    dashed: bool = False
    row: int = 0


class Span(NamedTuple):
    """A part of the x axis that belongs to a device; its color is that of the role."""

    begin: float
    end: float
    role: str


class Level(NamedTuple):
    """A horizontal line across the plot with its name, for example a median.

    Levels share no place for their names: the highest has it above its line at the right, the
    lowest below its own; further ones at the left and in the middle.
    """

    y: float
    label: str
    role: str
    dashed: bool = True


class CurveName(NamedTuple):
    """A curve's name beside a point of it, above or below.

    Of a curve that ``rises`` it stands at the side where that one is away from it: at the left
    above, at the right below. Else it stands where there is more room.
    """

    x: float
    y: float
    label: str
    role: str
    is_above: bool = True
    rises: bool = False
