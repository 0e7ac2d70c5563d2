"""The PyTorch code of the page in front: that of its last action or of its chosen result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.memory_messages import (
    EmptyCache,
    ReadMemory,
    ReadSegments,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.pitfall_messages import RunPitfall
from gpu_studio.core.messages.placement_messages import PlaceModel, UseDevice
from gpu_studio.model.engine_session import Reply
from gpu_studio.model.pages import LESSONS, MEMORY, SWITCH, PageId

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event

# A run is missing: each page that runs workloads shows the code of the run that it shows.
_PAGES = {
    UseDevice: SWITCH,
    PlaceModel: SWITCH,
    RunPitfall: LESSONS,
    EmptyCache: MEMORY,
    ReadMemory: MEMORY,
    ReadSegments: MEMORY,
    RunMemoryExperiment: MEMORY,
}


class Snippets(QObject):
    """The snippet of each page, and which page is in front.

    Signals:
        snippet_changed(str): the code of the page in front; empty if it has none yet.
        wanted(): the user wants to see it.

    Attributes:
        snippet: the code of the page in front.
    """

    snippet_changed = Signal(str)
    wanted = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tab = ""
        self._front: dict[str, PageId] = {}  # of the tabs that have several pages
        self._by_page: dict[PageId, str] = {}
        self.snippet = ""

    def turn_to(self, page: PageId) -> None:
        """Follow the window to a tab, or a tab to one of its pages."""
        if page.part:
            self._front[page.tab] = page
        else:
            self._tab = page.tab
        self._update()

    def show(self, snippet: str, page: PageId) -> None:
        """Replace the code of a page; a tab stands for its page in front."""
        self._by_page[self._front.get(page.tab, page) if not page.part else page] = snippet
        self._update()

    def on_request_submitted(self, reply: Reply) -> None:
        """Show the code that comes with the answers to a request on the request's page."""
        if type(reply.request) in _PAGES:
            reply.event_received.connect(self._show_answer)

    def _show_answer(self, event: Event) -> None:
        reply = self.sender()
        assert isinstance(reply, Reply)
        snippet = getattr(event, "snippet", "")
        if snippet:  # an answer without code leaves that of the last action
            self.show(snippet, _PAGES[type(reply.request)])

    def _update(self) -> None:
        front = self._front.get(self._tab, PageId(self._tab))
        snippet = self._by_page.get(front, "")
        if snippet != self.snippet:
            self.snippet = snippet
            self.snippet_changed.emit(snippet)
