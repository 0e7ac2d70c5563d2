"""The live sensors of a device: small plots with a shared crosshair, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.devices.sensor_kinds import CPU_SENSORS
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.eliding import ElidedText, SpareText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button, letters, section, show_whole_rows, table
from gpu_studio.ui.plots.crosshair import Crosshair
from gpu_studio.ui.plots.live_plot import Curve, LivePlot
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtGui import QKeyEvent, QResizeEvent
    from PySide6.QtWidgets import QTableView

    from gpu_studio.core.devices.run_effect import RunMark
    from gpu_studio.core.devices.sensor_history import SensorSpan
    from gpu_studio.core.devices.sensor_kinds import SensorKind
    from gpu_studio.ui.theme import Theme

_HEAD = ("Sensor", "Now", "Change", "Lowest", "Mean", "Highest")
_WORDY_COLUMNS = 2  # fitted to their text; the numbers share the remaining width
_CARD_LETTERS = 29
_WIDE_LETTERS = 112
_MOST_COLUMNS = 3
_SPANS = (("Last minute", 60.0), ("Last 5 minutes", 300.0), ("Last 15 minutes", 900.0),
          ("Last hour", 3600.0))  # fmt: skip
_MOST_LINES = 60  # for runs: more cannot be told apart, and each is an item in every plot
_MARKED = "Dotted lines: start and end of a run."
_KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_HINT = "Point at a plot or press the arrow keys to read all sensors at that time."

_PLOT_HEIGHT = 104
# Before the first reading, so that an empty axis has the right scale.
_EMPTY_SCALES = {
    "%": (0.0, 100.0), "bytes": (0.0, float(1 << 30)), "°C": (20.0, 60.0), "W": (0.0, 100.0),
    "MHz": (0.0, 2000.0), "B/s": (0.0, 1e9),
}  # fmt: skip
_REFUSED = "Not reported by this device."


class SensorGrid(QWidget):
    """The sensors of one device, with a button to switch between plots and table.

    Starts with the plots that every device has; creates the others and the table on demand.

    Signals:
        span_chosen(): the user chose another time span.
    """

    span_chosen = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.sensors")
        self.setAccessibleName("Live sensors")
        self._theme = theme
        self._plots = _Plots(self)
        self._plots.stepped.connect(self._step)
        self._crosshair = Crosshair(theme, self)
        self._crosshair.moved.connect(self._read_at)
        self._cards: dict[str, SensorCard] = {}
        self._shown: tuple[SensorKind, ...] = ()
        self._spans: Sequence[SensorSpan] = ()
        self._columns = 0
        self._has_marks = self._shows_table = False
        self._rows = TextRows(_HEAD, range(1, len(_HEAD)), self)
        self._choice = QComboBox()
        self._choice.setObjectName("devices.sensors.span")
        self._choice.setAccessibleName("Time span")
        for title, span_s in _SPANS:
            self._choice.addItem(title, span_s)
        self._choice.activated.connect(self.span_chosen)
        self._toggle = button("Show as table", self._exchange, name="devices.sensors.toggle")
        self._reading = SpareText("", "muted", name="devices.sensors.cursor")
        self._grid = QGridLayout(self._plots)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(GAP)
        self._table: QTableView | None = None
        self._table_card: Card | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self.head = FlowRow(
            section("Sensors"), self._choice, self._reading, self._toggle, fills=self._reading
        )
        self._column.addWidget(self.head)
        self._column.addWidget(self._plots)
        self._show_kinds(CPU_SENSORS)

    @property
    def span_s(self) -> float:
        """The shown time span in seconds."""
        span_s: float = self._choice.currentData()
        return span_s

    def show_spans(
        self, spans: Sequence[SensorSpan], role: str, marks: Sequence[RunMark] = ()
    ) -> None:
        """Show the sensors of a device in its color, and the runs on it."""
        self._spans = spans
        if spans:
            self._show_kinds(tuple(span.kind for span in spans))
        newest_s = max((float(s.times_s[-1]) for s in spans if s.has_values), default=0.0)
        ends_s = (newest_s - self.span_s, newest_s)
        for span in spans:
            self._cards[span.kind.key].show_span(span, role, ends_s, marks)
        self._rows.set_rows([span.row for span in spans])
        self._fit_table()
        self._crosshair.attach()
        x = self._crosshair.x
        if x is not None and x < ends_s[0]:
            self._crosshair.move_to(None)
        self._has_marks = bool(marks)
        self._read_at(self._crosshair.x)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put as many plots side by side as fit."""
        super().resizeEvent(event)
        columns = self._fitting_columns()
        if columns != self._columns:
            self._arrange(columns)

    def _read_at(self, time_s: float | None) -> None:
        """Show every sensor's value at one time, or the newest."""
        for kind in self._shown:
            self._cards[kind.key].show_value(time_s)
        newest_s = self._newest_s
        if time_s is None or newest_s is None:
            self._reading.setText(_MARKED if self._has_marks and not self._shows_table else "")
            self._plots.setAccessibleDescription(_HINT)
            return
        said = f"All values: {_ago(newest_s - time_s)}"
        self._reading.setText(said)
        values = ", ".join(f"{span.kind.title} {span.at(time_s)}" for span in self._spans)
        self._plots.setAccessibleDescription(f"{_ago(newest_s - time_s)}: {values}.")

    def _step(self, steps: int) -> None:
        """Move the crosshair to the next reading, or remove it."""
        times_s = next((span.times_s for span in self._spans if span.has_values), None)
        if not steps or times_s is None:
            self._crosshair.move_to(None)
            return
        x = self._crosshair.x
        index = len(times_s) if x is None else int(abs(times_s - x).argmin())
        index = min(max(index + steps, 0), len(times_s) - 1)
        self._crosshair.move_to(float(times_s[index]))

    @property
    def _newest_s(self) -> float | None:
        return next((float(s.times_s[-1]) for s in self._spans if s.has_values), None)

    def _show_kinds(self, kinds: tuple[SensorKind, ...]) -> None:
        if kinds == self._shown:
            return
        self._shown = kinds
        for kind in kinds:
            if kind.key not in self._cards:
                card = SensorCard(self._theme, kind, self.span_s, self._plots)
                self._cards[kind.key] = card
                self._crosshair.add(card.plot)
        self._arrange(self._fitting_columns())

    def _fitting_columns(self) -> int:
        fitting = (self.width() + GAP) // (letters(self, _CARD_LETTERS) + GAP)
        if fitting > 2 and len(self._shown) > 3 and self.width() < letters(self, _WIDE_LETTERS):
            return 2  # six plots look better in three wide rows than in two narrow ones
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
        if self._table_card is None:
            self._table_card = Card()
            self._table = table(self._rows, name="devices.sensors.table", accessible_name="Sensors")
            header = self._table.horizontalHeader()
            header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
            for column in range(_WORDY_COLUMNS):
                header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
            self._table_card.column.addWidget(self._table)
            self._column.addWidget(self._table_card)
            self._table_card.hide()
        self._shows_table = not self._shows_table
        self._plots.setVisible(not self._shows_table)
        self._table_card.setVisible(self._shows_table)
        self._fit_table()
        if self._crosshair.x is not None:  # a table has no crosshair
            self._crosshair.move_to(None)
        self._read_at(None)
        self._toggle.setText("Show as plots" if self._shows_table else "Show as table")
        self._toggle.setAccessibleName(self._toggle.text())

    def _fit_table(self) -> None:
        """Give the table the height of its rows: the page scrolls, not the table."""
        if self._table is not None:
            show_whole_rows(self._table)


class _Plots(QWidget):
    """Holds the plots; the arrow keys move the crosshair, Escape removes it.

    Signals:
        stepped(int): the number of readings to move by; 0 removes the crosshair.
    """

    stepped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.sensors.plots")
        self.setAccessibleName("Sensor plots")
        self.setAccessibleDescription(_HINT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the crosshair."""
        key = Qt.Key(event.key())
        if key in _KEYS:
            faster = 10 if event.modifiers() & Qt.KeyboardModifier.ControlModifier else 1
            self.stepped.emit(_KEYS[key] * faster)
        elif key == Qt.Key.Key_Escape:
            self.stepped.emit(0)
        else:
            super().keyPressEvent(event)


def _ago(seconds: float) -> str:
    seconds = round(seconds)
    if seconds <= 0:
        return "Now"
    return f"{seconds}\u202fs ago" if seconds < 120 else f"{seconds / 60:.0f}\u202fmin ago"


class SensorCard(Card):
    """A title, the value (newest or at the crosshair), and a plot."""

    def __init__(
        self, theme: Theme, kind: SensorKind, span_s: float, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, name=f"devices.sensor.{kind.key}")
        self._span: SensorSpan | None = None
        self._role = ""
        # A filled area means "this share of the total"; a temperature has no total.
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
        self.column.setContentsMargins(12, 8, 8, 4)
        self.column.setSpacing(2)
        self.column.addLayout(head)
        head.addWidget(self._title)
        head.addWidget(self._change, 1)
        head.addWidget(self._value)
        self.column.addWidget(self.plot)
        self.column.addWidget(self._notice)
        self.column.addStretch(1)
        self._notice.hide()
        # The curve is created with the plot, not with the first reading: the engine starts at that
        # time as well.
        self._take_role(device_role(None))

    def show_span(
        self, span: SensorSpan, role: str, ends_s: tuple[float, float], marks: Sequence[RunMark]
    ) -> None:
        """Show the latest readings in a device's color.

        Args:
            span: the sensor's readings.
            role: the color role of the device.
            ends_s: the ends of the time axis, by the clock of the sensors.
            marks: the runs in that time.
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
        self.plot.set_markers([(t, "", "accent") for t in _apart(times_s, ends_s)])
        self.plot.refresh()

    def _take_role(self, role: str) -> None:
        if role != self._role:
            self._role = role
            self.plot.set_curve(
                "device",
                Curve("", role, self._points, filled=self._fills, smooth=True, gaps=True),
            )

    def show_value(self, time_s: float | None) -> None:
        """Show the value at a time, or the newest value."""
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


def _apart(times_s: Iterable[float | None], ends_s: tuple[float, float]) -> list[float]:
    """Return the times between two ends, and only the first of those that lie close together."""
    first_s, last_s = ends_s
    step_s = max(last_s - first_s, 1e-9) / _MOST_LINES
    shown: dict[int, float] = {}
    for time_s in times_s:
        if time_s is not None and first_s <= time_s <= last_s:
            shown.setdefault(int((time_s - first_s) / step_s), time_s)
    return list(shown.values())
