"""A plot that polls its data at its own frame rate and draws when the data has grown.

pyqtgraph (a third of a second to import, with numpy) is imported after the first paint of the
plot's place, so that the window appears before its plots. Raw curves have a pen of width 1 and no
antialiasing: thicker or smoother pens take seconds for ten thousand points.
"""

from __future__ import annotations

import html
import math
import sys
from collections import defaultdict
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from gpu_studio.core.units import counted
from gpu_studio.ui.plots.plot_curve import (
    AxesStyle,
    Curve,
    CurveName,
    CurveSource,
    Level,
    Marker,
    Sight,
    Span,
)
from gpu_studio.ui.plots.plot_zoom import PlotZoom
from gpu_studio.ui.scroll_page import idle_work, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from PySide6.QtGui import (
        QHideEvent,
        QKeyEvent,
        QMouseEvent,
        QPaintEvent,
        QResizeEvent,
        QShowEvent,
    )

    from gpu_studio.ui.plots.plot_canvas import PlotCanvas
    from gpu_studio.ui.theme import Theme


__all__ = ["AxesStyle", "Curve", "CurveName", "CurveSource", "Level", "LivePlot", "Marker", "Span"]
# Four frames a second: with ten, a run on two cores took 2.6 % longer in the median.
FRAME_MS = 250
_FEWEST_POINTS = 400
_CANVAS = "gpu_studio.ui.plots.plot_canvas"
_MODULES = ("numpy", "pyqtgraph", _CANVAS)  # each takes a while


def imports() -> list[Callable[[], object]]:
    """Return what imports each module of a plot that is not there yet, for a turn of its own."""
    return [partial(import_module, name) for name in _MODULES if name not in sys.modules]


class LivePlot(QFrame):
    """A widget for curves. Its pyqtgraph part, `plot`, is None until the first paint.

    Args:
        theme: gives the colors and reports their changes.
        style: the labels and units of the axes.
        empty: says what will be in it, until there is something.
        zoomable: accepts keyboard focus and zooms; see `plot_zoom`.

    Attributes:
        marks: what is shown beside the curves: markers, levels, names and spans.
    """

    def __init__(
        self,
        theme: Theme,
        style: AxesStyle,
        *,
        name: str,
        zoomable: bool = False,
        empty: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setMinimumSize(80, 60)
        self._theme, self._style, self._empty = theme, style, empty
        self._curves: dict[str, Curve] = {}
        self.marks: dict[str, list[Any]] = defaultdict(list)
        self._y_range: tuple[float, float] | None = None
        self._x_range: tuple[float, float] | None = None
        self._is_building = False
        self.plot: PlotCanvas | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._frames = QTimer(self)
        self._frames.setInterval(FRAME_MS)
        self._zoom = PlotZoom(self) if zoomable else None
        self._frames.timeout.connect(self.refresh)
        theme.changed.connect(self._recolour)

    def show_curves(self, curves: Mapping[str, Curve]) -> None:
        """Show these curves and no others.

        To make a curve takes milliseconds in the window's thread, and other values in it take
        almost no time: one that looks as before stays, with the new source.
        """
        for key in [key for key in self._curves if key not in curves]:
            self.remove_curve(key)
        for key, curve in curves.items():
            shown = self._curves.get(key)
            if shown is not None and shown.look == curve.look:
                shown.source = curve.source
            else:
                self.set_curve(key, curve)
        if self.isVisible():
            self.refresh()

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

    @property
    def curve_keys(self) -> tuple[str, ...]:
        """The keys of the shown curves."""
        return tuple(self._curves)

    def set_markers(self, markers: Sequence[Marker]) -> None:
        """Show vertical lines; they replace the ones before."""
        self._set("markers", markers)

    def set_levels(self, levels: Sequence[Level]) -> None:
        """Show horizontal lines with their names; they replace the ones before."""
        self._set("levels", levels)

    def set_names(self, names: Sequence[CurveName]) -> None:
        """Show names of curves beside them; they replace the ones before."""
        self._set("names", names)

    def set_spans(self, spans: Sequence[Span]) -> None:
        """Color parts of the x axis; they replace the ones before."""
        self._set("spans", spans)

    def _set(self, kind: str, marks: Sequence[Any]) -> None:
        if self.marks[kind] != [*marks]:
            self.marks[kind] = [*marks]
            if self.plot is not None:
                self.plot.show_marks(kind, self.marks[kind], self._theme)

    def set_x_label(self, label: str) -> None:
        """Set the label of the x axis."""
        self._style = self._style._replace(x_label=label)
        if self.plot is not None:
            axis = self.plot.getAxis("bottom")
            axis.setLabel(label, **axis.labelStyle)

    def set_y_range(self, low: float, high: float) -> None:
        """Fix the y axis instead of following the data; called again, it moves in one step."""
        if self._style.logarithmic_y:
            low, high = math.log10(low), math.log10(high)
        self._y_range = (low, high)
        if self.plot is not None and not self._is_chosen:
            self.plot.setYRange(low, high, padding=0.02)

    def set_x_range(self, low: float, high: float) -> None:
        """Fix the x axis instead of following the data; called again, it scrolls."""
        self._x_range = (low, high)
        if self.plot is not None and not self._is_chosen:
            self.plot.setXRange(low, high, padding=0)

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

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom by the keyboard."""
        if self._zoom is None or not self._zoom.press(event):
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the canvas."""
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        """Draw only while visible."""
        super().showEvent(event)
        self._frames.start()

    def hideEvent(self, event: QHideEvent) -> None:
        """Draw nothing while hidden."""
        super().hideEvent(event)
        self._frames.stop()

    def lay_out(self) -> PlotCanvas:
        """Return the canvas at its size, also if it has not been painted: a picture is wanted."""
        self._is_building = True
        self._build()
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
        plot.hovered.connect(self._on_hovered)

    def _fit(self) -> None:
        if self.plot is not None:
            self.plot.setGeometry(self.rect())
        if self._is_chosen and self._zoom is not None:
            self._zoom.put_button()

    def _on_hovered(self, event: QMouseEvent | None) -> None:
        imported(f"{_CANVAS}:read_at_mouse")(self.plot, self._curves.values(), event)

    def _zoomed(self) -> None:
        """Draw the current view; show everything again after the zoom ended."""
        if not self._is_chosen and self.plot is not None:
            self.plot.plotItem.vb.enableAutoRange()
            self.plot.plotItem.vb.updateAutoRange()
            self._keep_ranges()
        self.refresh()

    def _keep_ranges(self) -> None:
        """Use the ranges that do not follow the data."""
        if self.plot is not None and self._y_range is not None:
            self.plot.setYRange(*self._y_range, padding=0.02)
        if self.plot is not None and self._x_range is not None:
            self.plot.setXRange(*self._x_range, padding=0)

    def _add_item(self, curve: Curve) -> None:
        assert self.plot is not None
        # pyqtgraph writes labels as HTML, and a device's name comes from outside.
        label = html.escape(curve.label, quote=False)
        curve.show_in(self.plot.plot([], [], name=label or None, **curve.options(self._theme)))
        self.plot.place_legend()

    def _recolour(self) -> None:
        """Use the theme's colors; pyqtgraph's items keep theirs, so they are created again."""
        if self.plot is None:
            return
        self.plot.recolour(self._theme)
        for curve in self._curves.values():
            if curve.item is not None:
                self.plot.removeItem(curve.item)
            self._add_item(curve)
        for kind, marks in self.marks.items():
            self.plot.show_marks(kind, marks, self._theme)
        self.refresh()


# Curves differ in color, dashes and label.
_ROLES = ("gpu0", "cpu", "gpu1", "allocated")


class LossPlot(LivePlot):
    """A plot of losses by step; `show_losses` replaces all of them."""

    def __init__(self, theme: Theme, *, name: str) -> None:
        style = AxesStyle("step", "loss", x_unit="count", has_legend=True)
        super().__init__(theme, style, name=name)
        self.setMinimumHeight(170)

    def show_losses(self, losses: Mapping[str, Sequence[float]]) -> None:
        """Show one curve for each label, and describe them in words."""
        self.show_curves(
            {
                label: Curve(
                    label, _ROLES[place % len(_ROLES)], partial(_steps, tuple(values)),
                    dashed=place % 2 == 1,
                )
                for place, (label, values) in enumerate(losses.items())
            }
        )  # fmt: skip
        self.setAccessibleDescription(
            " ".join(
                f"{label}: {values[0]:.3g} to {values[-1]:.3g} in {counted(len(values), 'step')}."
                for label, values in losses.items()
                if values
            )
        )


def _steps(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    return range(len(values)), values
