"""Bars to one scale: the time of each device, its parts, or a result before and after a fix.

Each row is a name, a bar on its track, and a value at the right edge, so that the bars of a group
can be compared; a group may also have intervals on its bars, and a verdict beside each value. Every
size comes from the font. If the names and values would leave too little space for the bars, they
move above them.
"""

from __future__ import annotations

import math
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QPainter,
    QPainterPath,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu_studio.model.page_model import WORK
from gpu_studio.model.text_rows import plain_tip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.model.page_model import Bar
    from gpu_studio.ui.theme import Theme

# In lines of the widget's font.
_THICK = 1.3
_ROW_GAP, _COLUMN_GAP, _RADIUS = 0.7, 1.2, 0.3
_SHORTEST_BAR = 0.2
_LEAST_TRACK, _NARROWEST_TRACK, _USUAL_TRACK = 4.0, 7.0, 16.0
_WIDEST_NAME = 0.36  # of the width
_END_SHARE = 0.7  # the height of an interval's ends, as a share of the bar's
_WIDEST_MINIMUM = 18.0  # a longer name is cut off, and the tool tip has all of it
_VALUE_SIZE = 1.2  # of the name's font
_PART_PADDING = 8.0  # in pixels


# The work has the device's color; each other part is gray with its own hatch.
_HATCHES = (Qt.BrushStyle.BDiagPattern, Qt.BrushStyle.DiagCrossPattern, Qt.BrushStyle.SolidPattern)


class _Places(NamedTuple):
    """The columns at one width, in pixels."""

    is_stacked: bool
    track_left: float
    track_width: float


class ResultBars(QWidget):
    """Paints a group of bars; the longest fills its track.

    Screen readers get the names and values as the description; set the accessible name.

    Attributes:
        bars: the shown bars.

    Args:
        theme: gives the colors.
        name: the object's name.
        full: the value that fills the track, 1 for shares; None for the longest bar.
    """

    def __init__(self, theme: Theme, *, name: str, full: float | None = None) -> None:
        super().__init__()
        self.setObjectName(name)
        self._theme, self._full = theme, full
        self.bars: tuple[Bar, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def show_bars(self, bars: Sequence[Bar]) -> None:
        """Show these bars."""
        if tuple(bars) == self.bars:
            return
        self.bars = tuple(bars)
        self.setAccessibleDescription(
            "; ".join(f"{bar.name}: {_spoken(bar) or 'no result yet'}" for bar in bars)
        )
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size for names and values beside bars of a usual length."""
        names, values = self._columns()
        width = names + values + self._verdict_column() + self._lines(_USUAL_TRACK)
        return QSize(math.ceil(width), self.heightForWidth(math.ceil(width)))

    def minimumSizeHint(self) -> QSize:
        """Return the size for each name and value in a line above its bar."""
        width = max((sum(self._widths(bar)) for bar in self.bars), default=0.0)
        width = max(width + self._lines(_COLUMN_GAP), self._lines(_NARROWEST_TRACK))
        verdicts = self._verdict_column()
        widest = self._lines(_LEAST_TRACK + _COLUMN_GAP) + self._columns()[1]
        least = math.ceil(
            min(width, widest) + verdicts if verdicts else min(width, self._lines(_WIDEST_MINIMUM))
        )
        return QSize(least, self.heightForWidth(least))

    def heightForWidth(self, width: int) -> int:
        """Return the height of all rows, in pixels."""
        row = self._row_height(is_stacked=self._places(width).is_stacked)
        count = len(self.bars)
        return math.ceil(count * row + max(count - 1, 0) * self._lines(_ROW_GAP))

    def event(self, event: QEvent) -> bool:
        """Show the values of the row under the mouse in a tool tip."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            bar = self.bar_at(event.pos().y())
            text = (bar.tip or f"{bar.name}: {_spoken(bar)}") if bar is not None else ""
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return super().event(event)

    def bar_at(self, y: float) -> Bar | None:
        """Return the bar at a height in pixels from the top; None between two rows."""
        step = self._row_height(is_stacked=self._places(self.width()).is_stacked)
        row, below = divmod(y, step + self._lines(_ROW_GAP))
        return self.bars[int(row)] if below <= step and 0 <= row < len(self.bars) else None

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint every row."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        places = self._places(self.width())
        height = self._row_height(is_stacked=places.is_stacked)
        longest = max((_end(bar) for bar in self.bars if _is_drawn(bar)), default=0.0) or 1.0
        full = self._full or longest
        for row, bar in enumerate(self.bars):
            top = row * (height + self._lines(_ROW_GAP))
            thick = self._lines(_THICK)
            words_height = height - thick if places.is_stacked else height
            self._paint_words(painter, bar, QRectF(0, top, self.width(), words_height), places)
            track = QRectF(places.track_left, top + height - thick, places.track_width, thick)
            self._paint_bar(painter, bar, track, full)
            self._paint_interval(painter, bar, track, full)

    def _paint_words(self, painter: QPainter, bar: Bar, place: QRectF, places: _Places) -> None:
        name, value = self._name_font(), self._value_font()
        _, value_width = self._widths(bar)
        gap, verdicts = self._lines(_COLUMN_GAP), self._verdict_column()
        self._paint_verdict(painter, bar, place)
        place = place.adjusted(0, 0, -verdicts, 0)
        painter.setPen(QColor(self._theme.colour("text")))
        room = place.width() - value_width - gap if places.is_stacked else places.track_left - gap
        painter.setFont(name)
        elided = QFontMetricsF(name).elidedText(bar.name, Qt.TextElideMode.ElideRight, room + 1)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(place, middle | Qt.AlignmentFlag.AlignLeft, elided)
        painter.setFont(value)
        painter.drawText(place, middle | Qt.AlignmentFlag.AlignRight, bar.text)

    def _paint_verdict(self, painter: QPainter, bar: Bar, place: QRectF) -> None:
        painter.setFont(self._name_font() if bar.counts else self.font())
        painter.setPen(QColor(self._theme.colour("text" if bar.counts else "muted")))
        left = place.right() - self._verdict_column() + self._lines(_COLUMN_GAP)
        column = QRectF(left, place.top(), place.right() - left, place.height())
        painter.drawText(
            column, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, bar.verdict
        )

    def _paint_interval(self, painter: QPainter, bar: Bar, track: QRectF, full: float) -> None:
        """Paint an interval as a line with two ends, with an edge to be seen on any color."""
        if bar.interval is None or not _is_drawn(bar):
            return
        low, high = (
            track.left() + min(max(end / full, 0.0), 1.0) * track.width() for end in bar.interval
        )
        middle, half = track.center().y(), _END_SHARE * track.height() / 2
        lines = QPainterPath(QPointF(low, middle))
        lines.lineTo(high, middle)
        for x in (low, high):
            lines.moveTo(x, middle - half)
            lines.lineTo(x, middle + half)
        for role, width in (("around_interval", 4.0), ("interval", 1.5)):
            painter.strokePath(lines, QPen(QColor(self._theme.colour(role)), width))

    def _paint_bar(self, painter: QPainter, bar: Bar, track: QRectF, full: float) -> None:
        radius = self._lines(_RADIUS)
        outline = QPainterPath()
        outline.addRoundedRect(track, radius, radius)
        painter.fillPath(outline, QColor(self._theme.colour("track")))
        if bar.value is None or not _is_drawn(bar):
            return
        length = min(bar.value / full, 1.0) * track.width()
        whole = QRectF(track)
        whole.setWidth(max(length, self._lines(_SHORTEST_BAR)))
        filled = QPainterPath()
        filled.addRoundedRect(whole, radius, radius)
        painter.save()
        painter.setClipPath(filled.intersected(outline))
        left = whole.left()
        styles, hatches = Qt.BrushStyle, cycle(_HATCHES)
        own = bar.role or self._theme.device_role(bar.device)
        own_hatch = styles.FDiagPattern if bar.is_hatched else styles.SolidPattern
        for name, value in bar.parts or (("", bar.value),):
            is_work = not bar.parts or name in WORK
            hatch = own_hatch if is_work else next(hatches)
            width = whole.width() * (value / bar.value if bar.value else 1.0)
            place = QRectF(left, whole.top(), width, whole.height())
            self._paint_part(painter, name, own if is_work else "other", hatch, place)
            left += width
        painter.restore()

    def _paint_part(
        self, painter: QPainter, name: str, role: str, hatch: Qt.BrushStyle, place: QRectF
    ) -> None:
        color, card = (QColor(self._theme.colour(one)) for one in (role, "card"))
        is_plain = hatch is Qt.BrushStyle.SolidPattern
        painter.fillRect(place, color)
        if not is_plain:
            painter.fillRect(place, QBrush(card, hatch))
        if not name:
            return
        painter.setPen(QPen(card, 1))
        painter.drawLine(place.topRight(), place.bottomRight())
        painter.setFont(self.font())
        metrics = QFontMetricsF(self.font())
        if metrics.horizontalAdvance(name) + _PART_PADDING > place.width():
            return
        if not is_plain:
            box = metrics.boundingRect(name).adjusted(-3, 0, 3, 0)
            box.moveCenter(place.center())
            painter.fillRect(box, color)
        painter.setPen(QColor("#FFFFFF" if _is_dark(color) else "#10161C"))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, name)

    def _places(self, width: int) -> _Places:
        names, values = self._columns()
        gap, verdicts = self._lines(_COLUMN_GAP), self._verdict_column()
        if verdicts:  # the names of a group with verdicts are long, and its bars matter more
            names = min(names, _WIDEST_NAME * width)
        track = width - names - values - verdicts - 2 * gap
        if track < self._lines(_NARROWEST_TRACK):
            return _Places(True, 0.0, float(math.floor(width - verdicts)))
        left = float(math.ceil(names + gap))  # on a whole pixel, so that the bar's edge is sharp
        return _Places(False, left, float(math.floor(track)))

    def _columns(self) -> tuple[float, float]:
        """Return the widths of the names and of the values, in pixels."""
        widths = [self._widths(bar) for bar in self.bars] or [(0.0, 0.0)]
        names, values = zip(*widths, strict=True)
        return max(names), max(values)

    def _verdict_column(self) -> float:
        """Return the width of the verdicts with the gap before them; 0 without any."""
        bold = QFontMetricsF(self._name_font())
        width = max((bold.horizontalAdvance(bar.verdict) for bar in self.bars), default=0.0)
        return math.ceil(width) + self._lines(_COLUMN_GAP) if width else 0.0

    def _widths(self, bar: Bar) -> tuple[float, float]:
        name, value = QFontMetricsF(self._name_font()), QFontMetricsF(self._value_font())
        return name.horizontalAdvance(bar.name), value.horizontalAdvance(bar.text)

    def _row_height(self, *, is_stacked: bool) -> float:
        if not is_stacked:
            return max(self._lines(_THICK), QFontMetricsF(self._value_font()).height())
        return self._lines(_THICK) + QFontMetricsF(self._value_font()).height()

    def _lines(self, count: float) -> float:
        return count * QFontMetricsF(self.font()).height()

    def _name_font(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def _value_font(self) -> QFont:
        font = self._name_font()
        font.setPointSizeF(self.font().pointSizeF() * _VALUE_SIZE)
        return font


def _spoken(bar: Bar) -> str:
    return ", ".join(filter(None, (bar.text, bar.verdict)))


def _end(bar: Bar) -> float:
    """Return how far a bar and its interval reach."""
    high = bar.interval[1] if bar.interval is not None else 0.0
    return max(bar.value or 0.0, high if math.isfinite(high) else 0.0)


def _is_drawn(bar: Bar) -> bool:
    return bar.value is not None and math.isfinite(bar.value) and bar.value >= 0


def _is_dark(color: QColor) -> bool:
    """Return whether white is more readable on a color than black (ITU-R BT.601's luma)."""
    return 0.299 * color.redF() + 0.587 * color.greenF() + 0.114 * color.blueF() < 0.5
