"""How far a contestant is on its way to the finish line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPainterPath
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.ui.theme import Theme

# In lines of the widget's font.
_THICK, _FLAG, _GAP = 0.5, 1.1, 0.5
_SQUARES = 4  # of the finish flag, in each direction


class ProgressLine(QWidget):
    """A bar on its track, with a checkered flag at its end, which turns green at the finish.

    Attributes:
        share: the share of the way that is done, 0 to 1.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Way to the finish line")
        self._theme = theme
        self.share, self._role, self._is_reached = 0.0, "other", False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_share(self, share: float, role: str, *, is_reached: bool) -> None:
        """Show a share in the color of a role."""
        if (share, role, is_reached) != (self.share, self._role, self._is_reached):
            self.share, self._role, self._is_reached = share, role, is_reached
            self.setAccessibleDescription(f"{share:.0%}")
            self.update()

    def sizeHint(self) -> QSize:
        """Return a usual width and the height of the flag."""
        return QSize(math.ceil(self._lines(12)), math.ceil(self._lines(_FLAG)))

    def minimumSizeHint(self) -> QSize:
        """Return the least width at which progress can be seen."""
        return QSize(math.ceil(self._lines(4)), math.ceil(self._lines(_FLAG)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the bar and the flag."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        thick, side = self._lines(_THICK), self._lines(_FLAG)
        width = self.width() - side - self._lines(_GAP)
        track = QRectF(0, (self.height() - thick) / 2, width, thick)
        outline = QPainterPath()
        outline.addRoundedRect(track, thick / 2, thick / 2)
        painter.fillPath(outline, QColor(self._theme.colour("track")))
        if self.share > 0:
            done = QRectF(track)
            done.setWidth(max(width * min(self.share, 1.0), thick))
            bar = QPainterPath()
            bar.addRoundedRect(done, thick / 2, thick / 2)
            painter.fillPath(bar, QColor(self._theme.colour(self._role)))
        self._paint_flag(painter, QRectF(self.width() - side, 0, side, side))

    def _paint_flag(self, painter: QPainter, place: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        color = QColor(self._theme.colour("good" if self._is_reached else "muted"))
        square = place.width() / _SQUARES
        for row in range(_SQUARES):
            for column in range(row % 2, _SQUARES, 2):
                painter.fillRect(
                    QRectF(
                        place.left() + column * square, place.top() + row * square, square, square
                    ),
                    color,
                )

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()
