"""The Memory tab: memory now with experiments, the segment map, what fits, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.pages import ERROR, FIT, MEMORY, SEGMENTS
from gpu_studio.ui.memory.now_page import NowPage
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.tabs import PagedTab, tab_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_SEGMENTS = "gpu_studio.ui.memory.segment_page:SegmentPage"
_FIT = "gpu_studio.ui.memory.fit_page:FitPage"
_ERROR = "gpu_studio.ui.memory.error_page:ErrorPage"
_TEXTS = (".txt", ".log")


class MemoryTab(PagedTab):
    """Its pages share the chosen device and what is known of its memory."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(tab_of(MEMORY), studio, theme, parent)
        self.model = MemoryModel(studio, self)
        # These import numpy, which alone takes 80 ms.
        self._segments = LazyPage(_SEGMENTS, self.model, theme, parent=self)
        self._fit = LazyPage(_FIT, self.model, theme, parent=self)
        self._fit.created.connect(
            lambda page: page.model.no_history_found.connect(self._on_no_history)
        )
        self._error = LazyPage(_ERROR, self.model, theme, parent=self)
        self._dropped = Path()
        now = NowPage(self.model, theme)
        now.segments_wanted.connect(lambda: self.pages.go_to(SEGMENTS))
        self.add(now, self._segments, self._fit, self._error)

    def go_to(self, destination: Destination) -> None:
        """Bring a page in front, or open a file: a snapshot of one moment goes to the map."""
        super().go_to(destination)
        if destination.path is not None:
            self._dropped = destination.path
            self._open_file(destination.path)

    def _open_file(self, path: Path) -> None:
        if path.suffix.lower() in _TEXTS:
            self.pages.go_to(ERROR)
            self._error.make().model.open_file(path)
            return
        self.pages.go_to(FIT)
        self._fit.make().model.open_file(path)

    def _on_no_history(self, path: Path) -> None:
        if path == self._dropped:
            self.pages.go_to(SEGMENTS)
            self._segments.make().model.open_snapshot(path)
