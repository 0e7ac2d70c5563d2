"""The Memory tab: use now and over time, segments, experiments, errors, and what fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.memory.oom_experiment import OomState
from gpu_studio.model.pages import BREAK_IT, CURVES, MEMORY, READ_ERROR, SEGMENTS
from gpu_studio.ui.lazy_page import LazyPage
from gpu_studio.ui.memory.memory_curves import MemoryCurves
from gpu_studio.ui.memory.oom_page import OomPage
from gpu_studio.ui.memory.tank_card import TankCard
from gpu_studio.ui.page_bar import PageBar
from gpu_studio.ui.parts import GAP, MARGIN
from gpu_studio.ui.tabs import TabContents, tab_of

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.pages import Destination, Page
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_POLL_MS = 500
_FAST_POLL_MS = 100  # for the segment map, while it is visible
_SPACING = 6
_SEGMENTS = "gpu_studio.ui.memory.segment_page:SegmentPage"
_ERROR = "gpu_studio.ui.memory.error_page:ErrorPage"
_FIT = "gpu_studio.ui.memory.fit_page:FitPage"


class MemoryTab(TabContents):
    """One page at a time, and the memory bar above it."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory")
        self.model = MemoryModel(studio, self)
        self._polls = QTimer(self)
        self._polls.setInterval(_POLL_MS)
        self._polls.timeout.connect(self._poll)
        self._tank_card = TankCard(studio.session, self.model, theme, self)
        self.pages = PageBar(tab_of(MEMORY))
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(_SPACING)
        column.addWidget(self.pages)
        column.addWidget(self._tank_card)
        column.addWidget(self.pages.stack, 1)
        self._curves = MemoryCurves(self.model, theme, self)
        self._lab = OomPage(studio, self.model, theme, self)
        self.pages.add(
            self._curves,
            LazyPage(_SEGMENTS, self.model, theme, parent=self),
            self._lab,
            # These two import numpy, which alone takes 80 ms.
            LazyPage(_ERROR, theme, parent=self),
            LazyPage(_FIT, self.model, theme, parent=self),
        )
        self.pages.page_changed.connect(self._show_page)
        self._lab.segments_wanted.connect(self._go_to_segments)
        self.model.experiment.state_changed.connect(self._show_one_tank)
        self.model.experiment.results_changed.connect(self._show_one_tank)

    # ── pages ────────────────────────────────────────────────────────────────────────────────

    def go_to(self, destination: Destination) -> None:
        if destination.page.part:
            self.pages.go_to(destination.page)

    def _show_page(self, page: Page) -> None:
        self._tank_card.setVisible(page != READ_ERROR)  # the error may come from any card
        self._show_one_tank()
        self._polls.setInterval(_FAST_POLL_MS if page == SEGMENTS else _POLL_MS)
        self._poll()

    def _show_one_tank(self) -> None:
        """Hide the bar on top while a result below shows that memory, and no experiment runs."""
        experiment = self.model.experiment
        is_below = self.pages.front == BREAK_IT and self._lab.shows_tank
        self._tank_card.set_bar_shown(not is_below or experiment.state is not OomState.IDLE)

    def _go_to_segments(self) -> None:
        self.pages.go_to(SEGMENTS)

    # ── polling ──────────────────────────────────────────────────────────────────────────────

    def showEvent(self, event: QShowEvent) -> None:
        """Read the memory twice a second while visible; the segments more often."""
        super().showEvent(event)
        self._polls.start()
        self._poll()

    def hideEvent(self, event: QHideEvent) -> None:
        """Poll nothing while hidden."""
        super().hideEvent(event)
        self._polls.stop()

    def _poll(self) -> None:
        page = self.pages.front
        if not self.isVisible() or self.window().isMinimized() or page == READ_ERROR:
            return
        self.model.poll(with_segments=page == SEGMENTS)
        if page == CURVES:
            self._curves.follow()
        elif page == BREAK_IT:
            self._lab.follow()
