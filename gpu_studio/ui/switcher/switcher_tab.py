"""The Switcher tab: choose a device, place models, pitfalls, data loading, several cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QTabBar, QVBoxLayout, QWidget

from gpu_studio.model.snippets import AMP, FEEDING, SEVERAL_CARDS, SWITCHER
from gpu_studio.model.switcher.device_choice import DeviceChoice
from gpu_studio.model.switcher.pitfalls import PitfallsModel
from gpu_studio.model.switcher.placement_model import PlacementModel
from gpu_studio.ui.parts import GAP, MARGIN
from gpu_studio.ui.scroll_page import PageStack
from gpu_studio.ui.switcher.choose_page import ChoosePage
from gpu_studio.ui.switcher.place_page import PlacePage

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


class SwitcherTab(QWidget):
    """A bar of pages; all but the first two are created on first use."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("switcher")
        self._studio, self._theme = studio, theme
        self.choice = DeviceChoice(studio, self)
        self.placement = PlacementModel(studio, self.choice, self)
        self.pitfalls = PitfallsModel(studio, self)
        self.pages = QTabBar()
        self.pages.setObjectName("switcher.pages")
        self.pages.setAccessibleName("Switcher pages")
        self.pages.setDrawBase(False)
        self.pages.setExpanding(False)
        self.pages.setUsesScrollButtons(True)
        self._stack = PageStack()
        self._made: set[int] = set()
        self._makers: list[Callable[[], QWidget]] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 0, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self.pages)
        column.addWidget(self._stack, 1)
        for title, make in (
            ("Choose", self._choose),
            ("Place", self._place),
            ("Pitfalls", self._pitfalls),
            (FEEDING, self._feeding),
            (AMP, self._amp),
            (SEVERAL_CARDS, self._cards),
        ):
            self._add_page(title, make)
        self.pages.currentChanged.connect(self._show_page)
        for index in range(2):
            self._make_page(index)
        studio.snippets.turn_to_part(SWITCHER, self.pages.tabText(0))

    def show_page(self, title: str) -> None:
        """Switch to a page."""
        titles = [self.pages.tabText(index) for index in range(self.pages.count())]
        self.pages.setCurrentIndex(titles.index(title))

    def _add_page(self, title: str, make: Callable[[], QWidget]) -> None:
        self.pages.blockSignals(True)
        self.pages.addTab(title)
        self.pages.blockSignals(False)
        self._stack.add(QWidget())
        self._makers.append(make)

    def _make_page(self, index: int) -> None:
        if index not in self._made:
            self._made.add(index)
            self._stack.replace(index, self._makers[index]())

    def _show_page(self, index: int) -> None:
        self._make_page(index)
        self._stack.show_page(index)
        self._studio.snippets.turn_to_part(SWITCHER, self.pages.tabText(index))

    def _choose(self) -> QWidget:
        # With a parent: Qt orders only what is in the same window, and the devices may be there.
        return ChoosePage(
            self._studio, self._theme, self.choice, self.pitfalls, self.pages, self._stack
        )

    def _place(self) -> QWidget:
        return PlacePage(self._studio, self._theme, self.choice, self.placement)

    def _pitfalls(self) -> QWidget:
        from gpu_studio.ui.switcher.pitfall_page import PitfallPage

        return PitfallPage(self._theme, self.pitfalls)

    def _feeding(self) -> QWidget:
        from gpu_studio.ui.switcher.workload_pages import feeding_page

        return feeding_page(self._studio, self._theme)

    def _amp(self) -> QWidget:
        from gpu_studio.ui.switcher.workload_pages import amp_page

        return amp_page(self._studio, self._theme)

    def _cards(self) -> QWidget:
        from gpu_studio.ui.switcher.workload_pages import cards_page

        return cards_page(self._studio, self._theme)
