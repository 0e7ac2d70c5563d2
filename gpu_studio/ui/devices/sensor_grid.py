"""The live sensors: a row of tiles, all plots with a shared crosshair, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.devices.sensor_kinds import CPU_SENSORS
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.eliding import ComboBox, ElidedText, SpareText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button, letters, show_whole_rows, table
from gpu_studio.ui.plots.crosshair import Crosshair
from gpu_studio.ui.plots.live_plot import Curve, LivePlot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtGui import QKeyEvent, QResizeEvent
    from PySide6.QtWidgets import QPushButton, QTableView

    from gpu_studio.core.devices.run_effect import RunMark
    from gpu_studio.core.devices.sensor_history import SensorSpan
    from gpu_studio.core.devices.sensor_kinds import SensorKind
    from gpu_studio.ui.theme import Theme

_HEAD = ("Sensor", "Now", "Change", "Lowest", "Mean", "Highest")
_WORDY_COLUMNS = 2  # fitted to their text; the numbers share the remaining width
_TILE_LETTERS, _CARD_LETTERS = 20, 29
_WIDE_LETTERS = 112
_FEWEST_TILES, _MOST_TILES = 2, 5
_OWN_TILES = 3  # of the device in a row of tiles; the others are about the PC
_MOST_COLUMNS = 3
_SPANS = (("Last minute", 60.0), ("Last 5 minutes", 300.0), ("Last 15 minutes", 900.0),
          ("Last hour", 3600.0))  # fmt: skip
_MOST_LINES = 60  # for runs: more cannot be told apart, and each is an item in every plot
_BESIDE = "pc_"  # the keys of the CPU's sensors in a row with those of a card
_MARKED = "Dotted lines: start and end of a run."
_KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_HINT = "Point at a plot or press the arrow keys to read all sensors at that time."

# Heights of a plot, in lines of text.
_TILE_LINES, _PLOT_LINES = 4.4, 6.5
# Before the first reading, so that an empty axis has the right scale.
_EMPTY_SCALES = {
    "%": (0.0, 100.0), "bytes": (0.0, float(1 << 30)), "°C": (20.0, 60.0), "W": (0.0, 100.0),
    "MHz": (0.0, 2000.0), "B/s": (0.0, 1e9),
}  # fmt: skip


class SensorGrid(QWidget):
    """The sensors of one device: its main ones in a row, beside those of the PC, or all of them.

    A sensor that the device does not report has no plot; the table says so. Starts with the plots
    that every device has; creates the others and the table on demand.

    Args:
        theme: gives the colors.
        all_sensors: the button that shows them all.
        tools: more buttons for the time when all sensors are shown.

    Attributes:
        tools: what belongs beside ``all_sensors``; hidden as long as that is up.

    Signals:
        readings_wanted(): another time span or other sensors are shown now.
    """

    readings_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        all_sensors: QPushButton,
        *tools: QWidget,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("devices.sensors")
        self.setAccessibleName("Live sensors")
        self._theme = theme
        self._plots = _Plots(self)
        self._plots.stepped.connect(self._step)
        self._crosshair = Crosshair(theme, self)
        self._crosshair.moved.connect(self._read_at)
        self._cards: dict[str, SensorCard] = {}
        self._shown: list[str] = []
        self._spans: Sequence[SensorSpan] = ()
        self._beside: Sequence[SensorSpan] = ()
        self._columns = 0
        self._has_marks = self._shows_table = False
        self._rows = TextRows(_HEAD, range(1, len(_HEAD)), self)
        self._choice = ComboBox()
        self._choice.setObjectName("devices.sensors.span")
        self._choice.setAccessibleName("Time span")
        for title, span_s in _SPANS:
            self._choice.addItem(title, span_s)
        self._choice.activated.connect(self.readings_wanted)
        self._all = all_sensors
        self._all.toggled.connect(self._show_all)
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
        self.tools = (self._choice, self._toggle, *tools)
        for tool in self.tools:
            tool.hide()
        self._name = Text("Sensors", "value", name="devices.name")
        self._identity = ElidedText("", "muted", name="devices.identity")
        self._column.addWidget(
            FlowRow(self._name, self._identity, self._reading, fills=self._reading)
        )
        self._column.addWidget(self._plots, 1)
        for kind in CPU_SENSORS:
            self._make_card(kind.key, kind)
        self._arrange([kind.key for kind in CPU_SENSORS])
        if self.shows_all:
            self._show_all()

    @property
    def span_s(self) -> float:
        """The shown time span in seconds."""
        span_s: float = self._choice.currentData()
        return span_s

    @property
    def shows_all(self) -> bool:
        """Whether all sensors of the device are shown."""
        return self._all.isChecked()

    def show_device(self, name: str, identity: str) -> None:
        """Show which device it is, and its numbers."""
        self._name.setText(name)
        self._identity.setText(identity)
        self._identity.setVisible(bool(identity))

    def show_spans(
        self,
        spans: Sequence[SensorSpan],
        role: str,
        marks: Sequence[RunMark] = (),
        beside: Sequence[SensorSpan] = (),
    ) -> None:
        """Show the sensors of a device in its color, and the runs on it.

        Args:
            spans: the sensors of the device.
            role: its color role.
            marks: the runs on it.
            beside: sensors of the CPU, for the end of a card's row of tiles.
        """
        self._spans, self._beside = spans, beside
        newest_s = self._newest_s or 0.0
        ends_s = (newest_s - self.span_s, newest_s)
        if spans:
            self._show_plots()
        for key, span in self._tiles().items():
            if key in self._shown:
                is_own = not key.startswith(_BESIDE)
                reported = (role, ends_s, marks) if is_own else ("cpu", ends_s, ())
                self._cards[key].show_span(span, *reported)
        self._rows.set_rows([span.row for span in spans])
        if self._table is not None:
            show_whole_rows(self._table)  # the page scrolls, not the table
        self._crosshair.attach()
        x = self._crosshair.x
        if x is not None and x < ends_s[0]:
            self._crosshair.move_to(None)
        self._has_marks = bool(marks)
        self._read_at(self._crosshair.x)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put as many plots side by side as fit."""
        super().resizeEvent(event)
        if self._fitting_columns() != self._columns:
            self._show_plots()
            self.readings_wanted.emit()

    def _read_at(self, time_s: float | None) -> None:
        """Show every sensor's value at one time, or the newest."""
        for key in self._shown:
            self._cards[key].show_value(time_s)
        newest_s = self._newest_s
        if time_s is None or newest_s is None:
            self._reading.setText(_MARKED if self._has_marks and not self._shows_table else "")
            self._plots.setAccessibleDescription(_HINT)
            return
        words = f"All values: {_ago(newest_s - time_s)}"
        self._reading.setText(words)
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

    def _tiles(self) -> dict[str, SensorSpan]:
        """Return all that can be shown now, by the key of its plot."""
        reported = {span.kind.key: span for span in self._spans if not span.is_refused}
        if self.shows_all:
            return reported
        own = dict(list(reported.items())[:_OWN_TILES])
        return own | {f"{_BESIDE}{s.kind.key}": s for s in self._beside if not s.is_refused}

    def _show_plots(self) -> None:
        """Show the plots of all sensors, or as many tiles as fit in one row."""
        tiles = self._tiles()
        shown = list(tiles) or list(self._shown)
        if not self.shows_all:
            shown = shown[: self._fitting_columns()]
        for key in shown:
            if key not in self._cards:
                self._make_card(key, tiles[key].kind)
        if shown != self._shown or self._fitting_columns() != self._columns:
            self._arrange(shown)

    def _make_card(self, key: str, kind: SensorKind) -> None:
        card = SensorCard(self._theme, key, kind, self.span_s, self._plots)
        self._cards[key] = card
        self._crosshair.add(card.plot)

    def _fitting_columns(self) -> int:
        room = self.width() + GAP
        if not self.shows_all:
            fitting = room // (letters(self, _TILE_LETTERS) + GAP)
            return max(_FEWEST_TILES, min(_MOST_TILES, fitting))
        fitting = room // (letters(self, _CARD_LETTERS) + GAP)
        if fitting > 2 and len(self._shown) > 3 and self.width() < letters(self, _WIDE_LETTERS):
            return 2  # six plots look better in three wide rows than in two narrow ones
        return max(1, min(_MOST_COLUMNS, fitting))

    def _arrange(self, shown: list[str]) -> None:
        self._shown, self._columns = shown, self._fitting_columns()
        lines = _PLOT_LINES if self.shows_all else _TILE_LINES
        for key, card in self._cards.items():
            self._grid.removeWidget(card)
            if key not in shown:
                card.hide()
        for place, key in enumerate(shown):
            card = self._cards[key]
            card.plot.setMinimumHeight(round(lines * self.fontMetrics().height()))
            self._grid.addWidget(card, place // self._columns, place % self._columns)
            if card.isHidden():  # each card that appears lays out all of its parents at once
                card.show()
        used = min(self._columns, len(shown))
        for column in range(_MOST_TILES):
            self._grid.setColumnStretch(column, int(column < used))

    def _show_all(self) -> None:
        """Show all sensors with their tools, or the row of tiles again."""
        for tool in self.tools:
            tool.setVisible(self.shows_all)
        if self._shows_table:
            self._exchange()
        self._show_plots()
        self.readings_wanted.emit()

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
        if self._table is not None:
            show_whole_rows(self._table)
        if self._crosshair.x is not None:  # a table has no crosshair
            self._crosshair.move_to(None)
        self._read_at(None)
        self._toggle.setText("Show as plots" if self._shows_table else "Show as table")
        self._toggle.setAccessibleName(self._toggle.text())


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
        self, theme: Theme, key: str, kind: SensorKind, span_s: float, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, name=f"devices.sensor.{key}")
        self._span: SensorSpan | None = None
        self._role = ""
        # A filled area means "this share of the total"; a temperature has no total.
        self._fills = kind.unit != "°C"
        self._title = Text(kind.title, "muted")
        self._change = SpareText("", "muted", name=f"{self.objectName()}.change")
        self._value = ElidedText("", "value", name=f"{self.objectName()}.value")
        self._change.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.plot = LivePlot(
            theme, name=f"{self.objectName()}.plot", x_unit="ago", y_unit=kind.unit, legend=0
        )
        # Its hint is above its least height; a page that scrolls would cut other parts for it.
        self.plot.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self.plot.set_x_range(-span_s, 0.0)
        self.plot.set_y_range(*_EMPTY_SCALES[kind.unit])
        head = QHBoxLayout()
        head.setSpacing(GAP)
        self.column.setContentsMargins(12, 8, 8, 4)
        self.column.setSpacing(2)
        self.column.addLayout(head)
        head.addWidget(self._title)
        head.addWidget(self._change, 1)
        self.column.addWidget(self._value)
        self.column.addWidget(self.plot, 1)
        # The curve is created with the plot, not with the first reading: the engine starts at that
        # time as well.
        self._set_role("cpu")

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
        self._title.setText(span.kind.title)
        self.setAccessibleName(span.kind.title)
        self.setAccessibleDescription(span.sentence)
        self.setToolTip(span.sentence)
        self.plot.describe(span.sentence)
        self._set_role(role)
        if span.has_values:
            self.plot.set_x_range(*ends_s)
            self.plot.set_y_range(*span.scale)
        times_s = [time_s for mark in marks for time_s in (mark.began_s, mark.ended_s)]
        self.plot.set_markers([(t, "", "accent") for t in _apart(times_s, ends_s)])
        self.plot.refresh()

    def _set_role(self, role: str) -> None:
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
            self._value.setText(span.latest)
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
