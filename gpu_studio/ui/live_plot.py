"""A plot that looks at its data at its own frame rate and draws when they have grown.

pyqtgraph (with numpy a third of a second to import) comes after the plot's place was first
painted, so that a window is there before its plots are. Raw curves have a pen of width 1 and no
antialiasing: thicker or smoother pens take seconds for ten thousand points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gpu_studio.ui.steady_range import SteadyRange

if TYPE_CHECKING:
    import numpy as np
    import pyqtgraph as pg
    from numpy.typing import ArrayLike, NDArray
    from PySide6.QtGui import QHideEvent, QPaintEvent, QShowEvent

    from gpu_studio.ui.theme import Theme

FRAME_MS = 50
_LEGEND_ROW = 22  # pixels
_NOTHING = (-1, 0.0, 0.0)
_POINTS_DRAWN = 4000  # a curve of more points is drawn by its extremes; every spike stays

CurveSource = Callable[[], "tuple[ArrayLike, ArrayLike]"]


class Curve:
    """What a plot draws under one key.

    Args:
        label: its name in the legend, plain text.
        role: its colour role; lines take the role's ink.
        source: returns x and y, shape (n,) each, of everything there is now.
        dashed: a second sign besides the colour.
        symbol: a pyqtgraph symbol for few points, for example "o" or "s"; such curves are thick.
        filled: fills to zero; only for a few hundred points.
        smooth: thick and antialiased; only for a few hundred points.
        stepped: holds each value until the next; a NaN in y leaves a gap.
    """

    def __init__(
        self,
        label: str,
        role: str,
        source: CurveSource,
        *,
        dashed: bool = False,
        symbol: str | None = None,
        filled: bool = False,
        stepped: bool = False,
        smooth: bool = False,
    ) -> None:
        self.label, self.role, self.source = label, role, source
        self.dashed, self.symbol, self.filled, self.stepped = dashed, symbol, filled, stepped
        self.smooth = smooth or symbol is not None
        self.item: pg.PlotDataItem | None = None
        self.drawn = _NOTHING


class LivePlot(QFrame):
    """A place for curves. Its pyqtgraph part, `plot`, is None until it was first painted.

    Args:
        theme: gives the colours and tells when they change.
        x_unit, y_unit: how an axis writes its numbers: ``""``, ``"s"``, ``"ago"``, ``"bytes"``,
            ``"%"``, ``"°C"``, ``"W"``, ``"MHz"`` or ``"size"``.
        logarithmic: both axes; x in powers of two where its unit is ``"size"``.
        steady: for data that grow while they are looked at: the axes move in steps and the frames
            are twice as long, which leaves the processor to what is measured.
        legend: how many of the curves' labels stand side by side; one column lies in the plot,
            several lie over it, 0 shows none.
    """

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
        steady: bool = False,
        legend: int = 1,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setMinimumSize(80, 60)
        self._theme = theme
        self._axes = (x_label, y_label, x_unit, y_unit)
        self._logarithmic, self._legend_columns = logarithmic, legend
        self._curves: dict[str, Curve] = {}
        self._markers: list[tuple[float, str, str]] = []
        self._marker_items: list[Any] = []
        self._y_range: tuple[float, float] | None = None
        self._x_range: tuple[float, float] | None = None
        self._building = False
        self.plot: pg.PlotWidget | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._frames = QTimer(self)
        self._frames.setInterval(2 * FRAME_MS if steady else FRAME_MS)
        self._steady = (SteadyRange(0.02, 0.25), SteadyRange(0.1, 0.1)) if steady else None
        self._frames.timeout.connect(self.refresh)
        theme.changed.connect(self._recolour)

    def set_curve(self, key: str, curve: Curve) -> None:
        """Show a curve, in place of the one with the same key."""
        self.remove_curve(key)
        self._curves[key] = curve
        if self.plot is not None:
            self._add_item(curve)
            self.refresh()

    def remove_curve(self, key: str) -> None:
        """Take a curve away; nothing happens where there is none."""
        curve = self._curves.pop(key, None)
        if curve is not None and curve.item is not None and self.plot is not None:
            self.plot.removeItem(curve.item)

    def clear(self) -> None:
        """Take all curves and markers away."""
        for key in list(self._curves):
            self.remove_curve(key)
        self.set_markers([])

    @property
    def curve_keys(self) -> tuple[str, ...]:
        """The keys of the curves shown."""
        return tuple(self._curves)

    def set_markers(self, markers: list[tuple[float, str, str]]) -> None:
        """Show vertical lines: (x, label, colour role) each."""
        if markers != self._markers:
            self._markers = list(markers)
            self._draw_markers()

    def set_y_range(self, low: float, high: float) -> None:
        """Fix the y axis instead of following the data."""
        self._y_range = (low, high)
        if self.plot is not None:
            self.plot.setYRange(low, high, padding=0.02)

    def set_x_range(self, low: float, high: float) -> None:
        """Fix the x axis instead of following the data; called again, it scrolls."""
        self._x_range = (low, high)
        if self.plot is not None:
            self.plot.setXRange(low, high, padding=0)

    def describe(self, sentence: str) -> None:
        """Say in words what the plot shows, for those who do not see it."""
        self.setAccessibleDescription(sentence)

    def refresh(self) -> None:
        """Draw every curve that has grown since it was last drawn."""
        if self.plot is None:
            return
        import numpy as np

        has_grown = False
        shown: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for curve in self._curves.values():
            xs, ys = (np.asarray(values, np.float64) for values in curve.source())
            state = (len(xs), float(xs[-1]), float(ys[-1])) if len(xs) else (0, 0.0, 0.0)
            if curve.symbol is not None:  # few points, of which any may be another now
                state = (len(xs), float(xs.sum()), float(ys.sum()))
            if curve.item is not None and state != curve.drawn:
                curve.drawn = state
                curve.item.setData(*_extremes(xs, ys, _POINTS_DRAWN))
                has_grown = True
            shown.append((xs, ys))
        if self._steady is not None and has_grown:
            self._move_axes([columns for columns in shown if len(columns[0])])

    def _move_axes(self, shown: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> None:
        assert self.plot is not None
        assert self._steady is not None
        if not shown:
            return
        for number, (steady, move) in enumerate(
            zip(self._steady, (self.plot.setXRange, self.plot.setYRange), strict=True)
        ):
            lowest = min(float(columns[number].min()) for columns in shown)
            highest = max(float(columns[number].max()) for columns in shown)
            if steady.follow(lowest, highest):
                move(*steady.ends, padding=0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the empty place at first, and ask for the plot after that."""
        super().paintEvent(event)
        if self.plot is None and not self._building:
            self._building = True
            QTimer.singleShot(0, self, self._build)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw only while somebody can look."""
        super().showEvent(event)
        self._frames.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Draw nothing while hidden."""
        super().hideEvent(event)
        self._frames.stop()

    def _build(self) -> None:
        import pyqtgraph as pg

        from gpu_studio.ui.axes import END_ROOM, UnitAxis

        x_label, y_label, x_unit, y_unit = self._axes
        axes = {
            "bottom": UnitAxis("bottom", x_unit, logarithmic=self._logarithmic),
            "left": UnitAxis("left", y_unit, logarithmic=self._logarithmic),
        }
        plot = pg.PlotWidget(self, axisItems=axes, background=None, enableMenu=False)
        # So that the card behind it shows: a cached background is filled with the window's colour.
        plot.viewport().setAutoFillBackground(False)
        plot.setCacheMode(plot.CacheModeFlag.CacheNone)
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        plot.hideButtons()
        plot.showGrid(x=True, y=True, alpha=0.25)
        plot.plotItem.layout.setContentsMargins(1, END_ROOM // 2, END_ROOM, 1)
        plot.setLogMode(x=self._logarithmic, y=self._logarithmic)
        if x_label:
            plot.setLabel("bottom", x_label)
        if y_label:
            plot.setLabel("left", y_label)
        if self._legend_columns:
            # Time grows with size, so a log-log plot is empty at its upper left.
            corner = (10, 10) if self._logarithmic else (-10, 10)
            legend = plot.addLegend(
                offset=corner, labelTextSize="9pt", colCount=self._legend_columns
            )
            if self._legend_columns > 1:
                legend.setParentItem(plot.plotItem)  # the plot itself would clip it
        self.plot = plot
        layout = self.layout()
        assert layout is not None
        layout.addWidget(plot)
        self._recolour()
        if self._y_range is not None:
            self.set_y_range(*self._y_range)
        if self._x_range is not None:
            self.set_x_range(*self._x_range)

    def _add_item(self, curve: Curve) -> None:
        import pyqtgraph as pg

        assert self.plot is not None
        colour = QColor(self._theme.colour(_ink(curve.role)))
        style = Qt.PenStyle.DashLine if curve.dashed else Qt.PenStyle.SolidLine
        options: dict[str, Any] = {
            "pen": pg.mkPen(colour, width=2 if curve.smooth else 1, style=style),
            "antialias": curve.smooth,
            "skipFiniteCheck": True,
        }
        if curve.symbol is not None:
            options |= {
                "symbol": curve.symbol, "symbolSize": 8, "symbolBrush": colour, "symbolPen": None,
            }  # fmt: skip
        if curve.stepped:
            # Finite: a NaN in y is a stretch of which nothing is known.
            options |= {"stepMode": "right", "connect": "finite", "skipFiniteCheck": False}
        if curve.filled:
            shade = QColor(colour)
            shade.setAlpha(60)
            options |= {"fillLevel": 0, "brush": shade}
        # pyqtgraph writes labels as HTML, and a device's name comes from outside.
        label = curve.label.replace("&", "&amp;").replace("<", "&lt;")
        curve.item = self.plot.plot([], [], name=label or None, **options)
        curve.drawn = _NOTHING
        self._place_legend()

    def _place_legend(self) -> None:
        """Give a legend over the plot the room of its rows."""
        from gpu_studio.ui.axes import END_ROOM

        assert self.plot is not None
        if self._legend_columns > 1:
            item = self.plot.plotItem
            rows = -(-len(item.legend.items) // self._legend_columns)
            item.layout.setContentsMargins(1, max(END_ROOM // 2, rows * _LEGEND_ROW), END_ROOM, 1)
            item.legend.anchor((0, 0), (0, 0), offset=(_LEGEND_ROW, -_LEGEND_ROW // 2))

    def _recolour(self) -> None:
        """Take the theme's colours; pyqtgraph's items keep theirs, so they are made again."""
        if self.plot is None:
            return
        muted = self._theme.colour("muted")
        for side in ("bottom", "left"):
            axis = self.plot.getAxis(side)
            axis.setPen(self._theme.colour("border"))
            axis.setTextPen(muted)
            axis.labelStyle["color"] = muted
            axis.setLabel(axis.labelText, **axis.labelStyle)
        legend = self.plot.plotItem.legend
        if legend is not None:
            legend.setLabelTextColor(self._theme.colour("text"))
            if self._legend_columns == 1:
                ground = QColor(self._theme.colour("card"))
                ground.setAlpha(200)  # a label stays readable over a curve
                legend.setBrush(ground)
        for curve in self._curves.values():
            if curve.item is not None:
                self.plot.removeItem(curve.item)
            self._add_item(curve)
        self._draw_markers()
        self.refresh()

    def _draw_markers(self) -> None:
        if self.plot is None:
            return
        import pyqtgraph as pg

        for item in self._marker_items:
            self.plot.removeItem(item)
        self._marker_items = []
        for value, label, role in self._markers:
            x = math.log10(value) if self._logarithmic else value
            colour = self._theme.colour(_ink(role))
            line = pg.InfiniteLine(
                x, pen=pg.mkPen(colour, style=Qt.PenStyle.DotLine), label=label,
                labelOpts={"position": 0.92, "color": colour, "movable": False},
            )  # fmt: skip
            self.plot.addItem(line, ignoreBounds=True)
            self._marker_items.append(line)


def _ink(role: str) -> str:
    from gpu_studio.ui.theme import COLOURS

    return f"{role}_ink" if f"{role}_ink" in COLOURS else role


def _extremes(
    xs: NDArray[np.float64], ys: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the curve by the lowest and highest point of each stretch, at most ``most`` points."""
    import numpy as np

    if len(ys) <= most:
        return xs, ys
    stretch = -(-len(ys) // (most // 2))
    whole = len(ys) // stretch * stretch
    blocks = ys[:whole].reshape(-1, stretch)
    first = np.arange(len(blocks)) * stretch
    picks = np.sort(np.stack([first + blocks.argmin(1), first + blocks.argmax(1)], axis=1), axis=1)
    picks = np.append(picks.ravel(), np.arange(whole, len(ys)))
    return xs[picks], ys[picks]
