"""pyqtgraph's part of a plot, with the program's axes, legend and lines.

It is imported after the first paint: pyqtgraph takes 130 ms, and numpy before it 80 ms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QGraphicsGridLayout

from gpu_studio.core.units import (
    format_bytes,
    format_duration,
    format_gib,
    format_rate,
    three_digits,
)
from gpu_studio.ui.plots.plot_curve import ink

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPainter, QWheelEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.plots.plot_style import AxesStyle, CurveName, Level, Marker, Span
    from gpu_studio.ui.theme import Theme


END_ROOM = 16  # pixels that a label may extend beyond an axis' end
_FEWEST_PIXELS = {"bottom": 60, "left": 24}  # between two labeled ticks
_MOST_LABELS = {"bottom": 30, "left": 9}  # more in a high plot are a ruler, not a picture
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_SECONDS_APART = (5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1200.0)
_GIB_DECIMALS = 4  # at most; the zeros at the end go
_DECADES = (1.0, 2.0, 5.0)


class UnitAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis whose ticks include the unit.

    Units: ``""``, ``"s"``, ``"ago"`` (counted back from the end), ``"bytes"``, ``"GiB"`` (of
    bytes), ``"B/s"``, ``"%"``, ``"°C"``, ``"W"``, ``"MHz"``, ``"count"`` (whole numbers), or
    ``"size"`` (powers of two if it is logarithmic).
    """

    def __init__(self, orientation: str, unit: str, *, logarithmic: bool = False) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)
        self._unit = unit
        self._is_logarithmic = logarithmic
        self._end = 0.0
        self.setStyle(tickLength=-4)

    def set_unit(self, unit: str) -> None:
        """Change the unit."""
        self._unit, self.picture = unit, None  # its labels are painted anew
        self.update()

    def tickValues(
        self, minimum: float, maximum: float, size: float
    ) -> list[tuple[float | None, list[float]]]:
        """Return the ticks in pyqtgraph's format and scale (log10 if logarithmic)."""
        if not (math.isfinite(minimum) and math.isfinite(maximum)) or maximum <= minimum:
            return []
        most = int(size / _FEWEST_PIXELS[self.orientation])
        most = max(2, min(most, _MOST_LABELS[self.orientation]))
        if self._is_logarithmic:
            if self._unit == "size":
                return [(None, _powers(minimum, maximum, math.log10(2), most))]
            return [(None, _decades(minimum, maximum, most))]
        if self._unit in ("bytes", "GiB"):
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
        if spacing and self._unit not in ("ago", "bytes", "GiB", "B/s", "size"):
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
        if self._unit == "GiB":
            return _plain(format_gib(value, _GIB_DECIMALS))
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


_LEGEND_ROW = 22  # pixels
_LEGEND_SAMPLE = 20 + 2 * 25  # pixels: pyqtgraph's sample of the curve, and its gaps
_TOP_LABEL, _LABEL_STEP = 0.93, 0.14  # of the plot's height
_LABEL_PADDING = 10  # pixels, above and below a label
_BAND_ALPHA = 40
_LINE_LAYER = 10
_SPAN_HEIGHT = 7.0  # pixels


class _SpanBar(pg.GraphicsObject):  # type: ignore[misc]  # pyqtgraph has no types
    """A bar on the x axis, as wide as the plot: whose each part of it is."""

    def __init__(self, box: pg.ViewBox) -> None:
        super().__init__(box)
        self._box = box
        self._spans: list[tuple[float, float, QColor]] = []
        self.setZValue(_LINE_LAYER)
        box.sigXRangeChanged.connect(self._on_moved)
        box.sigResized.connect(self._on_moved)

    def show_spans(self, spans: Sequence[Span], theme: Theme) -> None:
        """Show these parts; they replace the ones before."""
        self._spans = [(one.begin, one.end, QColor(theme.colour(one.role))) for one in spans]
        self.update()

    def _on_moved(self) -> None:
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the bar's rectangle in pixels of the plot."""
        height = self._box.height()
        return QRectF(0.0, height - _SPAN_HEIGHT, self._box.width(), _SPAN_HEIGHT)

    def paint(self, painter: QPainter, *_: object) -> None:
        """Paint what is visible of each part."""
        bar = self.boundingRect()
        low, high = self._box.viewRange()[0]
        scale = bar.width() / (high - low)
        for begin, end, color in self._spans:
            left, right = (min(max((x - low) * scale, 0.0), bar.width()) for x in (begin, end))
            painter.fillRect(QRectF(left, bar.top(), right - left, bar.height()), color)


class PlotCanvas(pg.PlotWidget):  # type: ignore[misc]  # pyqtgraph has no types
    """An empty plot.

    Signals:
        clicked(float): the x of a click with the left button.

    Attributes:
        marker_items: the vertical lines and their bands.
        level_items: the horizontal lines.
        name_items: the names of curves.
    """

    clicked = Signal(float)

    def __init__(self, style: AxesStyle, parent: QWidget) -> None:
        axes = {
            "bottom": UnitAxis("bottom", style.x_unit, logarithmic=style.logarithmic),
            "left": UnitAxis("left", style.y_unit, logarithmic=style.logarithmic_y),
        }
        super().__init__(parent, axisItems=axes, background=None, enableMenu=False)
        self._style = style
        self._markers: Sequence[Marker] = ()
        self.marker_items: list[Any] = []
        self.level_items: list[Any] = []
        self.name_items: list[Any] = []
        self._spans: _SpanBar | None = None
        # Lets the card behind it show: a cached background has the window's color.
        self.viewport().setAutoFillBackground(False)
        self.setCacheMode(self.CacheModeFlag.CacheNone)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hideButtons()
        self.showGrid(x=True, y=True, alpha=0.25)
        self.plotItem.layout.setContentsMargins(1, END_ROOM // 2, END_ROOM, 1)
        self.plotItem.vb.sigResized.connect(self._place_labels)
        self.scene().sigMouseClicked.connect(self._click)
        self.setLogMode(x=style.logarithmic, y=style.logarithmic_y)
        if style.x_label:
            self.setLabel("bottom", style.x_label)
        if style.y_label:
            self.setLabel("left", style.y_label)
        if style.legend_columns:
            # Time grows with size, so a log-log plot is empty at its upper left.
            corner = (10, 10) if style.logarithmic else (-10, 10)
            legend = self.addLegend(
                offset=corner, labelTextSize="9pt", colCount=style.legend_columns
            )
            if style.legend_columns > 1:
                legend.setParentItem(self.plotItem)  # the plot itself would clip it

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page, except with Ctrl in a plot that zooms."""
        zooms = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if zooms and any(self.plotItem.vb.mouseEnabled()):
            super().wheelEvent(event)
        else:
            event.ignore()

    def _click(self, event: Any) -> None:
        box = self.plotItem.vb
        if event.button() is Qt.MouseButton.LeftButton and not event.double():
            place = event.scenePos()
            if box.sceneBoundingRect().contains(place):
                self.clicked.emit(float(box.mapSceneToView(place).x()))

    def set_x_unit(self, unit: str) -> None:
        """Set the number format of the x axis."""
        self.getAxis("bottom").set_unit(unit)

    def recolour(self, theme: Theme) -> None:
        """Draw axes and legend in the theme's colors."""
        muted = theme.colour("muted")
        for side in ("bottom", "left"):
            axis = self.getAxis(side)
            axis.setPen(theme.colour("border"))
            axis.setTextPen(muted)
            axis.labelStyle["color"] = muted
            axis.setLabel(axis.labelText, **axis.labelStyle)
        legend = self.plotItem.legend
        if legend is not None:
            legend.setLabelTextColor(theme.colour("text"))
            if self._style.legend_columns == 1:
                legend.setBrush(_ground(theme))

    def place_legend(self, room: int) -> None:
        """Give a legend above the plot the height of as many rows as its labels need.

        Args:
            room: the available width, in pixels.
        """
        most = self._style.legend_columns
        if most > 1:
            item = self.plotItem
            columns = _columns_for(item.legend, most, room - 2 * _LEGEND_ROW)
            if columns != item.legend.columnCount:
                _arrange_legend(item.legend, columns)
            rows = -(-len(item.legend.items) // columns)
            item.layout.setContentsMargins(1, max(END_ROOM // 2, rows * _LEGEND_ROW), END_ROOM, 1)
            item.legend.anchor((0, 0), (0, 0), offset=(_LEGEND_ROW, -_LEGEND_ROW // 2))

    def show_markers(self, markers: Sequence[Marker], theme: Theme) -> None:
        """Draw vertical lines; they replace the ones before."""
        for item in self.marker_items:
            self.removeItem(item)
        self._markers = markers
        self.marker_items = [item for one in markers for item in self._marker_items(one, theme)]
        for item in self.marker_items:
            self.addItem(item, ignoreBounds=True)

    def show_levels(self, levels: Sequence[Level], theme: Theme) -> None:
        """Draw horizontal lines; they replace the ones before."""
        for item in self.level_items:
            self.removeItem(item)
        self.level_items = [_level_item(level, theme) for level in levels]
        for item in self.level_items:
            item.setZValue(_LINE_LAYER)
            self.addItem(item, ignoreBounds=True)
        self.move_levels(levels)

    def move_levels(self, levels: Sequence[Level]) -> None:
        """Move the lines and rename them: a run's median so far changes with each batch."""
        places = _level_places([level.y for level in levels])
        for item, level, place in zip(self.level_items, levels, places, strict=False):
            anchor = (place.across, 1.0 if place.is_above else 0.0)
            item.label.anchors = [anchor, anchor]
            item.label.orthoPos = place.across
            item.label.setFormat(level.label)
            item.label.setVisible(bool(level.label))  # its ground would cover a curve
            item.setPos(math.log10(level.y) if self._style.logarithmic_y else level.y)
            item.label.updatePosition()

    def show_names(self, names: Sequence[CurveName], theme: Theme) -> None:
        """Write names of curves beside points of them; they replace the ones before."""
        for item in self.name_items:
            self.removeItem(item)
        (left, right), _ = self.plotItem.vb.viewRange()
        self.name_items = []
        for name in names:
            is_right = name.x > (left + right) / 2
            item = pg.TextItem(
                name.label,
                color=QColor(theme.colour(ink(name.role))),
                anchor=(1.0 if is_right else 0.0, 1.0 if name.is_above else 0.0),
            )
            item.setPos(name.x, name.y)
            item.setZValue(_LINE_LAYER)
            self.addItem(item, ignoreBounds=True)
            self.name_items.append(item)

    def show_spans(self, spans: Sequence[Span], theme: Theme) -> None:
        """Color parts of the x axis; they replace the ones before."""
        if self._spans is None:
            self._spans = _SpanBar(self.plotItem.vb)
        self._spans.show_spans(spans, theme)

    def _marker_items(self, marker: Marker, theme: Theme) -> list[Any]:
        """Return a marker's line, and its band if it has one."""

        def place(value: float) -> float:
            return math.log10(value) if self._style.logarithmic else value

        colour = QColor(theme.colour(ink(marker.role)))
        style = Qt.PenStyle.DashLine if marker.dashed else Qt.PenStyle.DotLine
        line = pg.InfiniteLine(
            place(marker.x), pen=pg.mkPen(colour, style=style),
            label=marker.label or None,  # each text is a document; runs leave hundreds of marks
            labelOpts={
                "position": self._label_position(marker.row), "color": colour, "movable": False,
                "fill": _ground(theme),
            },
        )  # fmt: skip
        line.setZValue(_LINE_LAYER)
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

    def _place_labels(self) -> None:
        """Keep the rows of the markers' labels apart in a plot of another height."""
        rows = {marker.label: marker.row for marker in self._markers if marker.row}
        for item in self.marker_items if rows else ():
            label = getattr(item, "label", None)
            if label is not None and label.format in rows:
                label.setPosition(self._label_position(rows[label.format]))

    def _label_position(self, row: int) -> float:
        """Return the place of a row of labels, as a share of the plot's height."""
        label = QFontMetrics(QGuiApplication.font()).height() + _LABEL_PADDING
        # The rows are never closer than a label is high.
        height: float = self.plotItem.vb.height()
        step = max(_LABEL_STEP, label / max(height, 1.0))
        return max(_TOP_LABEL - row * step, 0.0)


class _LevelPlace(NamedTuple):
    """The place of a level's name: a share of the width, and above or below the line."""

    across: float
    is_above: bool


_COLUMNS_OF_LEVELS = (0.995, 0.005, 0.5)


def _level_places(ys: Sequence[float]) -> list[_LevelPlace]:
    """Return a place for the name of each level, so that none covers another.

    Two levels share a column: the higher one has its name above its line, the other below.
    """
    places = [_LevelPlace(0.0, True)] * len(ys)
    order = sorted(range(len(ys)), key=lambda at: -ys[at])
    for rank, at in enumerate(order):
        column = min(rank, len(order) - 1 - rank)
        across = _COLUMNS_OF_LEVELS[column % len(_COLUMNS_OF_LEVELS)]
        places[at] = _LevelPlace(across, is_above=2 * rank < len(order))
    return places


def _level_item(level: Level, theme: Theme) -> Any:
    """Return a level's line with its name, which have no place yet."""
    colour = QColor(theme.colour(ink(level.role)))
    style = Qt.PenStyle.DashLine if level.dashed else Qt.PenStyle.SolidLine
    return pg.InfiniteLine(
        angle=0, pen=pg.mkPen(colour, style=style), label=level.label,
        labelOpts={"color": colour, "movable": False, "fill": _ground(theme)},
    )  # fmt: skip


def _ground(theme: Theme) -> QColor:
    """Return the color behind a label, which keeps it readable above a curve."""
    ground = QColor(theme.colour("card"))
    ground.setAlpha(200)
    return ground


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
