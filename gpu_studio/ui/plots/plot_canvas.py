"""pyqtgraph's part of a plot, with the program's axes, legend and lines.

It is imported after the first paint: pyqtgraph takes 130 ms, and numpy before it 80 ms.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QToolTip

from gpu_studio.core.units import format_duration
from gpu_studio.model.text_rows import rich_tip
from gpu_studio.ui.plots.plot_curve import ink, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QMouseEvent, QPainter, QWheelEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.plots.plot_curve import AxesStyle, Curve, CurveName, Level, Marker, Span
    from gpu_studio.ui.theme import Theme


END_ROOM = 16  # pixels that a label may extend beyond an axis' end
_FEWEST_PIXELS = {"bottom": 60, "left": 24}  # between two labeled ticks
_MOST_LABELS = {"bottom": 30, "left": 9}  # more in a high plot are a ruler, not a picture
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_DECADES = (1.0, 2.0, 5.0)


class UnitAxis(pg.AxisItem):  # type: ignore[misc]  # pyqtgraph has no types
    """An axis whose ticks include the unit, if it is one of time or of bytes.

    ``"count"`` are whole numbers, ``"size"`` are powers of two if the axis is logarithmic.
    """

    def __init__(self, orientation: str, unit: str, *, logarithmic: bool = False) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)
        self._unit = unit
        self._is_logarithmic = logarithmic
        self.setStyle(tickLength=-4)

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
        if self._unit == "bytes":
            step = _binary_step((maximum - minimum) / most)
        else:
            step = _round_step((maximum - minimum) / most)
        if self._unit == "count":
            step = max(step, 1.0)
        first = math.ceil(minimum / step)
        return [(step, [i * step for i in range(first, math.floor(maximum / step) + 1)])]

    def boundingRect(self) -> QRectF:
        """Return the axis' rectangle with space for the end labels, which pyqtgraph omits."""
        room_x, room_y = (END_ROOM, 0) if self.orientation == "bottom" else (0, END_ROOM)
        rect: QRectF = super().boundingRect()
        return rect.adjusted(-room_x, -room_y, room_x, room_y)

    def tickStrings(self, values: list[float], _scale: float, spacing: float | None) -> list[str]:
        """Return the ticks' labels, with enough digits to tell neighbors apart."""
        if spacing and self._unit not in ("bytes", "size"):
            return _even(values, spacing, is_time=self._unit == "s")
        shown = [10**value if self._is_logarithmic else value for value in values]
        return [_plain(value_text(value, self._unit)) if value else "0" for value in shown]


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
_LEGEND_COLUMNS = 4
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
        hovered(QMouseEvent | None): the mouse moved and does not drag; None: it left.

    Attributes:
        axes_style: the labels and units of the axes.
        mark_items: what is drawn beside the curves: markers with their bands, levels, names.
    """

    hovered = Signal(object)

    def __init__(self, style: AxesStyle, parent: QWidget) -> None:
        axes = {
            "bottom": UnitAxis("bottom", style.x_unit, logarithmic=style.logarithmic_x),
            "left": UnitAxis("left", style.y_unit, logarithmic=style.logarithmic_y),
        }
        super().__init__(parent, axisItems=axes, background=None, enableMenu=False)
        self.axes_style = style
        self._marks: dict[str, Sequence[Any]] = defaultdict(list)
        self._looks: list[object] | None = None  # of the levels
        self.mark_items: dict[str, list[Any]] = defaultdict(list)
        self._bar = _SpanBar(self.plotItem.vb)
        # Lets the card behind it show: a cached background has the window's color.
        self.viewport().setAutoFillBackground(False)
        self.setCacheMode(self.CacheModeFlag.CacheNone)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setMouseTracking(True)
        self.hideButtons()
        self.showGrid(x=True, y=True, alpha=0.25)
        self.plotItem.layout.setContentsMargins(1, END_ROOM // 2, END_ROOM, 1)
        self.plotItem.vb.sigResized.connect(self._place_labels)
        self.setLogMode(x=style.logarithmic_x, y=style.logarithmic_y)
        if style.x_label:
            self.setLabel("bottom", style.x_label)
        if style.y_label:
            self.setLabel("left", style.y_label)
        if style.has_legend:
            legend = self.addLegend(labelTextSize="9pt", colCount=_LEGEND_COLUMNS)
            legend.setParentItem(self.plotItem)  # the plot itself would clip it

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell where the mouse is, but not while it drags."""
        super().mouseMoveEvent(event)
        if event.buttons() == Qt.MouseButton.NoButton:
            self.hovered.emit(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Tell that the mouse left."""
        super().leaveEvent(event)
        self.hovered.emit(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page, except with Ctrl in a plot that zooms."""
        zooms = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if zooms and any(self.plotItem.vb.mouseEnabled()):
            super().wheelEvent(event)
        else:
            event.ignore()

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

    def place_legend(self) -> None:
        """Make room for a legend above the plot."""
        if self.axes_style.has_legend and self.plotItem.legend.items:
            self.plotItem.layout.setContentsMargins(1, _LEGEND_ROW, END_ROOM, 1)
            self.plotItem.legend.anchor((0, 0), (0, 0), offset=(_LEGEND_ROW, -_LEGEND_ROW // 2))

    def show_marks(self, kind: str, marks: Sequence[Any], theme: Theme) -> None:
        """Draw markers, levels, names or spans; they replace the ones before of their kind."""
        if kind == "spans":
            self._bar.show_spans(marks, theme)
            return
        self._marks[kind] = marks
        if kind == "levels":
            before, self._looks = self._looks, _looks(marks, theme)
            if before == self._looks:
                self._move_levels(marks)
                return
        for item in self.mark_items[kind]:
            self.removeItem(item)
        make: dict[str, Callable[[Any, Theme], list[Any]]] = {
            "markers": self._marker_items, "levels": _level_items, "names": self._name_items,
        }  # fmt: skip
        self.mark_items[kind] = [item for mark in marks for item in make[kind](mark, theme)]
        for item in self.mark_items[kind]:
            self.addItem(item, ignoreBounds=True)
        if kind == "levels":
            self._move_levels(marks)

    def _move_levels(self, levels: Sequence[Level]) -> None:
        """Move the lines and rename them: a run's median so far changes with each batch."""
        places = _level_places([level.y for level in levels])
        for item, level, place in zip(self.mark_items["levels"], levels, places, strict=True):
            anchor = (place.across, 1.0 if place.is_above else 0.0)
            item.label.anchors = [anchor, anchor]
            item.label.orthoPos = place.across
            item.label.setFormat(_as_it_is(level.label))
            item.label.setVisible(bool(level.label))  # its ground would cover a curve
            item.setPos(math.log10(level.y) if self.axes_style.logarithmic_y else level.y)
            item.label.updatePosition()

    def _name_items(self, name: CurveName, theme: Theme) -> list[Any]:
        x = math.log10(name.x) if self.axes_style.logarithmic_x else name.x
        y = math.log10(name.y) if self.axes_style.logarithmic_y else name.y
        (left, right), _ = self.plotItem.vb.viewRange()
        is_at_left = name.is_above if name.rises else x > (left + right) / 2
        item = pg.TextItem(
            name.label,
            color=QColor(theme.colour(ink(name.role))),
            anchor=(1.0 if is_at_left else 0.0, 1.0 if name.is_above else 0.0),
        )
        item.setPos(x, y)
        item.setZValue(_LINE_LAYER)
        return [item]

    def _marker_items(self, marker: Marker, theme: Theme) -> list[Any]:
        """Return a marker's line, and its band if it has one."""

        def place(value: float) -> float:
            return math.log10(value) if self.axes_style.logarithmic_x else value

        colour = QColor(theme.colour(ink(marker.role)))
        style = Qt.PenStyle.DashLine if marker.dashed else Qt.PenStyle.DotLine
        line = pg.InfiniteLine(
            place(marker.x), pen=pg.mkPen(colour, style=style),
            # Each text is a document, and runs leave hundreds of marks.
            label=_as_it_is(marker.label) or None,
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
        rows = {
            _as_it_is(marker.label): marker.row for marker in self._marks["markers"] if marker.row
        }
        for item in self.mark_items["markers"] if rows else ():
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


def _looks(levels: Sequence[Level], theme: Theme) -> list[object]:
    """Return what levels keep when they move."""
    return [(level.role, level.dashed, theme.is_dark, theme.factor) for level in levels]


def _as_it_is(name: str) -> str:
    """Return what pyqtgraph's `InfLineLabel` shows as this text: it formats its label."""
    return name.replace("{", "{{").replace("}", "}}")


def _level_items(level: Level, theme: Theme) -> list[Any]:
    """Return a level's line with its name, which have no place yet."""
    colour = QColor(theme.colour(ink(level.role)))
    style = Qt.PenStyle.DashLine if level.dashed else Qt.PenStyle.SolidLine
    line = pg.InfiniteLine(
        angle=0, pen=pg.mkPen(colour, style=style), label=_as_it_is(level.label),
        labelOpts={"color": colour, "movable": False, "fill": _ground(theme)},
    )  # fmt: skip
    line.setZValue(_LINE_LAYER)
    return [line]


def _ground(theme: Theme) -> QColor:
    """Return the color behind a label, which keeps it readable above a curve."""
    ground = QColor(theme.colour("card"))
    ground.setAlpha(200)
    return ground


# A point further from the mouse belongs to another place of the plot.
_FARTHEST = 40  # pixels


def read_at_mouse(plot: PlotCanvas, curves: Iterable[Curve], event: QMouseEvent | None) -> None:
    """Show the nearest point of each curve; nothing if the mouse is outside the plot."""
    box, lines = plot.plotItem.vb, []
    scene = plot.mapToScene(event.position().toPoint()) if event is not None else None
    if scene is not None and box.sceneBoundingRect().contains(scene):
        seen = float(box.mapSceneToView(scene).x())
        x = 10**seen if plot.axes_style.logarithmic_x else seen
        reach = _FARTHEST * abs(float(box.viewPixelSize()[0]))
        lines = reading_lines(curves, plot.axes_style, x, reach)
    if event is not None and lines:
        QToolTip.showText(event.globalPosition().toPoint(), rich_tip(lines), plot)
    else:
        QToolTip.hideText()


def reading_lines(curves: Iterable[Curve], style: AxesStyle, x: float, reach: float) -> list[str]:
    """Return the place of the nearest point, and below it the value of each curve there.

    Args:
        curves: the drawn ones.
        style: the units of the axes.
        x: the place, in the data's own scale.
        reach: the largest distance along the axis; in decades if it is logarithmic.
    """
    nearest: list[tuple[float, float, str]] = []
    for curve in curves:
        found = _nearest(curve, x, logarithmic=style.logarithmic_x)
        if found is not None and found[0] <= reach:
            value = value_text(found[2], style.y_unit)
            nearest.append((found[0], found[1], ": ".join(filter(None, (curve.label, value)))))
    if not nearest:
        return []
    at = value_text(min(nearest)[1], style.x_unit)
    head = at if style.x_unit == "size" else f"{style.x_label} {at}".strip()
    return [head, *(line for _, _, line in nearest)]


def _nearest(curve: Curve, x: float, *, logarithmic: bool) -> tuple[float, float, float] | None:
    """Return the distance, x and y of a curve's nearest drawn point; None without any."""
    if curve.shown is None or not len(curve.shown.xs):
        return None
    xs, ys = curve.shown.xs, curve.shown.ys
    apart = np.abs(np.log10(xs / x)) if logarithmic else np.abs(xs - x)
    apart = np.where(np.isfinite(ys), apart, math.inf)
    at = int(apart.argmin())
    if not math.isfinite(apart[at]):
        return None
    return float(apart[at]), float(xs[at]), float(ys[at])
