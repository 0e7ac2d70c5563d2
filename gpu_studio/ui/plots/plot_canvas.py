"""pyqtgraph's part of a plot, with the program's axes, legend and markers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QGraphicsGridLayout

from gpu_studio.ui.plots.plot_curve import ink

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyqtgraph as pg
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.theme import Theme

_LEGEND_ROW = 22  # pixels
_LEGEND_SAMPLE = 20 + 2 * 25  # pixels: pyqtgraph's sample of the curve, and its gaps
_TOP_LABEL, _LABEL_STEP = 0.93, 0.14  # of the plot's height
_LABEL_PADDING = 10  # pixels, above and below a label
_BAND_ALPHA = 40


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


class LevelPlace(NamedTuple):
    """The place of a level's name: a share of the width, and above or below the line."""

    across: float
    is_above: bool


_COLUMNS_OF_LEVELS = (0.995, 0.005, 0.5)


def level_places(ys: Sequence[float]) -> list[LevelPlace]:
    """Return a place for the name of each level, so that none covers another.

    Two levels share a column: the higher one has its name above its line, the other below.
    """
    places = [LevelPlace(0.0, True)] * len(ys)
    order = sorted(range(len(ys)), key=lambda at: -ys[at])
    for rank, at in enumerate(order):
        column = min(rank, len(order) - 1 - rank)
        across = _COLUMNS_OF_LEVELS[column % len(_COLUMNS_OF_LEVELS)]
        places[at] = LevelPlace(across, is_above=2 * rank < len(order))
    return places


def level_item(level: Level, theme: Theme) -> Any:
    """Return a level's line with its name; `move_level` gives them their place."""
    import pyqtgraph as pg

    colour = QColor(theme.colour(ink(level.role)))
    style = Qt.PenStyle.DashLine if level.dashed else Qt.PenStyle.SolidLine
    ground = QColor(theme.colour("card"))
    ground.setAlpha(200)
    return pg.InfiniteLine(
        angle=0, pen=pg.mkPen(colour, style=style), label=level.label,
        labelOpts={"color": colour, "movable": False, "fill": ground},
    )  # fmt: skip


def move_level(item: Any, level: Level, place: LevelPlace, *, logarithmic: bool) -> None:
    """Put a level's line at its value, and its name, which may be a new one, at its place."""
    anchor = (place.across, 1.0 if place.is_above else 0.0)
    item.label.anchors = [anchor, anchor]
    item.label.orthoPos = place.across
    item.label.setFormat(level.label)
    item.setPos(math.log10(level.y) if logarithmic else level.y)
    item.label.updatePosition()


def make_canvas(style: AxesStyle, parent: QWidget) -> pg.PlotWidget:
    """Return an empty plot."""
    import pyqtgraph as pg

    from gpu_studio.ui.plots.unit_axis import END_ROOM, UnitAxis

    axes = {
        "bottom": UnitAxis("bottom", style.x_unit, logarithmic=style.logarithmic),
        "left": UnitAxis("left", style.y_unit, logarithmic=style.logarithmic_y),
    }
    plot = pg.PlotWidget(parent, axisItems=axes, background=None, enableMenu=False)
    # Lets the card behind it show: a cached background has the window's color.
    plot.viewport().setAutoFillBackground(False)
    plot.setCacheMode(plot.CacheModeFlag.CacheNone)
    plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    plot.hideButtons()
    plot.showGrid(x=True, y=True, alpha=0.25)
    plot.plotItem.layout.setContentsMargins(1, END_ROOM // 2, END_ROOM, 1)
    plot.setLogMode(x=style.logarithmic, y=style.logarithmic_y)
    if style.x_label:
        plot.setLabel("bottom", style.x_label)
    if style.y_label:
        plot.setLabel("left", style.y_label)
    if style.legend_columns:
        # Time grows with size, so a log-log plot is empty at its upper left.
        corner = (10, 10) if style.logarithmic else (-10, 10)
        legend = plot.addLegend(offset=corner, labelTextSize="9pt", colCount=style.legend_columns)
        if style.legend_columns > 1:
            legend.setParentItem(plot.plotItem)  # the plot itself would clip it
    return plot


def place_legend(plot: pg.PlotWidget, most_columns: int, room: int) -> None:
    """Give a legend above the plot the height of as many rows as its labels need.

    Args:
        plot: the plot with the legend.
        most_columns: the largest number of label columns; 1 is inside the plot.
        room: the available width, in pixels.
    """
    from gpu_studio.ui.plots.unit_axis import END_ROOM

    if most_columns > 1:
        item = plot.plotItem
        columns = _columns_for(item.legend, most_columns, room - 2 * _LEGEND_ROW)
        if columns != item.legend.columnCount:
            _arrange_legend(item.legend, columns)
        rows = -(-len(item.legend.items) // columns)
        item.layout.setContentsMargins(1, max(END_ROOM // 2, rows * _LEGEND_ROW), END_ROOM, 1)
        item.legend.anchor((0, 0), (0, 0), offset=(_LEGEND_ROW, -_LEGEND_ROW // 2))


def _columns_for(legend: pg.LegendItem, most: int, room: float) -> int:
    """Return the number of labels that fit side by side, at least one."""
    widths = [label.itemRect().width() + _LEGEND_SAMPLE for _, label in legend.items]
    for columns in range(most, 1, -1):
        if sum(max(widths[at::columns], default=0) for at in range(columns)) <= room:
            return columns
    return 1


def _arrange_legend(legend: pg.LegendItem, columns: int) -> None:
    """Lay out a legend's labels again: its own layout never drops columns."""
    layout = QGraphicsGridLayout()
    layout.setHorizontalSpacing(legend.layout.horizontalSpacing())
    layout.setVerticalSpacing(legend.layout.verticalSpacing())
    for at in range(legend.layout.count() - 1, -1, -1):
        legend.layout.removeAt(at)
    legend.setLayout(layout)
    legend.layout, legend.columnCount, legend.rowCount = layout, columns, 1
    for at, (sample, label) in enumerate(legend.items):
        row, column = divmod(at, columns)
        layout.addItem(sample, row, 2 * column)
        layout.addItem(label, row, 2 * column + 1)
        legend.rowCount = row + 1
    legend.updateSize()


def recolour(plot: pg.PlotWidget, theme: Theme, legend_columns: int) -> None:
    """Draw axes and legend in the theme's colors."""
    muted = theme.colour("muted")
    for side in ("bottom", "left"):
        axis = plot.getAxis(side)
        axis.setPen(theme.colour("border"))
        axis.setTextPen(muted)
        axis.labelStyle["color"] = muted
        axis.setLabel(axis.labelText, **axis.labelStyle)
    legend = plot.plotItem.legend
    if legend is not None:
        legend.setLabelTextColor(theme.colour("text"))
        if legend_columns == 1:
            ground = QColor(theme.colour("card"))
            ground.setAlpha(200)  # keeps a label readable above a curve
            legend.setBrush(ground)


def label_position(row: int, height: float) -> float:
    """Return the place of a row of labels, as a share of the plot's height in pixels."""
    label = QFontMetrics(QGuiApplication.font()).height() + _LABEL_PADDING
    step = max(_LABEL_STEP, label / max(height, 1.0))
    return max(_TOP_LABEL - row * step, 0.0)


def marker_items(marker: Marker, theme: Theme, *, logarithmic: bool, height: float) -> list[Any]:
    """Return a marker's line, and its band if it has one.

    Args:
        marker: what to draw.
        theme: gives the colors.
        logarithmic: whether the x axis is.
        height: of the plot, in pixels: the rows of the labels are never closer than a label.
    """
    import pyqtgraph as pg

    def place(value: float) -> float:
        return math.log10(value) if logarithmic else value

    colour = QColor(theme.colour(ink(marker.role)))
    style = Qt.PenStyle.DashLine if marker.dashed else Qt.PenStyle.DotLine
    ground = QColor(theme.colour("card"))
    ground.setAlpha(200)  # keeps a label readable above a curve
    line = pg.InfiniteLine(
        place(marker.x), pen=pg.mkPen(colour, style=style),
        label=marker.label or None,  # each text is a document; runs leave hundreds of marks
        labelOpts={
            "position": label_position(marker.row, height), "color": colour, "movable": False,
            "fill": ground,
        },
    )  # fmt: skip
    items: list[Any] = [line]
    if marker.low is not None and marker.high is not None:
        shade = QColor(colour)
        shade.setAlpha(_BAND_ALPHA)
        band = pg.LinearRegionItem(
            (place(marker.low), place(marker.high)), movable=False, brush=shade,
            pen=pg.mkPen(None),
        )  # fmt: skip
        band.setZValue(-10)
        items.insert(0, band)
    return items
