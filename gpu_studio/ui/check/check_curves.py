"""Temperatures, clock and power of a check on one time axis, with the card's limits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget

from gpu_studio.core.check.check_chart import CheckChart, chart_sentence, mark_text
from gpu_studio.ui.parts import Card, Text
from gpu_studio.ui.plots.live_plot import Curve, Level, LivePlot, Marker

if TYPE_CHECKING:
    from gpu_studio.core.check.check_chart import ChartLane, Unit
    from gpu_studio.ui.theme import Theme

_LINES: dict[Unit, int] = {"°C": 9, "MHz": 6, "W": 6}
_LOW_LINES: dict[Unit, int] = {"°C": 6, "MHz": 4, "W": 4}
_ROLES = {"hotspot_c": "failure", "memory_temperature_c": "muted"}


class LanePlot(LivePlot):
    """The curves of one unit.

    Attributes:
        lane: what is drawn; None before the first.
    """

    def __init__(self, theme: Theme, unit: Unit) -> None:
        super().__init__(
            theme,
            name=f"check.curves.{unit}",
            x_unit="s",
            y_unit=unit,
            legend=3 if unit == "°C" else 0,
            zoomable=True,
        )
        self.lane: ChartLane | None = None
        self.setAccessibleName(f"{unit} over the time of the check")

    def show_lane(self, lane: ChartLane, chart: CheckChart, *, has_words: bool) -> None:
        """Show a part of a chart; ``has_words``: the marks have their names."""
        self.setAccessibleName(f"{lane.title} over the time of the check")
        self.lane = lane
        names = {curve.name for curve in lane.curves}
        for gone in set(self.curve_keys) - names:
            self.remove_curve(gone)
        for curve in lane.curves:
            if curve.name not in self.curve_keys:
                role, label = _ROLES.get(curve.name, "gpu0"), curve.label
                source = partial(self._points, curve.name)
                self.set_curve(curve.name, Curve(label, role, source, smooth=True, gaps=True))
        self.set_x_range(0.0, chart.end_s)
        self.set_y_range(lane.low, lane.high)
        self.set_levels([Level(value, "", "muted") for value in lane.limits])
        rows = enumerate(chart.marks)
        marks = [Marker(s, words * has_words, "muted", row=row % 2) for row, (s, words) in rows]
        slept = "slept" * has_words
        marks += [Marker(one.after_s, slept, "amber", dashed=True) for one in chart.pauses]
        self.set_markers(marks)
        self.describe(lane.words)
        self.refresh()

    def _points(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        curves = self.lane.curves if self.lane is not None else ()
        return next(((one.xs, one.ys) for one in curves if one.name == name), ((), ()))


class CheckCurves(Card):
    """The curves of a check; hidden for a device that reports nothing."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.sensors")
        self.plots: dict[Unit, LanePlot] = {unit: LanePlot(theme, unit) for unit in _LINES}
        self._words = {
            unit: Text("", "muted", name=f"check.words.{unit}", wraps=True) for unit in _LINES
        }
        self._is_low = False
        self._pauses = Text("", "muted", name="check.pauses", wraps=True)
        for unit, plot in self.plots.items():
            self.column.addWidget(self._words[unit])
            self.column.addWidget(plot)
        self.column.addWidget(self._pauses)
        self.set_low(False)

    def set_low(self, is_low: bool) -> None:
        """Draw lower plots in a low window."""
        self._is_low = is_low
        line = self.fontMetrics().height()
        for unit, lines in (_LOW_LINES if is_low else _LINES).items():
            self.plots[unit].setFixedHeight(lines * line)

    def show_chart(self, chart: CheckChart | None) -> None:
        """Show a chart; None, and one without curves, for nothing to show."""
        lanes = {lane.unit: lane for lane in chart.lanes} if chart is not None else {}
        self.setVisible(bool(lanes))
        for unit, plot in self.plots.items():
            plot.setVisible(unit in lanes)
            self._words[unit].setVisible(unit in lanes)
        if chart is None or not lanes:
            return
        named = next(iter(lanes)) if not self._is_low else ""
        for unit, lane in lanes.items():
            self._words[unit].setText(lane.words)
            self.plots[unit].show_lane(lane, chart, has_words=unit == named)
        self._pauses.setText("\n".join(f"{mark_text(pause)}." for pause in chart.pauses))
        self._pauses.setVisible(bool(chart.pauses))
        self.setAccessibleDescription(chart_sentence(chart))


def lane_picture(
    chart: CheckChart, lane: ChartLane, theme: Theme, width: int, scale: int
) -> QImage:
    """Return the curves of one unit as a picture, ``width`` units wide."""
    plot = LanePlot(theme, lane.unit)
    plot.resize(width, (_LINES[lane.unit] + 1) * plot.fontMetrics().height())
    plot.show_lane(lane, chart, has_words=lane is chart.lanes[0])
    plot.lay_out()
    image = QImage(plot.size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(theme.colour("card"))
    painter = QPainter(image)
    plot.render(painter, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
    painter.end()
    plot.deleteLater()
    return image
