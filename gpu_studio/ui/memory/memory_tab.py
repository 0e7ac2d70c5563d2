"""The Memory tab: use now and over time, segments, experiments, errors, and what fits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QTabBar, QVBoxLayout, QWidget

from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.memory.oom_experiment import OomState
from gpu_studio.ui.memory.memory_curves import MemoryCurves
from gpu_studio.ui.memory.oom_page import OomPage
from gpu_studio.ui.memory.tank_card import TankCard
from gpu_studio.ui.parts import GAP, MARGIN
from gpu_studio.ui.scroll_page import PageStack

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_POLL_MS = 500
_FAST_POLL_MS = 100  # for the segment map, while it is visible
_SPACING = 6
CURVES, SEGMENTS, LAB_PAGE, ERROR, FIT = range(5)
_PAGES = ("Curves", "Segment map", "Break it", "Read an error", "Will it fit?")


def _segment_page(model: MemoryModel, theme: Theme) -> QWidget:
    from gpu_studio.ui.memory.segment_page import SegmentPage

    return SegmentPage(model, theme)


def _error_page(theme: Theme) -> QWidget:
    from gpu_studio.ui.memory.error_page import ErrorPage

    return ErrorPage(theme)


def _fit_page(model: MemoryModel, theme: Theme) -> QWidget:
    from gpu_studio.ui.memory.fit_page import FitPage

    return FitPage(model, theme)


class MemoryTab(QWidget):
    """The memory bar on top, and below it one page at a time."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory")
        self.model = MemoryModel(studio, self)
        self._polls = QTimer(self)
        self._polls.setInterval(_POLL_MS)
        self._polls.timeout.connect(self._poll)
        self._tank_card = TankCard(studio.session, self.model, theme, self)
        self._pages = QTabBar()
        self._pages.setObjectName("memory.pages")
        self._pages.setAccessibleName("Memory pages")
        self._pages.setDrawBase(False)
        self._pages.setExpanding(False)
        for title in _PAGES:
            self._pages.addTab(title)
        self._stack = PageStack()
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(_SPACING)
        column.addWidget(self._tank_card)
        column.addWidget(self._pages)
        column.addWidget(self._stack, 1)
        self._curves = MemoryCurves(self.model, theme, self)
        self._lab = OomPage(studio, self.model, theme, self)
        made = {CURVES: self._curves, LAB_PAGE: self._lab}
        self._unmade: dict[int, Callable[[], QWidget]] = {
            SEGMENTS: partial(_segment_page, self.model, theme),
            ERROR: partial(_error_page, theme),
            FIT: partial(_fit_page, self.model, theme),
        }
        for page in range(len(_PAGES)):
            self._stack.add(made.get(page) or QWidget())
        self._pages.currentChanged.connect(self._show_page)
        self._lab.segments_wanted.connect(self._go_to_segments)
        self.model.experiment.state_changed.connect(self._show_one_tank)
        self.model.experiment.results_changed.connect(self._show_one_tank)

    # ── pages ────────────────────────────────────────────────────────────────────────────────

    def show_page(self, page: int) -> None:
        """Switch to a page."""
        self._pages.setCurrentIndex(page)

    def _show_page(self, page: int) -> None:
        if page in self._unmade:
            self._stack.replace(page, self._unmade.pop(page)())
        self._stack.show_page(page)
        self._tank_card.setVisible(page != ERROR)  # the error may come from any card
        self._show_one_tank()
        self._polls.setInterval(_FAST_POLL_MS if page == SEGMENTS else _POLL_MS)
        self._poll()

    def _show_one_tank(self) -> None:
        """Hide the bar on top while a result below shows that memory, and no experiment runs."""
        experiment = self.model.experiment
        is_below = self._stack.current == LAB_PAGE and self._lab.shows_tank
        self._tank_card.set_bar_shown(not is_below or experiment.state is not OomState.IDLE)

    def _go_to_segments(self) -> None:
        self._pages.setCurrentIndex(SEGMENTS)

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
        page = self._stack.current
        if not self.isVisible() or self.window().isMinimized() or page == ERROR:
            return
        self.model.poll(with_segments=page == SEGMENTS)
        if page == CURVES:
            self._curves.follow()
        elif page == LAB_PAGE:
            self._lab.follow()
