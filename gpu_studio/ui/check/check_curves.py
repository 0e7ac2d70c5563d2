"""Stages, temperatures, clock and power of a check on one time axis, with the device's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu_studio.core.check.check_chart import (
    CheckChart,
    band_at,
    chart_sentence,
    reading_at,
)
from gpu_studio.core.check.check_drawing import PlotPlace, chart_height, draw_chart
from gpu_studio.core.units import clock_text
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.check.painter_canvas import PainterCanvas
from gpu_studio.ui.parts import Card

if TYPE_CHECKING:
    from PySide6.QtGui import QMouseEvent, QPaintEvent

    from gpu_studio.core.check.readings import RecordedReading
    from gpu_studio.ui.theme import Theme

_EMPTY = CheckChart(1.0, (), ())
_WILL_BE = "A check draws temperature, hot spot, clock and power here."


class CheckCurves(Card):
    """The chart of a check; hidden for a device that reports nothing."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.sensors")
        self.view = ChartView(theme)
        self.column.addWidget(self.view)

    def set_low(self, is_low: bool) -> None:
        """Draw lower lanes in a low window."""
        self.view.set_low(is_low)

    def show_chart(self, chart: CheckChart | None) -> None:
        """Show a chart; None for nothing to show."""
        self.setVisible(chart is not None)
        if chart is not None:
            self.view.show_chart(chart)


class ChartView(QWidget):
    """The chart itself; the mouse shows the values at a time.

    Attributes:
        chart: what is drawn.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("check.curves")
        self.setAccessibleName("Temperature, clock and power over the time of the check")
        self.setMouseTracking(True)
        self.chart = _EMPTY
        self._theme = theme
        self._is_low = False
        self._place: PlotPlace | None = None
        self._pointed_s: float | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.MinimumExpanding)
        theme.changed.connect(self.update)

    def set_low(self, is_low: bool) -> None:
        """Draw lower lanes in a low window."""
        if is_low != self._is_low:
            self._is_low = is_low
            self.updateGeometry()

    def show_chart(self, chart: CheckChart) -> None:
        """Show another chart."""
        if chart != self.chart:
            if len(chart.lanes) != len(self.chart.lanes):
                self.updateGeometry()
            self.chart = chart
            self.setAccessibleDescription(chart_sentence(chart))
            self.update()

    def sizeHint(self) -> QSize:
        """Return a good size for the number of lanes."""
        em = self._em
        return QSize(round(30 * em), round(chart_height(self.chart, em, is_low=self._is_low)))

    def minimumSizeHint(self) -> QSize:
        """Return the least size in which everything can be read."""
        return QSize(round(20 * self._em), self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the chart, and a line where the mouse points."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        canvas = PainterCanvas(painter, self.font(), self._color)
        size = QRectF(self.rect())
        self._place = draw_chart(
            self.chart, canvas, size.width(), size.height(), self._em, empty=_WILL_BE
        )
        if self._pointed_s is not None and self.chart.lanes:
            x = self._place.x(self._pointed_s, self.chart.end_s)
            canvas.line(x, self._place.top, x, self._place.bottom, "muted")

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move the line to the mouse."""
        self._point(self._seconds_at(event.position().x()))

    def leaveEvent(self, event: QEvent) -> None:
        """Remove the line."""
        super().leaveEvent(event)
        self._point(None)

    def event(self, event: QEvent) -> bool:
        """Show the values at a time."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            tip = self.tip_at(event.pos().x())
            QToolTip.showText(event.globalPos(), plain_tip(tip) if tip else "", self)
            return True
        return super().event(event)

    def tip_at(self, x: float) -> str:
        """Return the stage and the values at a place; empty beside the curves."""
        at_s = self._seconds_at(x)
        if at_s is None:
            return ""
        band, reading = band_at(self.chart, at_s), reading_at(self.chart, at_s)
        head = " · ".join(filter(None, (clock_text(at_s), band.title if band else "")))
        return "\n".join([head, *(_values(reading) if reading is not None else ())])

    def _seconds_at(self, x: float) -> float | None:
        place = self._place
        if place is None or not place.left <= x <= place.right:
            return None
        return place.seconds(x, self.chart.end_s)

    def _point(self, at_s: float | None) -> None:
        if at_s != self._pointed_s:
            self._pointed_s = at_s
            self.update()

    @property
    def _em(self) -> float:
        return QFontMetricsF(self.font()).height() / 1.2

    def _color(self, role: str) -> QColor:
        return QColor(self._theme.colour(role))


def _values(reading: RecordedReading) -> list[str]:
    parts = (
        ("Chip", reading.temperature_c, "°C"),
        ("Hot spot", reading.hotspot_c, "°C"),
        ("Memory", reading.memory_temperature_c, "°C"),
        ("Clock", reading.sm_clock_mhz, "MHz"),
        ("Power", reading.power_w, "W"),
    )
    return [f"{name} {value:.0f}\u202f{unit}" for name, value, unit in parts if value is not None]
