"""One curve of a plot: its source, its look and its drawn points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor

from gpu_studio.core.units import format_bytes, format_duration, three_digits
from gpu_studio.ui.theme import COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyqtgraph as pg
    from numpy.typing import ArrayLike, NDArray

    from gpu_studio.core.series import Series
    from gpu_studio.ui.theme import Theme

_MOST_POINTS = 4000
_MOST_DOTS = 150  # more of them take long to draw, and cover each other


class Pieces(NamedTuple):
    """A series whose line has gaps: before the sample at each of some positions, ascending."""

    series: Series
    starts: Sequence[int]


CurveSource = Callable[[], "tuple[ArrayLike, ArrayLike] | Series | Pieces"]


class Sight(NamedTuple):
    """The visible part of the x axis, and about how many points are enough for it."""

    first: float = -math.inf
    last: float = math.inf
    most_points: int = _MOST_POINTS


class Points(NamedTuple):
    """The points to draw, shape (n,) each, with a key that shows whether they changed.

    ``joined`` says of each point whether a line leads on to the next one; None: of all.
    """

    xs: NDArray[np.float64]
    ys: NDArray[np.float64]
    state: object
    joined: NDArray[np.bool_] | None = None


@dataclass(eq=False)
class Curve:
    """A curve that a plot draws under one key.

    Args:
        label: its name in the legend, plain text.
        role: its color role; lines use the role's ink.
        source: returns x and y of all current points, shape (n,) each; or a series, with gaps or
            without, of which the visible part is drawn.
        dashed: a second mark besides the color.
        symbol: a pyqtgraph symbol for few points, for example "o" or "s"; such curves are thick.
        dots: a pyqtgraph symbol that marks the points as long as they are few.
        filled: fills to zero; only for a few hundred points.
        smooth: thick and antialiased; only for a few hundred points.
        stepped: holds each value until the next; a NaN in y leaves a gap.
        gaps: a NaN in y leaves a gap.
    """

    label: str
    role: str
    source: CurveSource
    _: KW_ONLY
    dashed: bool = False
    symbol: str | None = None
    dots: str | None = None
    filled: bool = False
    smooth: bool = False
    stepped: bool = False
    gaps: bool = False
    item: pg.PlotDataItem | None = field(default=None, init=False)
    shown: Points | None = field(default=None, init=False)

    @property
    def look(self) -> list[object]:
        """All that is drawn of it but its points."""
        looks = (one.name for one in fields(self) if one.init and one.name != "source")
        return [getattr(self, name) for name in looks]

    def options(self, theme: Theme) -> dict[str, Any]:
        """Return pyqtgraph's drawing options, in the theme's colors."""
        import pyqtgraph as pg  # 130 ms

        colour, is_thick = QColor(theme.colour(ink(self.role))), self.smooth or bool(self.symbol)
        style = Qt.PenStyle.DashLine if self.dashed else Qt.PenStyle.SolidLine
        options: dict[str, Any] = {
            "pen": pg.mkPen(colour, width=2 if is_thick else 1, style=style),
            "antialias": is_thick,
            "skipFiniteCheck": True,
        }
        if self.symbol is not None:
            options |= {
                "symbol": self.symbol, "symbolSize": 8, "symbolBrush": colour, "symbolPen": None,
            }  # fmt: skip
        if self.dots is not None:
            options |= {"symbolSize": 6, "symbolBrush": colour, "symbolPen": None}
        if self.stepped or self.gaps:
            # Finite values only: a NaN in y is a gap without data.
            options |= {"connect": "finite", "skipFiniteCheck": False}
        if self.stepped:
            options["stepMode"] = "right"
        if self.filled:
            shade = QColor(colour)
            shade.setAlpha(60)
            options |= {"fillLevel": 0, "brush": shade}
        return options

    def show_in(self, item: pg.PlotDataItem) -> None:
        """Draw into this item from now on."""
        self.item, self.shown = item, None

    def has_changed(self, sight: Sight) -> bool:
        """Read the source; return whether there is anything new to draw."""
        look = self._points_in(sight)
        if look is not None:
            self.shown = look
        return look is not None

    def draw(self) -> None:
        """Draw the current points."""
        if self.item is None or self.shown is None:
            return
        options: dict[str, Any] = {}
        if self.dots is not None:
            options["symbol"] = self.dots if len(self.shown.xs) <= _MOST_DOTS else None
        if not (self.gaps or self.stepped):  # pyqtgraph keeps that of other points
            options["connect"] = "all" if self.shown.joined is None else self.shown.joined
        self.item.setData(self.shown.xs, self.shown.ys, **options)

    def _points_in(self, sight: Sight) -> Points | None:
        import numpy as np  # 80 ms

        from gpu_studio.core.series import Series, pick

        source = self.source()
        drawn = self.shown.state if self.shown is not None else None
        state: object
        pieces = Pieces(source, ()) if isinstance(source, Series) else source
        if isinstance(pieces, Pieces):
            series, starts = pieces
            times = series.times
            first, last = _positions(sight, times)
            state = (id(series), len(series), len(starts), first, last, sight.most_points)
            if state == drawn:
                return None
            picks = pick(series.values, first, last, sight.most_points)
            piece = np.searchsorted(starts, picks, side="right") if starts else None
            joined = np.append(piece[1:] == piece[:-1], False) if piece is not None else None
            return Points(times[picks], series.values[picks], state, joined)
        xs, ys = (np.asarray(values, np.float64) for values in pieces)
        state = (len(xs), float(xs[-1]), float(ys[-1])) if len(xs) else (0,)
        if self.symbol is not None:  # few points, any of which may have changed
            state = (len(xs), float(xs.sum()), float(ys.sum()))
        if state == drawn:
            return None
        return Points(xs, ys, state) if self.gaps else Points(*_extremes(xs, ys), state)


def ink(role: str) -> str:
    """Return the role for lines and text of a role."""
    return f"{role}_ink" if f"{role}_ink" in COLOURS else role


def _positions(sight: Sight, times: NDArray[np.float64]) -> tuple[int, int]:
    """Return the visible positions, and the neighbors that their lines lead to."""
    first, last = times.searchsorted((sight.first, sight.last))
    return max(int(first) - 1, 0), min(int(last) + 1, len(times))


def _extremes(
    xs: NDArray[np.float64], ys: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a curve reduced to the lowest and highest point of each section."""
    if len(ys) <= _MOST_POINTS:
        return xs, ys
    from gpu_studio.core.series import pick  # numpy: 80 ms

    picks = pick(ys, 0, len(ys), _MOST_POINTS)
    return xs[picks], ys[picks]


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
