"""A column of cards that scrolls where the window is too low for it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from gpu_studio.ui.parts import GAP

_SCROLL_BAR_GAP = 6


class ScrollPage(QScrollArea):
    """Put widgets and layouts into `column`; it is as high as they are, and never wider."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(accessible_name)
        page = _Page()
        page.setProperty("page", True)
        self.column = QVBoxLayout(page)
        self.column.setContentsMargins(0, 0, _SCROLL_BAR_GAP, 0)
        self.column.setSpacing(GAP)
        self.setWidget(page)


class _Page(QWidget):
    """As high as its text is at its width.

    A layout's own minimum counts the lines that wrapped text would have in a narrow column, which
    leaves a gap at the end of a wide page.
    """

    def minimumSizeHint(self) -> QSize:
        """Return the layout's least width, and no height: the scroll area asks for that width's."""
        return QSize(super().minimumSizeHint().width(), 0)
