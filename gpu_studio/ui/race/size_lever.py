"""The one lever of a race: how large its picture is, from tiny to large."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QAbstractSlider, QSizePolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent, QWheelEvent
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
        crossover_text: the words where the leader changes; empty if it does not.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setOrientation(Qt.Orientation.Horizontal)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setObjectName(name)
        self.setAccessibleName("Size of the picture")
        self._theme = theme
        self.marks: tuple[SizeMark, ...] = ()
        self._crossover: int | None = None
        self.crossover_text = ""
        self.setPageStep(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.valueChanged.connect(self._describe)
        theme.changed.connect(self.update)

    @property
    def size_chosen(self) -> int | None:
        """The size at the lever's position; None without sizes."""
        return self.marks[self.value()].size if self.marks else None

    def show_sizes(
        self, marks: Sequence[SizeMark], chosen: int, crossover: int | None = None, text: str = ""
    ) -> None:
        """Show these positions, with the lever at one size; emits no signal.

        Args:
            marks: the positions.
            chosen: the size.
            crossover: the first position at which another contestant leads; None without one.
            text: the words there.
        """
        sizes = [mark.size for mark in marks]
        self.marks = tuple(marks)
        self._crossover, self.crossover_text = crossover, text
        with QSignalBlocker(self):
            self.setRange(0, max(len(marks) - 1, 0))
            self.setValue(sizes.index(chosen) if chosen in sizes else 0)
        self._describe()
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size for all marks beside one another."""
        width = sum(self._metrics.horizontalAdvance(mark.text) for mark in self.marks)
        return QSize(math.ceil(width + self._lines(_LEAST_STEP) * len(self.marks)), self._height)

    def minimumSizeHint(self) -> QSize:
        """Return the size for a lever that can be moved: it then writes only some sizes."""
        step = self._lines(_LEAST_STEP)
        return QSize(math.ceil(step * max(len(self.marks), 4)), self._height)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the lever to the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton and self.marks:
            places = [
                abs(self._x(index) - event.position().x()) for index in range(len(self.marks))
            ]
            self.setValue(places.index(min(places)))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Let the lever follow the mouse."""
        self.mousePressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page: a turn of it must not start races."""
        event.ignore()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the sizes, the crossover and the lever."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        self._paint_track(painter)
        self._paint_sizes(painter)
        if self._crossover:
            self._paint_crossover(painter, self._crossover)
        if self.marks:
            self._paint_handle(painter)

    def _paint_track(self, painter: QPainter) -> None:
        """Paint each part of the track in the color of the nearest mark."""
        thick, last = self._lines(_THICK), len(self.marks) - 1
        for index, mark in enumerate(self.marks):
            start = (self._x(max(index - 1, 0)) + self._x(index)) / 2
            end = (self._x(index) + self._x(min(index + 1, last))) / 2
            place = QRectF(start, self._track_y - thick / 2, end - start + 0.5, thick)
            painter.fillRect(place, self._color(mark.role or "border"))

    def _paint_sizes(self, painter: QPainter) -> None:
        """Paint the sizes that have room, the chosen one first."""
        chosen, taken = self.value(), list[QRectF]()
        top = self._track_y + self._lines(_HANDLE + _GAP)
        for index in sorted(range(len(self.marks)), key=lambda index: index != chosen):
            width = self._metrics.horizontalAdvance(self.marks[index].text)
            left = min(max(self._x(index) - width / 2, 0), self.width() - width)
            place = QRectF(left, top, width + 1, self._metrics.height())
            if not any(place.adjusted(-4, 0, 4, 0).intersects(other) for other in taken):
                taken.append(place)
                painter.setPen(self._color("text" if index == chosen else "muted"))
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, self.marks[index].text)

    def _paint_crossover(self, painter: QPainter, position: int) -> None:
        x, high = (self._x(position - 1) + self._x(position)) / 2, self._lines(_MARK)
        painter.setPen(QPen(self._color("good"), max(self._lines(0.12), 1.5)))
        painter.drawLine(QPointF(x, self._track_y - high), QPointF(x, self._track_y + high / 2))
        width = self._metrics.horizontalAdvance(self.crossover_text)
        left = min(max(x - self._lines(0.3), 0), max(self.width() - width, 0))
        place = QRectF(left, 0, width + 1, self._metrics.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignLeft, self.crossover_text)

    def _paint_handle(self, painter: QPainter) -> None:
        role = "accent" if self.isEnabled() else "disabled"
        radius = self._lines(_HANDLE)
        painter.setBrush(self._color(role if self.hasFocus() else "card"))
        painter.setPen(QPen(self._color(role), max(self._lines(0.15), 2.0)))
        painter.drawEllipse(QPointF(self._x(self.value()), self._track_y), radius, radius)

    def _x(self, index: int) -> float:
        margin = self._lines(_HANDLE) + 2
        return margin + (self.width() - 2 * margin) * index / max(len(self.marks) - 1, 1)

    @property
    def _track_y(self) -> float:
        return self._metrics.height() + self._lines(_GAP + _HANDLE)

    @property
    def _height(self) -> int:
        return math.ceil(self._track_y + self._lines(_HANDLE + _GAP) + self._metrics.height())

    def _describe(self) -> None:
        chosen = self.marks[self.value()].text if self.marks else ""
        self.setAccessibleDescription(". ".join(filter(None, (chosen, self.crossover_text))))

    @property
    def _metrics(self) -> QFontMetricsF:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return QFontMetricsF(font)

    def _color(self, role: str) -> QColor:
        return QColor(self._theme.colour(role))

    def _lines(self, count: float) -> float:
        return count * QFontMetricsF(self.font()).height()
