"""One line that both sides paint, each from its own end: they meet where their ratio is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPainterPath
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.ui.theme import Theme

_THICK = 0.9  # lines of the widget's font


class MeetingLine(QWidget):
    """Two colors, as long as the steps of each side in the same time."""

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Where both sides meet")
        self._theme = theme
        self._share: float | None = None
        self._roles = ("other", "other")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def share(self) -> float | None:
        """The left side's share of all steps, 0 to 1; None before both have begun."""
        return self._share

    def show_steps(self, left: int, right: int, roles: tuple[str, str], title: str) -> None:
        """Show the steps of both sides until the same time of the race's clock."""
        both = left + right
        self._share = left / both if left and right else None
        self._roles = roles
        self.setToolTip(
            f"Together they paint {both} {title}: {left} from the left, {right} from "
            "the right. They meet where their ratio is."
        )
        self.setAccessibleDescription(f"{left} and {right} {title}")
        self.update()

    def sizeHint(self) -> QSize:
        """Return a usual width and the height of the line."""
        high = math.ceil(_THICK * self.fontMetrics().height())
        return QSize(20 * high, high)

    def minimumSizeHint(self) -> QSize:
        """Return the least width at which two colors can be compared."""
        high = math.ceil(_THICK * self.fontMetrics().height())
        return QSize(6 * high, high)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint both parts, with a gap where they meet."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(self.rect()), self.height() / 3, self.height() / 3)
        painter.fillPath(outline, QColor(self._theme.colour("track")))
        if self._share is None:
            return
        painter.setClipPath(outline)
        meeting = self._share * self.width()
        gap = max(self.height() / 10, 1.0)
        left = QRectF(0, 0, meeting - gap, self.height())
        right = QRectF(meeting + gap, 0, self.width() - meeting - gap, self.height())
        for place, role in zip((left, right), self._roles, strict=True):
            painter.fillRect(place, QColor(self._theme.colour(role)))
