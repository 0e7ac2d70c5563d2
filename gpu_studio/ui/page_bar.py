"""The pages of a tab that has several: their titles in a bar, and the one in front below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QTabBar

from gpu_studio.ui.scroll_page import PageStack

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Page
    from gpu_studio.ui.lazy_page import LazyPage
    from gpu_studio.ui.tabs import Tab


class PageBar(QTabBar):
    """The titles of a tab's pages; `stack` shows the page in front.

    Signals:
        page_changed(Page): another page is in front.

    Attributes:
        front: the page in front.
        stack: the pages; it stands below the bar.
    """

    page_changed = Signal(object)

    def __init__(self, tab: Tab) -> None:
        super().__init__()
        self.setObjectName(f"{tab.page.tab}.pages")
        self.setAccessibleName(f"{tab.title} pages")
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(True)
        self.stack = PageStack()
        self._pages = tuple(tab.parts)
        self.front = self._pages[0]
        for title in tab.parts.values():
            self.addTab(title)
        self.currentChanged.connect(self._turn_to)

    def add(self, *pages: QWidget | LazyPage) -> None:
        """Add the pages, in the order of their titles."""
        for page in pages:
            self.stack.add(page)

    def go_to(self, page: Page) -> None:
        """Bring a page to the front."""
        self.setCurrentIndex(self._pages.index(page))

    def _turn_to(self, index: int) -> None:
        self.front = self._pages[index]
        self.stack.show_page(index)
        self.page_changed.emit(self.front)
