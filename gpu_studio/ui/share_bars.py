"""Horizontal bars with labels, each made of parts; the longest fills the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.ui.theme import Theme

_ROW, _BAR, _GAP = 34, 20, 10
_WIDEST_LABEL = 0.4  # of the width
_RADIUS = 4


class BarPart(NamedTuple):
    """A part of a bar; hatched if it needs another mark besides color."""

    name: str
    value: float
    role: str
    hatch: Qt.BrushStyle = Qt.BrushStyle.SolidPattern


class Bar(NamedTuple):
    """One row: its label, its parts, and its value in words."""

    label: str
    parts: tuple[BarPart, ...]
    text: str

    @property
    def length(self) -> float:
        """The sum of all parts."""
        return sum(part.value for part in self.parts)


class ShareBars(QWidget):
    """Paints bars to the same scale. A table and a sentence beside them say the same.

    Attributes:
        bars: the shown bars.

    Args:
        theme: gives the colors.
        full: the value that fills the row, 1 for shares; None for the longest bar.
    """

    def __init__(
        self, theme: Theme, *, name: str, full: float | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme, self._full = theme, full
        self.bars: tuple[Bar, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_bars(self, bars: Sequence[Bar]) -> None:
        """Show these bars; screen readers get their labels and texts."""
        self.bars = tuple(bars)
        self.setAccessibleDescription("; ".join(f"{bar.label}: {bar.text}" for bar in bars))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return a row's height for each bar."""
        return QSize(240, _ROW * max(len(self.bars), 1))

    def minimumSizeHint(self) -> QSize:
        """Return a width that fits a narrow window."""
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint label, bar and value of each row."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        metrics = self.fontMetrics()
        # Elided text is measured in fractions of a pixel, a little more than its reported width.
        labels = max((metrics.horizontalAdvance(bar.label) + 4 for bar in self.bars), default=0)
        label_width = min(labels, _WIDEST_LABEL * self.width())
        text_width = max((metrics.horizontalAdvance(bar.text) for bar in self.bars), default=0)
        left = label_width + _GAP
        room = max(self.width() - left - text_width - _GAP, 1.0)
        full = self._full or max((bar.length for bar in self.bars), default=0.0) or 1.0
        for number, bar in enumerate(self.bars):
            top = number * _ROW
            painter.setPen(QColor(self._theme.colour("text")))
            label = metrics.elidedText(bar.label, Qt.TextElideMode.ElideRight, int(label_width))
            middle = Qt.AlignmentFlag.AlignVCenter
            painter.drawText(QRectF(0, top, label_width, _ROW), middle, label)
            end = self._paint_bar(painter, bar, QRectF(left, top, room, _ROW), full)
            painter.setPen(QColor(self._theme.colour("muted")))
            painter.drawText(QRectF(end + _GAP, top, text_width + _GAP, _ROW), middle, bar.text)

    def _paint_bar(self, painter: QPainter, bar: Bar, place: QRectF, full: float) -> float:
        """Paint the parts of one bar; return where the bar, or its track, ends."""
        top = place.top() + (_ROW - _BAR) / 2
        length = min(bar.length / full, 1.0) * place.width()
        if self._full is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.colour("grid")))
            track = QRectF(place.left(), top, place.width(), _BAR)
            painter.drawRoundedRect(track, _RADIUS, _RADIUS)
        whole = QRectF(place.left(), top, max(length, 2.0), _BAR)
        outline = QPainterPath()
        outline.addRoundedRect(whole, _RADIUS, _RADIUS)
        painter.save()
        painter.setClipPath(outline)
        begin = whole.left()
        for part in bar.parts:
            width = whole.width() * (part.value / bar.length if bar.length else 0.0)
            self._paint_part(painter, part, QRectF(begin, top, width, _BAR))
            begin += width
        painter.restore()
        return place.right() if self._full is not None else whole.right()

    def _paint_part(self, painter: QPainter, part: BarPart, place: QRectF) -> None:
        colour = QColor(self._theme.colour(part.role))
        painter.fillRect(place, colour)
        if part.hatch is not Qt.BrushStyle.SolidPattern:
            painter.fillRect(place, QBrush(QColor(self._theme.colour("card")), part.hatch))
        painter.setPen(QPen(QColor(self._theme.colour("card")), 1))
        painter.drawLine(place.topRight(), place.bottomRight())
        if self.fontMetrics().horizontalAdvance(part.name) + 8 < place.width():
            if part.hatch is not Qt.BrushStyle.SolidPattern:
                box = QRectF(self.fontMetrics().boundingRect(part.name)).adjusted(-3, 0, 3, 0)
                box.moveCenter(place.center())
                painter.fillRect(box, colour)
            painter.setPen(QColor("#FFFFFF" if _is_dark(colour) else "#10161C"))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, part.name)


def _is_dark(colour: QColor) -> bool:
    """Return whether white is more readable on a color than black (ITU-R BT.601's luma)."""
    return 0.299 * colour.redF() + 0.587 * colour.greenF() + 0.114 * colour.blueF() < 0.5
