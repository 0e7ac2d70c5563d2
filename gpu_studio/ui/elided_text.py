"""A line of text that ends in "…" where there is no room for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter

from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent


class ElidedText(Text):
    """A line that ends in "…" where it is too long, and is selectable no less.

    With word wrap on it takes as many lines as it needs.
    """

    def minimumSizeHint(self) -> QSize:
        """Return a width that any column has."""
        return QSize(40, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, or as much of it as fits."""
        if self.wordWrap() or self.sizeHint().width() <= self.width():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        room = self.contentsRect()
        shown = self.fontMetrics().elidedText(
            self.text(), Qt.TextElideMode.ElideRight, room.width()
        )
        self.style().drawItemText(
            painter,
            room,
            int(self.alignment()),
            self.palette(),
            self.isEnabled(),
            shown,
            self.foregroundRole(),
        )


class SpareText(Text):
    """A line that is shown whole where others leave room for it, and not at all elsewhere."""

    def sizeHint(self) -> QSize:
        """Return no width: it asks for none."""
        return QSize(0, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return no width."""
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text if it fits."""
        if self.fontMetrics().horizontalAdvance(self.text()) <= self.width():
            super().paintEvent(event)
