"""The live sensors of a device: a small plot each, or all of them as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.sensor_history import CPU_SENSORS, SPAN_S
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.elided_text import ElidedText, SpareText
from gpu_studio.ui.live_plot import Curve, LivePlot
from gpu_studio.ui.parts import GAP, Card, Text, button, section, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.sensor_history import SensorKind, SensorMinute
    from gpu_studio.ui.theme import Theme

_HEAD = ("Sensor", "Now", "Change", "Lowest", "Mean", "Highest")
_CARD_WIDTH = 212
_WIDE = 820
_MOST_COLUMNS = 3
_PLOT_HEIGHT = 104
# Until the first reading, so that an empty axis looks like itself.
_EMPTY_SCALES = {
    "%": (0.0, 100.0), "bytes": (0.0, float(1 << 30)), "°C": (20.0, 60.0), "W": (0.0, 100.0),
    "MHz": (0.0, 2000.0),
}  # fmt: skip
_REFUSED = "This device does not report it."
_WAITING = "Reading …"


class SensorCard(Card):
    """One sensor: its value in words, and the curve of its last minute."""

    def __init__(self, theme: Theme, kind: SensorKind, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=f"devices.sensor.{kind.key}")
        self._minute: SensorMinute | None = None
        self._role = ""
        # An area says "so much of all that there is"; a temperature has no such whole.
        self._fills = kind.unit != "°C"
        self._title = Text(kind.title, "muted")
        self._change = SpareText("", "muted", name=f"{self.objectName()}.change")
        self._value = ElidedText("", "value", name=f"{self.objectName()}.value")
        for text in (self._change, self._value):
            text.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._plot = LivePlot(
            theme, name=f"{self.objectName()}.plot", x_unit="ago", y_unit=kind.unit, legend=0
        )
        self._plot.setFixedHeight(_PLOT_HEIGHT)
        self._plot.set_x_range(-SPAN_S, 0.0)
        self._plot.set_y_range(*_EMPTY_SCALES[kind.unit])
        self._notice = Text(_WAITING, "muted", name=f"{self.objectName()}.notice", wraps=True)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        head.addWidget(self._title)
        head.addWidget(self._change, 1)
        head.addWidget(self._value)
        self.column.setContentsMargins(12, 8, 8, 4)
        self.column.setSpacing(2)
        self.column.addLayout(head)
        self.column.addWidget(self._plot)
        self.column.addWidget(self._notice)
        self.column.addStretch(1)
        self._notice.hide()

    def show_minute(self, minute: SensorMinute, role: str) -> None:
        """Show this minute in a device's colour."""
        self._minute = minute
        self._value.setText("n/a" if minute.is_refused else minute.latest)
        self._change.setText(minute.change)
        self._plot.setVisible(not minute.is_refused)
        self._notice.setText(_REFUSED if minute.is_refused else "")
        self._notice.setVisible(minute.is_refused)
        self.setAccessibleName(minute.kind.title)
        self.setAccessibleDescription(minute.sentence)
        self.setToolTip(minute.sentence)
        self._plot.describe(minute.sentence)
        if role != self._role:
            self._role = role
            self._plot.set_curve(
                "device", Curve("", role, self._points, filled=self._fills, smooth=True)
            )
        if minute.times_s:
            self._plot.set_x_range(minute.times_s[-1] - SPAN_S, minute.times_s[-1])
            self._plot.set_y_range(*minute.scale)
        self._plot.refresh()

    def _points(self) -> tuple[Sequence[float], Sequence[float]]:
        return (self._minute.times_s, self._minute.values) if self._minute else ((), ())


class SensorGrid(QWidget):
    """The sensors of one device, with a button that exchanges plots and table.

    It starts with the plots that every device has; the others, and the table, come when needed.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.sensors")
        self.setAccessibleName("Live sensors of the last minute")
        self._theme = theme
        self._plots = QWidget(self)
        self._cards: dict[str, SensorCard] = {}
        self._shown: tuple[SensorKind, ...] = ()
        self._columns = 0
        self._rows = TextRows(_HEAD, range(1, len(_HEAD)), self)
        self._toggle = button("Show as table", self._exchange, name="devices.sensors.toggle")
        self._grid = QGridLayout(self._plots)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self._pages = QStackedLayout()
        self._pages.addWidget(self._plots)
        head = QHBoxLayout()
        head.addWidget(section("Last minute"))
        head.addStretch(1)
        head.addWidget(self._toggle)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        column.addLayout(self._pages)
        self._show_kinds(CPU_SENSORS)

    def show_minutes(self, minutes: Sequence[SensorMinute], role: str) -> None:
        """Show the sensors of a device in its colour."""
        if minutes:
            self._show_kinds(tuple(minute.kind for minute in minutes))
        for minute in minutes:
            self._cards[minute.kind.key].show_minute(minute, role)
        self._rows.set_rows([minute.row for minute in minutes])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put as many plots side by side as there is room for."""
        super().resizeEvent(event)
        columns = self._fitting_columns()
        if columns != self._columns:
            self._arrange(columns)

    def _show_kinds(self, kinds: tuple[SensorKind, ...]) -> None:
        if kinds == self._shown:
            return
        self._shown = kinds
        for kind in kinds:
            if kind.key not in self._cards:
                self._cards[kind.key] = SensorCard(self._theme, kind, self._plots)
        self._arrange(self._fitting_columns())

    def _fitting_columns(self) -> int:
        fitting = (self.width() + GAP) // (_CARD_WIDTH + GAP)
        if fitting > 2 and len(self._shown) > 3 and self.width() < _WIDE:
            return 2  # six look better in three wide rows than in two narrow ones
        return max(1, min(_MOST_COLUMNS, fitting))

    def _arrange(self, columns: int) -> None:
        self._columns = columns
        for card in self._cards.values():
            self._grid.removeWidget(card)
            card.hide()
        for place, kind in enumerate(self._shown):
            card = self._cards[kind.key]
            self._grid.addWidget(card, place // columns, place % columns)
            card.show()
        for column in range(_MOST_COLUMNS):
            self._grid.setColumnStretch(column, int(column < columns))

    def _exchange(self) -> None:
        if self._pages.count() == 1:
            card = Card()
            view = table(self._rows, name="devices.sensors.table", accessible_name="Sensors")
            view.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
            card.column.addWidget(view)
            self._pages.addWidget(card)
        shows_plots = self._pages.currentIndex() == 0
        self._pages.setCurrentIndex(int(shows_plots))
        self._toggle.setText("Show as plots" if shows_plots else "Show as table")
        self._toggle.setAccessibleName(self._toggle.text())
