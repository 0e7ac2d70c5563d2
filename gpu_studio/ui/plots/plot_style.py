"""What a plot shows beside its curves: the style of its axes, and lines across it."""

from __future__ import annotations

from typing import NamedTuple


class AxesStyle(NamedTuple):
    """The labels and units of the axes; see `LivePlot`."""

    x_label: str
    y_label: str
    x_unit: str
    y_unit: str
    logarithmic: bool
    legend_columns: int
    logarithmic_y: bool = False


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

    @property
    def look(self) -> tuple[str, bool]:
        """What a line keeps when it moves."""
        return self.role, self.dashed


class CurveName(NamedTuple):
    """A curve's name beside a point of it: above or below, at the side that has more room."""

    x: float
    y: float
    label: str
    role: str
    is_above: bool = True
