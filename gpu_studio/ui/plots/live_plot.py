"""A plot that polls its data at its own frame rate and draws when the data has grown.

pyqtgraph (a third of a second to import, with numpy) is imported after the first paint of the
plot's place, so that the window appears before its plots. Raw curves have a pen of width 1 and no
antialiasing: thicker or smoother pens take seconds for ten thousand points.
"""

from __future__ import annotations

import html
import math
import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gpu_studio.ui.plots.plot_curve import Curve, CurveSource, Sight
from gpu_studio.ui.plots.plot_style import AxesStyle, CurveName, Level, Marker, Span
from gpu_studio.ui.plots.plot_zoom import Ends, PlotZoom, Whole
from gpu_studio.ui.scroll_page import idle_work, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QHideEvent, QPaintEvent, QResizeEvent, QShowEvent

    from gpu_studio.ui.plots.plot_canvas import PlotCanvas
    from gpu_studio.ui.plots.plot_reading import PlotReading
    from gpu_studio.ui.theme import Theme

__all__ = ["Curve", "CurveName", "CurveSource", "Level", "LivePlot", "Marker", "Span"]
FRAME_MS = 50
# Four frames a second: with ten, a run on two cores took 2.6 % longer in the median.
STEADY_FRAME_MS = 250
_FEWEST_POINTS = 400
_CANVAS = "gpu_studio.ui.plots.plot_canvas"
_READING = "gpu_studio.ui.plots.plot_reading"
_MODULES = ("numpy", "pyqtgraph", _CANVAS, _READING)  # each takes a while

_TOO_LOOSE = 0.5  # the data fills less than this share of the range
_ALL_BUT_EQUAL = 1e-9
_NOTHING = 1e-30
_LEAST_DECADES = 0.3
_LEAST_SHARE = 1e-4  # of an axis: closer, its numbers have too many digits
_LEAST_SAMPLES = 2.0
_ASIDE = 0.05  # of the data's span


def imports() -> list[Callable[[], object]]:
    """Return what imports each module of a plot that is not there yet, for a turn of its own."""
    return [partial(import_module, name) for name in _MODULES if name not in sys.modules]


class LivePlot(QFrame):
    """A widget for curves. Its pyqtgraph part, `plot`, is None until the first paint.

    Args:
        theme: gives the colors and reports their changes.
        x_unit, y_unit: the number format of an axis: ``""``, ``"s"``, ``"ago"``, ``"bytes"``,
            ``"GiB"``, ``"%"``, ``"°C"``, ``"W"``, ``"MHz"``, ``"count"`` or ``"size"``.
        logarithmic: both axes; x in powers of two if its unit is ``"size"``.
        logarithmic_y: the y axis alone; every value is above zero.
        steady: for data that grows while visible: the axes move in steps and the frame rate is
            lower, which leaves the processor to the measurement.
        legend: the number of label columns; one column is inside the plot, several are above it,
            0 shows none.
        empty: says what will be in it, until there is something.
        zoomable: accepts keyboard focus and zooms; see `plot_zoom`.

    Signals:
        pointed(float | None): the x under the mouse; None if the mouse left the plot.
        clicked(float): the x of a click.
    """

    pointed = Signal(object)
    clicked = Signal(float)

    def __init__(
        self,
        theme: Theme,
        *,
        name: str,
        x_label: str = "",
        y_label: str = "",
        x_unit: str = "",
        y_unit: str = "",
        logarithmic: bool = False,
        logarithmic_y: bool = False,
        steady: bool = False,
        legend: int = 1,
        zoomable: bool = False,
        empty: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setMinimumSize(80, 60)
        self._theme, self._empty = theme, empty
        self._style = AxesStyle(
            x_label, y_label, x_unit, y_unit, logarithmic, legend, logarithmic or logarithmic_y
        )
        self._curves: dict[str, Curve] = {}
        self._markers: list[Marker] = []
        self._levels: list[Level] = []
        self._names: list[CurveName] = []
        self._spans: list[Span] = []
        self._y_range: tuple[float, float] | None = None
        self._x_range: tuple[float, float] | None = None
        self._is_building = False
        self._reading: PlotReading | None = None
        self.plot: PlotCanvas | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._frames = QTimer(self)
        self._frames.setInterval(STEADY_FRAME_MS if steady else FRAME_MS)
        # The names of levels at either end need space on a logarithmic axis.
        aside = 0.3 if self._style.logarithmic_y else 0.1
        self._steady = (SteadyRange(0.02, 0.25), SteadyRange(aside, aside)) if steady else None
        self._zoom = PlotZoom(self, self._whole) if zoomable else None
        self._frames.timeout.connect(self.refresh)
        self._is_stale = False  # another theme came while it was hidden
        theme.changed.connect(self._follow_theme)

    def set_curve(self, key: str, curve: Curve) -> None:
        """Show a curve, replacing the one with the same key."""
        self.remove_curve(key)
        self._curves[key] = curve
        if self.plot is not None:
            self._add_item(curve)
            self.refresh()

    def remove_curve(self, key: str) -> None:
        """Remove a curve, if there is one with this key."""
        curve = self._curves.pop(key, None)
        if curve is not None and curve.item is not None and self.plot is not None:
            self.plot.removeItem(curve.item)
        if self._empty:
            self.update()

    def clear(self) -> None:
        """Remove all curves and markers."""
        for key in list(self._curves):
            self.remove_curve(key)
        self.set_markers([])

    @property
    def curve_keys(self) -> tuple[str, ...]:
        """The keys of the shown curves."""
        return tuple(self._curves)

    def set_markers(self, markers: Sequence[tuple[float, str, str] | Marker]) -> None:
        """Show vertical lines, each an (x, label, color role) or a `Marker`."""
        wanted = [marker if isinstance(marker, Marker) else Marker(*marker) for marker in markers]
        if wanted != self._markers:
            self._markers = wanted
            self._draw_markers()

    def set_levels(self, levels: Sequence[Level]) -> None:
        """Show horizontal lines with their names; they replace the ones before."""
        wanted = list(levels)
        if wanted != self._levels:
            before, self._levels = self._levels, wanted
            if [level.look for level in wanted] == [level.look for level in before]:
                if self.plot is not None:
                    self.plot.move_levels(wanted)
            else:
                self._draw_levels()

    def set_names(self, names: Sequence[CurveName]) -> None:
        """Show names of curves beside them; they replace the ones before."""
        if list(names) != self._names:
            self._names = list(names)
            self._draw_names()

    def set_spans(self, spans: Sequence[Span]) -> None:
        """Color parts of the x axis; they replace the ones before."""
        if (wanted := list(spans)) != self._spans:
            self._spans = wanted
            self._draw_spans()

    def set_x_label(self, label: str) -> None:
        """Set the label of the x axis."""
        self._style = self._style._replace(x_label=label)
        if self.plot is not None:
            axis = self.plot.getAxis("bottom")
            axis.setLabel(label, **axis.labelStyle)

    def set_x_unit(self, unit: str) -> None:
        """Set the number format of the x axis."""
        self._style = self._style._replace(x_unit=unit)
        if self.plot is not None and self._reading is not None:
            self.plot.set_x_unit(unit)
            self._reading.style = self._style

    def set_y_range(self, low: float, high: float) -> None:
        """Fix the y axis instead of following the data."""
        self._y_range = (low, high)
        if self.plot is not None:
            self.plot.setYRange(low, high, padding=0.02)

    def set_x_range(self, low: float, high: float) -> None:
        """Fix the x axis instead of following the data; called again, it scrolls."""
        self._x_range = (low, high)
        if self.plot is not None and not self._is_chosen:
            self.plot.setXRange(low, high, padding=0)

    def describe(self, sentence: str) -> None:
        """Set the plot's description for screen readers."""
        self.setAccessibleDescription(sentence)

    def show_all(self) -> None:
        """Show everything again after zooming."""
        if self._zoom is not None and self._zoom.is_chosen:
            self._zoom.show_all()

    def refresh(self) -> None:
        """Draw every curve that has grown, or whose visible part changed."""
        if self.plot is None:
            return
        if self._frames.isActive():
            self._frames.start()  # the next frame is a full period from now
        sight = self._sight()
        grown = [curve for curve in self._curves.values() if curve.has_changed(sight)]
        if grown and self._steady is not None and not self._is_chosen:
            self._move_axes()
        for curve in grown:
            curve.draw()
        if grown and self._empty:
            self.update()

    @property
    def _has_points(self) -> bool:
        looks = (curve.shown for curve in self._curves.values())
        return any(look is not None and len(look.xs) > 0 for look in looks)

    @property
    def _is_chosen(self) -> bool:
        return self._zoom is not None and self._zoom.is_chosen

    def _sight(self) -> Sight:
        """Return the view: everything, unless the user has zoomed in."""
        assert self.plot is not None
        box = self.plot.plotItem.vb
        # Only the lowest and the highest sample of each pixel column are visible.
        most = max(2 * int(box.width()), _FEWEST_POINTS)
        if not self._is_chosen:
            return Sight(most_points=most)
        (first, last), _ = box.viewRange()
        return Sight(first, last, most)

    def _move_axes(self) -> None:
        assert self.plot is not None
        assert self._steady is not None
        looks = [curve.shown for curve in self._curves.values()]
        shown = [look for look in looks if look is not None and len(look.xs)]
        if not shown:
            return
        for steady, move, columns in (
            (self._steady[0], self.plot.setXRange, [look.xs for look in shown]),
            (self._steady[1], self.plot.setYRange, [look.ys for look in shown]),
        ):
            lowest = min(float(column.min()) for column in columns)
            highest = max(float(column.max()) for column in columns)
            if move == self.plot.setXRange and self._x_range is not None:
                continue
            if move == self.plot.setYRange and self._style.logarithmic_y:
                lowest, highest = decades_of(lowest, highest)
            if steady.widen(lowest, highest):
                move(*steady.ends, padding=0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the empty place first, and build the plot after that."""
        super().paintEvent(event)
        if self._empty and not self._has_points:
            painter = QPainter(self)
            painter.setPen(QColor(self._theme.colour("muted")))
            painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignCenter), self._empty)
            painter.end()
        if not self._is_building:
            self._is_building = True
            idle_work().add(self, *imports(), self._build)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the canvas."""
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw only while visible."""
        super().showEvent(event)
        self._catch_up()
        self._frames.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Draw nothing while hidden."""
        super().hideEvent(event)
        self._frames.stop()

    def lay_out(self) -> PlotCanvas:
        """Return the canvas at its size, also if it has not been painted: a picture is wanted."""
        self._is_building = True
        self._build()
        self._catch_up()
        canvas = self.plot
        assert canvas is not None
        canvas.show()  # the layout would show it in a later turn
        self.refresh()
        self.grab()  # the width of an axis follows the numbers on it
        return canvas

    def _build(self) -> None:
        if self.plot is not None:
            return
        self.plot = plot = imported(f"{_CANVAS}:PlotCanvas")(self._style, self)
        layout = self.layout()
        assert layout is not None
        layout.addWidget(plot)
        layout.setEnabled(False)  # it gives hints, but no geometry
        self._fit()
        self._recolour()
        self._keep_ranges()
        plot.setMouseEnabled(self._zoom is not None, self._zoom is not None)
        if self._zoom is not None:
            self._zoom.look_at(plot)
            self._zoom.changed.connect(self._zoomed)
        reading = imported(f"{_READING}:PlotReading")
        self._reading = shown = reading(plot, self._style, lambda: self._curves.values())
        shown.pointed.connect(self.pointed)
        plot.clicked.connect(self.clicked)

    def _fit(self) -> None:
        if self.plot is not None:
            self.plot.setGeometry(self.rect())
            self._place_legend()

    def _zoomed(self) -> None:
        """Draw the current view; show everything again after the zoom ended."""
        if not self._is_chosen and self.plot is not None:
            if self._steady is not None:
                for steady, move in zip(
                    self._steady, (self.plot.setXRange, self.plot.setYRange), strict=True
                ):
                    move(*steady.ends, padding=0)
            else:
                self.plot.plotItem.vb.enableAutoRange()
                self.plot.plotItem.vb.updateAutoRange()
            self._keep_ranges()
        self.refresh()

    def _keep_ranges(self) -> None:
        """Use the ranges that do not follow the data."""
        if self._y_range is not None:
            self.set_y_range(*self._y_range)
        if self._x_range is not None:
            self.set_x_range(*self._x_range)

    def _whole(self) -> Whole:
        """Return what is visible if nothing is hidden."""
        assert self.plot is not None
        if self._steady is not None:
            x, y = (Ends(*steady.ends) for steady in self._steady)
            newest = max((curve.last_x for curve in self._curves.values()), default=x.high)
            x = Ends(x.low, max(x.high, newest))  # the axes stay while a part is visible
            x = Ends(*self._x_range) if self._x_range is not None else x
        else:
            bounds = self.plot.plotItem.vb.childrenBounds()
            x, y = (_padded(*ends) if ends is not None else Ends(0.0, 1.0) for ends in bounds)
            x = Ends(*self._x_range) if self._x_range is not None else x
            y = Ends(*self._y_range) if self._y_range is not None else y
        least_x = _LEAST_SAMPLES if self._style.x_unit == "count" else 0.0
        return Whole(
            x, y, max((x.high - x.low) * _LEAST_SHARE, least_x), (y.high - y.low) * _LEAST_SHARE
        )

    def _add_item(self, curve: Curve) -> None:
        assert self.plot is not None
        # pyqtgraph writes labels as HTML, and a device's name comes from outside.
        label = html.escape(curve.label, quote=False)
        curve.show_in(self.plot.plot([], [], name=label or None, **curve.options(self._theme)))
        self._place_legend()

    def _place_legend(self) -> None:
        if self.plot is not None:
            self.plot.place_legend(self.width())

    def _follow_theme(self) -> None:
        """Use the theme's colors, now or when it is shown."""
        self._is_stale = True
        if self.isVisible():
            self._recolour()

    def _catch_up(self) -> None:
        if self._is_stale:
            self._recolour()

    def _recolour(self) -> None:
        """Use the theme's colors; pyqtgraph's items keep theirs, so they are created again."""
        self._is_stale = False
        if self.plot is None:
            return
        self.plot.recolour(self._theme)
        for curve in self._curves.values():
            if curve.item is not None:
                self.plot.removeItem(curve.item)
            self._add_item(curve)
        self._draw_markers()
        self._draw_levels()
        self._draw_names()
        self._draw_spans()
        self.refresh()

    def _draw_markers(self) -> None:
        if self.plot is not None:
            self.plot.show_markers(self._markers, self._theme)

    def _draw_levels(self) -> None:
        if self.plot is not None:
            self.plot.show_levels(self._levels, self._theme)

    def _draw_names(self) -> None:
        if self.plot is not None:
            self.plot.show_names(self._names, self._theme)

    def _draw_spans(self) -> None:
        if self.plot is not None:
            self.plot.show_spans(self._spans, self._theme)


def _padded(low: float, high: float) -> Ends:
    return Ends(low - _ASIDE * (high - low), high + _ASIDE * (high - low))


def decades_of(lowest: float, highest: float) -> tuple[float, float]:
    """Return the ends of a logarithmic axis as powers of ten, at least a factor of two apart."""
    low, high = (math.log10(max(value, _NOTHING)) for value in (lowest, highest))
    spare = max(_LEAST_DECADES - (high - low), 0.0) / 2
    return low - spare, high + spare


class SteadyRange:
    """The range of an axis.

    Args:
        below: the space under the data, as a share of its span.
        above: the space above the data, for its growth.
    """

    def __init__(self, below: float, above: float) -> None:
        self._below, self._above = below, above
        self._range: tuple[float, float] | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Its start and end; 0 to 1 before any data."""
        return self._range or (0.0, 1.0)

    def widen(self, lowest: float, highest: float) -> bool:
        """Add data; return whether the range has changed."""
        largest = max(abs(lowest), abs(highest))
        if largest < _NOTHING:
            largest = 1.0
        # Nearly equal values get a range that floating point can tell from them.
        span = highest - lowest if highest - lowest > _ALL_BUT_EQUAL * largest else largest
        if self._range is not None:
            low, high = self._range
            if low <= lowest and highest <= high and span >= _TOO_LOOSE * (high - low):
                return False
        changed = (lowest - self._below * span, highest + self._above * span)
        if changed == self._range:
            return False
        self._range = changed
        return True
