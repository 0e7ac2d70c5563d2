"""The Switcher tab: choose a device, place models, pitfalls, data loading, several cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from gpu_studio.model.pages import SWITCHER
from gpu_studio.model.switcher.device_choice import DeviceChoice
from gpu_studio.model.switcher.pitfalls import PitfallsModel
from gpu_studio.model.switcher.placement_model import PlacementModel
from gpu_studio.ui.parts import GAP, MARGIN
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.switcher.choose_page import ChoosePage
from gpu_studio.ui.switcher.place_page import PlacePage
from gpu_studio.ui.tabs import PageBar, TabContents, tab_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_PITFALLS = "gpu_studio.ui.switcher.pitfall_page:PitfallPage"
_WORKLOADS = (
    "gpu_studio.ui.switcher.workload_pages:feeding_page",
    "gpu_studio.ui.switcher.workload_pages:amp_page",
    "gpu_studio.ui.switcher.workload_pages:cards_page",
)


class SwitcherTab(TabContents):
    """A bar of pages; all but the first two are created on first use."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("switcher")
        self.choice = DeviceChoice(studio, self)
        self.placement = PlacementModel(studio, self.choice, self)
        self.pitfalls = PitfallsModel(studio, self)
        self.pages = PageBar(tab_of(SWITCHER))
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 0, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self.pages)
        column.addWidget(self.pages.stack, 1)
        # With a parent: Qt orders only what is in the same window.
        choose = ChoosePage(studio, theme, self.choice, self.pages, self.pages.stack)
        place = PlacePage(studio, theme, self.choice, self.placement)
        # The modules of the others are a third of the tab's import: 14 ms each.
        self.pages_later = (
            LazyPage(_PITFALLS, theme, self.pitfalls, parent=self),
            *(LazyPage(page, studio, theme, parent=self) for page in _WORKLOADS),
        )
        self.pages.add(choose, place, *self.pages_later)
        self.pages.page_changed.connect(studio.snippets.turn_to)
        studio.snippets.turn_to(self.pages.front)

    def go_to(self, destination: Destination) -> None:
        if destination.page.part:
            self.pages.go_to(destination.page)
