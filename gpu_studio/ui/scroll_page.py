"""Scroll areas for small windows: a column of cards, a tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from gpu_studio.ui.parts import GAP

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

_SCROLL_BAR_GAP = 6


class VerticalScroll(QScrollArea):
    """Scrolls vertically only: never narrower than its contents."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def minimumSizeHint(self) -> QSize:
        """Return the least width of the widget plus a scroll bar."""
        widget = self.widget()
        least = widget.minimumSizeHint().width() if widget is not None else 0
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(least + bar, super().minimumSizeHint().height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the width if the widget's changes."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


class TabScroll(QScrollArea):
    """Holds a tab: scrolls if the window is smaller than the tab's least size."""

    def __init__(self, tab: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        tab.setProperty("page", True)
        self.setWidget(tab)

    def minimumSizeHint(self) -> QSize:
        """Return no size: the window may be any size."""
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let the tab fill the area."""
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the tab's size if its least size changes."""
        if event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        tab = self.widget()
        if tab is None:
            return
        room = self.viewport().size()
        width = max(room.width(), tab.minimumSizeHint().width())
        # A layout's own minimum assumes a narrow column for wrapped text: use this width instead.
        layout = tab.layout()
        if layout is not None and layout.hasHeightForWidth():
            least = layout.totalMinimumHeightForWidth(width)
        else:
            least = tab.minimumSizeHint().height()
        tab.resize(width, max(room.height(), least))


class ScrollPage(VerticalScroll):
    """A scrolling column: add widgets and layouts to `column`."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(accessible_name)
        page = _Page()
        page.setProperty("page", True)
        self.column = QVBoxLayout(page)
        self.column.setContentsMargins(0, 0, _SCROLL_BAR_GAP, 0)
        self.column.setSpacing(GAP)
        self.setWidget(page)


class _Page(QWidget):
    """As high as its text needs at its width.

    A layout's own minimum counts the lines of wrapped text in a narrow column, which leaves a gap
    at the end of a wide page.
    """

    def minimumSizeHint(self) -> QSize:
        """Return the layout's least width, and no height: that depends on the width."""
        return QSize(super().minimumSizeHint().width(), 0)
