"""The one lever of a race: how large its picture is, from tiny to large."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QMouseEvent, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QAbstractSlider, QSizePolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QFocusEvent, QPaintEvent, QWheelEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.theme import Theme

# In lines of the widget's font.
_THICK, _HANDLE, _MARK, _GAP = 0.4, 0.55, 0.85, 0.35
_LEAST_STEP = 1.2


class SizeMark(NamedTuple):
    """A position of the lever.

    Attributes:
        size: the size that it stands for.
        text: the size as it is written under the lever.
        role: the color of the contestant that is faster at this size; empty while nobody raced.
    """

    size: int
    text: str
    role: str = ""


class SizeLever(QAbstractSlider):
    """A slider over a few sizes; its track has the color of the leader at each size.

    It has the keys and values of every slider. A `QSlider` would take its height from the style
    sheet, and this one needs room for its words.

    Attributes:
        marks: the positions, from small to large.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setObjectName(name)
        self.setAccessibleName("Size of the picture")
        self._theme = theme
        self.marks: tuple[SizeMark, ...] = ()
        self._crossover: tuple[int, str] | None = None
        self.setPageStep(1)
        self.setTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.valueChanged.connect(self._describe)
        theme.changed.connect(self.update)

    @property
    def size_chosen(self) -> int | None:
        """The size at the lever's position; None without sizes."""
        return self.marks[self.value()].size if self.marks else None

    @property
    def crossover_text(self) -> str:
        """The words where the leader changes; empty if it does not."""
        return self._crossover[1] if self._crossover else ""

    def show_sizes(self, marks: Sequence[SizeMark], chosen: int) -> None:
        """Show these positions, with the lever at one size; emits no signal."""
        marks = tuple(marks)
        sizes = [mark.size for mark in marks]
        place = sizes.index(chosen) if chosen in sizes else 0
        if marks == self.marks and place == self.value():
            return
        was_blocked = self.blockSignals(True)
        self.marks = marks
        self.setRange(0, max(len(marks) - 1, 0))
        self.setValue(place)
        self.blockSignals(was_blocked)
        self._describe()
        self.updateGeometry()
        self.update()

    def show_crossover(self, position: int | None, text: str) -> None:
        """Mark the first position at which another contestant leads; None marks nothing."""
        crossover = None if position is None else (position, text)
        if crossover != self._crossover:
            self._crossover = crossover
            self._describe()
            self.update()

    def sizeHint(self) -> QSize:
        """Return the size for all marks beside one another."""
        width = sum(self._metrics().horizontalAdvance(mark.text) for mark in self.marks)
        gaps = self._lines(_LEAST_STEP) * len(self.marks)
        return QSize(math.ceil(width + gaps), self._height())

    def minimumSizeHint(self) -> QSize:
        """Return the size for a lever that can be moved: it then writes only some sizes."""
        step = self._lines(_LEAST_STEP)
        return QSize(math.ceil(step * max(len(self.marks), 4)), self._height())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the lever to the mouse."""
        if event.button() is Qt.MouseButton.LeftButton:
            self.setValue(self._position_at(event.position().x()))
            event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Let the lever follow the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.setValue(self._position_at(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Do nothing more: the lever stands already."""
        event.accept()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the focus."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Show that it is gone."""
        super().focusOutEvent(event)
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page: a turn of it must not start races."""
        event.ignore()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the marks, the crossover and the lever."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index in range(len(self.marks) - 1):
            self._paint_segment(painter, index)
        self._paint_texts(painter)
        self._paint_crossover(painter)
        self._paint_handle(painter)

    def _paint_segment(self, painter: QPainter, index: int) -> None:
        """Paint the track between two marks, each half in the color of its nearer mark."""
        left, right = self._x(index), self._x(index + 1)
        middle = (left + right) / 2
        thick = self._lines(_THICK)
        for start, end, mark in (
            (left, middle, self.marks[index]),
            (middle, right, self.marks[index + 1]),
        ):
            place = QRectF(start, self._track_y - thick / 2, end - start + 0.5, thick)
            painter.fillRect(place, QColor(self._theme.colour(mark.role or "border")))

    def _paint_texts(self, painter: QPainter) -> None:
        metrics = self._metrics()
        painter.setFont(self._font())
        chosen = self.value()
        shown = sorted(range(len(self.marks)), key=lambda index: index != chosen)
        taken: list[QRectF] = []
        top = self._track_y + self._lines(_HANDLE + _GAP)
        for index in shown:
            width = metrics.horizontalAdvance(self.marks[index].text)
            left = min(max(self._x(index) - width / 2, 0), self.width() - width)
            place = QRectF(left, top, width + 1, metrics.height())
            if any(place.adjusted(-4, 0, 4, 0).intersects(other) for other in taken):
                continue
            taken.append(place)
            is_chosen = index == chosen
            painter.setPen(QColor(self._theme.colour("text" if is_chosen else "muted")))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, self.marks[index].text)

    def _paint_crossover(self, painter: QPainter) -> None:
        if self._crossover is None or not 0 < self._crossover[0] < len(self.marks):
            return
        position, text = self._crossover
        x = (self._x(position - 1) + self._x(position)) / 2
        color = QColor(self._theme.colour("good"))
        high = self._lines(_MARK)
        painter.setPen(QPen(color, max(self._lines(0.12), 1.5)))
        painter.drawLine(QPointF(x, self._track_y - high), QPointF(x, self._track_y + high / 2))
        metrics = self._metrics()
        width = metrics.horizontalAdvance(text)
        left = min(max(x - self._lines(0.3), 0), max(self.width() - width, 0))
        painter.setFont(self._font())
        place = QRectF(left, 0, width + 1, metrics.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignLeft, text)

    def _paint_handle(self, painter: QPainter) -> None:
        if not self.marks:
            return
        radius = self._lines(_HANDLE)
        outline = QPainterPath()
        outline.addEllipse(QPointF(self._x(self.value()), self._track_y), radius, radius)
        is_filled = self.hasFocus()
        role = "accent" if self.isEnabled() else "disabled"
        painter.fillPath(outline, QColor(self._theme.colour(role if is_filled else "card")))
        width = max(self._lines(0.15), 2.0)
        painter.strokePath(outline, QPen(QColor(self._theme.colour(role)), width))

    def _position_at(self, x: float) -> int:
        count = len(self.marks)
        places = [abs(self._x(index) - x) for index in range(count)]
        return places.index(min(places)) if places else 0

    def _x(self, index: int) -> float:
        margin = self._lines(_HANDLE) + 2
        count = max(len(self.marks) - 1, 1)
        return margin + (self.width() - 2 * margin) * index / count

    @property
    def _track_y(self) -> float:
        return self._metrics().height() + self._lines(_GAP + _HANDLE)

    def _height(self) -> int:
        below = self._lines(_HANDLE + _GAP) + self._metrics().height()
        return math.ceil(self._track_y + below)

    def _describe(self) -> None:
        chosen = self.marks[self.value()].text if self.marks else ""
        self.setAccessibleDescription(". ".join(filter(None, (chosen, self.crossover_text))))

    def _font(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font

    def _metrics(self) -> QFontMetricsF:
        return QFontMetricsF(self._font())

    def _lines(self, count: float) -> float:
        return count * QFontMetricsF(self.font()).height()
