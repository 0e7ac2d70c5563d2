"""The live sensors: a row each, with its value at the left, over one common time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import Text, letters
from gpu_studio.ui.theme import COLOURS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent

    from gpu_studio.core.devices.sensor_history import SensorSpan
    from gpu_studio.model.devices.devices import SensorLine
    from gpu_studio.model.run_marks import RunMark
    from gpu_studio.ui.theme import Theme

_TITLE_LETTERS, _VALUE_LETTERS = 17, 16
_LINES_OF_TEXT = (1.4, 12.0)  # the least and the greatest height of a line
_LINE_STRETCH = 100
_COLUMN_GAP, _ROW_GAP = 18, 8
_MOST_POINTS = 600  # of a line: more cannot be told apart
_TICKS = 4
_DOT = 2.0
_FILLED = 0.25  # how opaque the area under a line is
_MARKED = "Dotted lines: start and end of a run."
_HINT = "Point at a line or press the arrow keys to read all sensors at that time."
_KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_FAST = 10  # readings, with Ctrl
_NOW = float("inf")  # the time of the newest reading


class _Row(NamedTuple):
    title: Text
    value: ElidedText
    line: Sparkline


class SensorRows(QWidget):
    """The sensors of a device in rows.

    The mouse over a line, or the arrow keys, read all sensors at one time; Escape reads them now.
    It is painted without a plot, so that it stands in the first paint of the window.

    Args:
        theme: gives the colors.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("devices.sensors")
        self.setAccessibleName("Live sensors")
        self.setAccessibleDescription(_HINT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._theme = theme
        self._rows: dict[str, _Row] = {}
        self._lines: Sequence[SensorLine] = ()
        self._has_marks = False
        self._ends_s, self._at_s = (0.0, 0.0), _NOW
        self._title = Text("", "value", name="devices.sensors.title")
        self._reading = ElidedText("", "muted", name="devices.sensors.cursor")
        self._axis = _TimeAxis(theme)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(_COLUMN_GAP)
        self._grid.setVerticalSpacing(_ROW_GAP)
        self._grid.setColumnMinimumWidth(0, letters(self, _TITLE_LETTERS))
        self._grid.setColumnMinimumWidth(1, letters(self, _VALUE_LETTERS))
        self._grid.setColumnStretch(2, 1)
        self._grid.addWidget(self._title, 0, 0, 1, 2)
        self._grid.addWidget(self._reading, 0, 2)
        theme.changed.connect(self.update)

    def show_lines(
        self, lines: Sequence[SensorLine], marks: Sequence[RunMark], span_s: float, title: str
    ) -> None:
        """Show the readings of sensors.

        Args:
            lines: the sensors, from top to bottom.
            marks: the runs on the device.
            span_s: the length of the time axis.
            title: what stands above it.
        """
        is_other = [line.key for line in lines] != [line.key for line in self._lines]
        if is_other:
            self._arrange(lines)
        self._lines = lines
        known = [float(s.times_s[-1]) for s in self._spans if s.has_values]
        newest_s = max(known, default=0.0)
        self._ends_s = (newest_s - span_s, newest_s)
        ends = (time_s for mark in marks for time_s in (mark.began_s, mark.ended_s))
        marks_s = [one for one in ends if one is not None and newest_s - span_s <= one <= newest_s]
        self._has_marks = bool(marks_s)
        self._title.setText(title)
        self._axis.show_span(span_s)
        for line in lines:
            row, role = self._rows[line.key], self._theme.device_role(line.device)
            row.title.setText(line.kind.title)
            own = marks_s if not line.key.startswith("pc_") else ()
            row.line.show_span(line.span, line.kind.title, role, self._ends_s, own)
        if self._at_s < self._ends_s[0]:
            self._at_s = _NOW
        self._read()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Read the sensors one reading earlier or later, or now."""
        key = Qt.Key(event.key())
        if key in _KEYS:
            is_fast = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            self._step(_KEYS[key] * (_FAST if is_fast else 1))
        elif key == Qt.Key.Key_Escape and self._at_s != _NOW:
            self._read_at(_NOW)
        else:
            super().keyPressEvent(event)

    @property
    def _spans(self) -> list[SensorSpan]:
        return [line.span for line in self._lines if line.span is not None]

    def _arrange(self, lines: Sequence[SensorLine]) -> None:
        # The mouse leaves a row that hides, which reads the rows: those of before, until all are.
        placed: QWidget
        for row in self._rows.values():
            for placed in row:
                self._grid.removeWidget(placed)
                placed.hide()
        self._grid.removeWidget(self._axis)
        for number in range(self._grid.rowCount()):
            self._grid.setRowStretch(number, 0)
        for number, line in enumerate(lines, start=1):
            row = self._rows.get(line.key) or self._make_row(line.key)
            for column, placed in enumerate(row):
                self._grid.addWidget(placed, number, column)
                placed.show()
            self._grid.setRowStretch(number, _LINE_STRETCH)
        self._grid.addWidget(self._axis, len(lines) + 1, 2)
        self._grid.setRowStretch(len(lines) + 2, 1)  # what the lines leave is below them

    def _make_row(self, key: str) -> _Row:
        name = f"devices.sensor.{key}"
        value = ElidedText("", "value", name=f"{name}.value")
        value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        line = Sparkline(self._theme, name=name)
        line.pointed.connect(self._on_pointed)
        self._rows[key] = row = _Row(Text("", "muted"), value, line)
        return row

    def _on_pointed(self, share: float) -> None:
        """Read all sensors where the mouse is: at a share of the axis, or outside of it."""
        first_s, last_s = self._ends_s
        self._read_at(first_s + share * (last_s - first_s) if 0 <= share <= 1 else _NOW)

    def _step(self, steps: int) -> None:
        times_s = next((span.times_s for span in self._spans if span.has_values), None)
        if times_s is not None:
            at_s = self._at_s if self._at_s != _NOW else self._ends_s[1]
            index = int(abs(times_s - at_s).argmin()) + steps
            self._read_at(float(times_s[min(max(index, 0), len(times_s) - 1)]))

    def _read_at(self, time_s: float) -> None:
        self._at_s = time_s
        self._read()

    def _read(self) -> None:
        """Show every sensor's value at the chosen time, or the newest."""
        is_now = self._at_s == _NOW
        for line in self._lines:
            row, span = self._rows[line.key], line.span
            words = "" if span is None else span.latest if is_now else span.at(self._at_s)
            row.value.setText(words)
            row.line.show_cursor(None if is_now else self._at_s)
        ago = f"{self._ends_s[1] - self._at_s:.0f}\u202fs ago"
        self._reading.setText(_MARKED if is_now and self._has_marks else "" if is_now else ago)
        values = ", ".join(f"{span.kind.title} {span.at(self._at_s)}" for span in self._spans)
        self.setAccessibleDescription(_HINT if is_now else f"{ago}: {values}.")


class Sparkline(QWidget):
    """The curve of one sensor, with an area below it; the axis is common to all.

    Signals:
        pointed(float): the mouse is at this share of its width; below 0 when it leaves.
    """

    pointed = Signal(float)

    def __init__(self, theme: Theme, *, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._theme = theme
        self._span: SensorSpan | None = None
        self.role = "other"
        self._ends_s: tuple[float, float] = (0.0, 1.0)
        self._marks_s: Sequence[float] = ()
        self._cursor_s: float | None = None
        self.setMaximumHeight(round(_LINES_OF_TEXT[1] * self.fontMetrics().height()))

    def sizeHint(self) -> QSize:
        """Return the least height."""
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        """Return the height of a line of text, and a little more."""
        return QSize(letters(self, 10), round(_LINES_OF_TEXT[0] * self.fontMetrics().height()))

    def show_span(
        self,
        span: SensorSpan | None,
        title: str,
        role: str,
        ends_s: tuple[float, float],
        marks_s: Sequence[float],
    ) -> None:
        """Show readings in a device's color.

        Args:
            span: the readings; None before there are any.
            title: the name of the sensor.
            role: the color role of the device.
            ends_s: the ends of the time axis, by the clock of the sensors.
            marks_s: when runs began and ended.
        """
        self._span, self.role, self._ends_s, self._marks_s = span, role, ends_s, marks_s
        sentence = span.sentence if span is not None else ""
        self.setAccessibleName(title)
        self.setAccessibleDescription(sentence)
        self.setToolTip(sentence)
        self.update()

    def show_cursor(self, time_s: float | None) -> None:
        """Mark the time at which the values are read; None marks none."""
        if time_s != self._cursor_s:
            self._cursor_s = time_s
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Read all sensors at this time."""
        self.pointed.emit(event.position().x() / max(self.width(), 1))

    def leaveEvent(self, event: object) -> None:
        """Read the sensors now."""
        self.pointed.emit(-1.0)

    def curves(self) -> Iterator[list[QPointF]]:
        """Return the parts of the curve between gaps in the readings, in pixels."""
        span = self._span
        if span is None or not span.has_values:
            return
        step = max(len(span.values) // _MOST_POINTS, 1)
        low, high = span.scale
        extent = high - low if high > low else 1.0  # all values may be the same
        part: list[QPointF] = []
        for time_s, value in zip(
            span.times_s[::step].tolist(), span.values[::step].tolist(), strict=True
        ):
            if value == value:  # a gap is not a number
                share = min(max((value - low) / extent, 0.0), 1.0)
                part.append(QPointF(self._x(time_s), 1 + (1 - share) * (self.height() - 2)))
            elif part:
                yield part
                part = []
        if part:
            yield part

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the curve, the runs and the time that is read."""
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour("track")))
        painter.drawRect(self.rect())  # `fillRect` builds the enum of all gradients: 13 ms
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = f"{self.role}_ink" if f"{self.role}_ink" in COLOURS else self.role
        area = QColor(self._theme.colour(self.role))
        area.setAlphaF(_FILLED)
        for part in self.curves():
            if len(part) == 1:  # a single reading is a dot
                part.append(part[0] - QPointF(_DOT, 0))
            path = QPainterPath(QPointF(part[0].x(), self.height()))
            path.addPolygon(QPolygonF([QPointF(part[0].x(), self.height()), *part]))
            path.lineTo(part[-1].x(), self.height())
            painter.fillPath(path, area)
            painter.setPen(QPen(QColor(self._theme.colour(ink)), 1.5))
            painter.drawPolyline(QPolygonF(part))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setPen(QPen(QColor(self._theme.colour("accent")), 1, Qt.PenStyle.DotLine))
        for x in {round(self._x(time_s)) for time_s in self._marks_s}:  # short runs lie together
            painter.drawLine(x, 0, x, self.height())
        if self._cursor_s is not None:
            painter.setPen(QPen(QColor(self._theme.colour("text")), 1))
            x = round(self._x(self._cursor_s))
            painter.drawLine(x, 0, x, self.height())

    def _x(self, time_s: float) -> float:
        first_s, last_s = self._ends_s
        return (time_s - first_s) / max(last_s - first_s, 1e-9) * (self.width() - 1)


class _TimeAxis(QWidget):
    """The times below the lines."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._span_s = theme, 0.0
        self.setFixedHeight(self.fontMetrics().height())

    def show_span(self, span_s: float) -> None:
        """Show another length of time."""
        self._span_s = span_s
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the words of each tick, the first and the last inside the axis."""
        painter = QPainter(self)
        painter.setPen(QColor(self._theme.colour("muted")))
        size, unit = (60.0, "min") if self._span_s > 120 else (1.0, "s")
        for number in range(_TICKS + 1):
            ago = self._span_s * (1 - number / _TICKS) / size
            words = f"\u2212{ago:.3g}\u202f{unit}" if ago else "now"
            room = painter.fontMetrics().horizontalAdvance(words)
            x = min(max(self.width() * number / _TICKS - room / 2, 0), self.width() - room)
            painter.drawText(QRectF(x, 0, room + 1, self.height()), words)
