"""What scrolls if the window is too small for it: a column of cards, a tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from gpu_studio.ui.parts import GAP

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

_SCROLL_BAR_GAP = 6


class VerticalScroll(QScrollArea):
    """Scrolls up and down alone: never narrower than what is in it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def minimumSizeHint(self) -> QSize:
        """Return the least width of the widget and a scroll bar beside it."""
        widget = self.widget()
        least = widget.minimumSizeHint().width() if widget is not None else 0
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(least + bar, super().minimumSizeHint().height())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ask for another width if the widget does."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


class TabScroll(QScrollArea):
    """The place of a tab: scrolls if the window is smaller than the tab can be."""

    def __init__(self, tab: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        tab.setProperty("page", True)
        self.setWidget(tab)

    def minimumSizeHint(self) -> QSize:
        """Return no size: any window will do."""
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let the tab fill its place."""
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the tab take another size if it asks for one."""
        if event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        tab = self.widget()
        if tab is None:
            return
        room = self.viewport().size()
        width = max(room.width(), tab.minimumSizeHint().width())
        # A layout's own minimum counts wrapped text as in a narrow column: ask for this width's.
        layout = tab.layout()
        if layout is not None and layout.hasHeightForWidth():
            least = layout.totalMinimumHeightForWidth(width)
        else:
            least = tab.minimumSizeHint().height()
        tab.resize(width, max(room.height(), least))


class ScrollPage(VerticalScroll):
    """Put widgets and layouts into `column`; it is as high as they are, and never wider."""

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
    """As high as its text is at its width.

    A layout's own minimum counts the lines that wrapped text would have in a narrow column, which
    leaves a gap at the end of a wide page.
    """

    def minimumSizeHint(self) -> QSize:
        """Return the layout's least width, and no height: the scroll area asks for that width's."""
        return QSize(super().minimumSizeHint().width(), 0)
