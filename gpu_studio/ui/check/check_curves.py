"""Temperatures, clock and power of a check on one time axis, with the card's limits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget

from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.plots.live_plot import Curve, Level, LivePlot, Marker

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.check.check_chart import ChartLane, CheckChart, Unit
    from gpu_studio.ui.theme import Theme

_LINES: dict[Unit, int] = {"°C": 9, "MHz": 6, "W": 6}
_ROLES = {"hotspot_c": "failure", "memory_temperature_c": "muted"}
_MARK_ROWS = 2


class LanePlot(LivePlot):
    """The curves of one unit.

    Attributes:
        lane: what is drawn; None before the first.
    """

    def __init__(self, theme: Theme, unit: Unit) -> None:
        super().__init__(
            theme, name=f"check.curves.{unit}", x_unit="s", y_unit=unit,
            legend=3 if unit == "°C" else 0, zoomable=True,
        )  # fmt: skip
        self.lane: ChartLane | None = None
        self._chart: CheckChart | None = None
        self.setAccessibleName(f"{unit} over the time of the check")
        self.setFixedHeight(_LINES[unit] * self.fontMetrics().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Name the marks that there is room for."""
        super().resizeEvent(event)
        self._show_marks()

    def show_lane(self, lane: ChartLane, chart: CheckChart) -> None:
        """Show a part of a chart; the first part has the names of the marks."""
        self.lane, self._chart = lane, chart
        names = {curve.name for curve in lane.curves}
        for gone in set(self.curve_keys) - names:
            self.remove_curve(gone)
        for curve in lane.curves:
            if curve.name not in self.curve_keys:
                role, source = _ROLES.get(curve.name, "gpu0"), partial(self._points, curve.name)
                self.set_curve(curve.name, Curve(curve.label, role, source, smooth=True, gaps=True))
        self.set_x_range(0.0, chart.end_s)
        self.set_y_range(lane.low, lane.high)
        self.set_levels([Level(value, "", "muted") for value in lane.limits])
        self._show_marks()
        self.describe(lane.words)
        self.refresh()

    def _show_marks(self) -> None:
        """Show where stages began, each with its name unless that would cover another one."""
        if self._chart is None:
            return
        is_first = self.lane is self._chart.lanes[0]
        ends = [0.0] * _MARK_ROWS  # of the last name in each row, in pixels
        markers = []
        for at_s, words in self._chart.marks:
            place = at_s / self._chart.end_s
            width = self.fontMetrics().horizontalAdvance(words) + GAP
            # In the right half, pyqtgraph puts the name of a line at its left.
            left = self.width() * place - width * (place > 0.5)
            row = next((row for row, end in enumerate(ends) if end <= left), None)
            if row is None or not is_first:
                markers.append(Marker(at_s, "", "muted"))
                continue
            ends[row] = left + width
            markers.append(Marker(at_s, words, "muted", row=row))
        self.set_markers(markers)

    def _points(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        curves = self.lane.curves if self.lane is not None else ()
        return next(((one.xs, one.ys) for one in curves if one.name == name), ((), ()))


class CheckCurves(Card):
    """The curves of a check; hidden for a device that reports nothing."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.sensors")
        self._plots = {unit: LanePlot(theme, unit) for unit in _LINES}
        self._words = {
            unit: Text("", "muted", name=f"check.words.{unit}", wraps=True) for unit in _LINES
        }
        for unit, plot in self._plots.items():
            self.column.addWidget(self._words[unit])
            self.column.addWidget(plot)

    def show_chart(self, chart: CheckChart | None) -> None:
        """Show a chart; None, and one without curves, for nothing to show."""
        lanes = {lane.unit: lane for lane in chart.lanes} if chart is not None else {}
        self.setVisible(bool(lanes))
        if chart is None:
            return
        for unit, plot in self._plots.items():
            for part in (plot, self._words[unit]):
                part.setVisible(unit in lanes)
            if unit in lanes:
                self._words[unit].setText(lanes[unit].words)
                plot.show_lane(lanes[unit], chart)


def lane_picture(
    chart: CheckChart, lane: ChartLane, theme: Theme, width: int, scale: int
) -> QImage:
    """Return the curves of one unit as a picture, ``width`` units wide."""
    plot = LanePlot(theme, lane.unit)
    plot.resize(width, plot.height())
    plot.show_lane(lane, chart)
    plot.lay_out()
    image = QImage(plot.size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(theme.colour("card"))
    painter = QPainter(image)
    plot.render(painter, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
    painter.end()
    plot.deleteLater()
    return image
