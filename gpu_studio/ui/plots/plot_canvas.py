"""pyqtgraph's part of a plot, with the program's axes, legend and markers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsGridLayout

from gpu_studio.ui.plots.plot_curve import ink

if TYPE_CHECKING:
    import pyqtgraph as pg
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.theme import Theme

_LEGEND_ROW = 22  # pixels
_LEGEND_SAMPLE = 20 + 2 * 25  # pixels: pyqtgraph's sample of the curve, and its gaps
_TOP_LABEL, _LABEL_STEP = 0.93, 0.14  # of the plot's height
_BAND_ALPHA = 40


class AxesStyle(NamedTuple):
    """The labels and units of the axes; see `LivePlot`."""

    x_label: str
    y_label: str
    x_unit: str
    y_unit: str
    logarithmic: bool
    legend_columns: int


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


def make_canvas(style: AxesStyle, parent: QWidget) -> pg.PlotWidget:
    """Return an empty plot."""
    import pyqtgraph as pg

    from gpu_studio.ui.plots.unit_axis import END_ROOM, UnitAxis

    axes = {
        "bottom": UnitAxis("bottom", style.x_unit, logarithmic=style.logarithmic),
        "left": UnitAxis("left", style.y_unit, logarithmic=style.logarithmic),
    }
    plot = pg.PlotWidget(parent, axisItems=axes, background=None, enableMenu=False)
    # Lets the card behind it show: a cached background has the window's color.
    plot.viewport().setAutoFillBackground(False)
    plot.setCacheMode(plot.CacheModeFlag.CacheNone)
    plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    plot.hideButtons()
    plot.showGrid(x=True, y=True, alpha=0.25)
    plot.plotItem.layout.setContentsMargins(1, END_ROOM // 2, END_ROOM, 1)
    plot.setLogMode(x=style.logarithmic, y=style.logarithmic)
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


def marker_items(marker: Marker, theme: Theme, *, logarithmic: bool) -> list[Any]:
    """Return a marker's line, and its band if it has one."""
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
            "position": _TOP_LABEL - marker.row * _LABEL_STEP, "color": colour, "movable": False,
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
