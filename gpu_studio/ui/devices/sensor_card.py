"""One sensor: its value in words, and the curve of its last while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from gpu_studio.ui.elided_text import ElidedText, SpareText
from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.plots.live_plot import Curve, LivePlot
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from gpu_studio.core.pc.run_effect import RunMark
    from gpu_studio.core.pc.sensor_history import SensorSpan
    from gpu_studio.core.pc.sensor_kinds import SensorKind
    from gpu_studio.ui.theme import Theme

_PLOT_HEIGHT = 104
# Until the first reading, so that an empty axis looks like itself.
_EMPTY_SCALES = {
    "%": (0.0, 100.0), "bytes": (0.0, float(1 << 30)), "°C": (20.0, 60.0), "W": (0.0, 100.0),
    "MHz": (0.0, 2000.0), "B/s": (0.0, 1e9),
}  # fmt: skip
_REFUSED = "This device does not report it."


class SensorCard(Card):
    """A title, the newest value or the one under the crosshair, and a plot."""

    def __init__(
        self, theme: Theme, kind: SensorKind, span_s: float, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, name=f"devices.sensor.{kind.key}")
        self._span: SensorSpan | None = None
        self._role = ""
        # An area says "so much of all that there is"; a temperature has no such whole.
        self._fills = kind.unit != "°C"
        self._title = Text(kind.title, "muted")
        self._change = SpareText("", "muted", name=f"{self.objectName()}.change")
        self._value = ElidedText("", "value", name=f"{self.objectName()}.value")
        for text in (self._change, self._value):
            text.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.plot = LivePlot(
            theme, name=f"{self.objectName()}.plot", x_unit="ago", y_unit=kind.unit, legend=0
        )
        self.plot.setFixedHeight(_PLOT_HEIGHT)
        self.plot.set_x_range(-span_s, 0.0)
        self.plot.set_y_range(*_EMPTY_SCALES[kind.unit])
        self._notice = Text("", "muted", name=f"{self.objectName()}.notice", wraps=True)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        head.addWidget(self._title)
        head.addWidget(self._change, 1)
        head.addWidget(self._value)
        self.column.setContentsMargins(12, 8, 8, 4)
        self.column.setSpacing(2)
        self.column.addLayout(head)
        self.column.addWidget(self.plot)
        self.column.addWidget(self._notice)
        self.column.addStretch(1)
        self._notice.hide()
        # A curve from the start: the plot makes it with itself, not with the first reading, when
        # the engine starts as well.
        self._take_role(device_role(None))

    def show_span(
        self, span: SensorSpan, role: str, ends_s: tuple[float, float], marks: Sequence[RunMark]
    ) -> None:
        """Show the last while in a device's colour.

        Args:
            span: what the sensor said.
            role: the colour role of the device.
            ends_s: the ends of the time axis, by the clock of the sensors.
            marks: the runs of that time.
        """
        self._span = span
        self.plot.setVisible(not span.is_refused)
        self._notice.setText(_REFUSED if span.is_refused else "")
        self._notice.setVisible(span.is_refused)
        self.setAccessibleName(span.kind.title)
        self.setAccessibleDescription(span.sentence)
        self.setToolTip(span.sentence)
        self.plot.describe(span.sentence)
        self._take_role(role)
        if span.has_values:
            self.plot.set_x_range(*ends_s)
            self.plot.set_y_range(*span.scale)
        times_s = [time_s for mark in marks for time_s in (mark.began_s, mark.ended_s)]
        self.plot.set_markers(
            [(t, "", "accent") for t in times_s if t is not None and ends_s[0] <= t <= ends_s[1]]
        )
        self.plot.refresh()

    def _take_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self.plot.set_curve(
                "device",
                Curve("", role, self._points, filled=self._fills, smooth=True, gaps=True),
            )

    def show_value(self, time_s: float | None) -> None:
        """Show the value at a time, or the newest one."""
        span = self._span
        if span is None:
            return
        if time_s is not None:
            self._value.setText(span.at(time_s))
            self._change.setText("")
        else:
            self._value.setText("n/a" if span.is_refused else span.latest)
            self._change.setText(span.change)

    def _points(self) -> tuple[ArrayLike, ArrayLike]:
        return (self._span.times_s, self._span.values) if self._span else ((), ())
