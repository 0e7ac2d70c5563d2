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
from gpu_studio.core.messages.placement_messages import (
    InspectFile,
    PlaceModel,
    PlaceTensors,
    UseDevice,
)
from gpu_studio.model.engine_session import Reply

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event

DEVICES = "Devices"
RACE = "Race"
BENCHMARK = "Benchmark"
CHECK = "Check"
SWITCHER = "Switcher"
FEEDING = "Feeding"
AMP = "AMP and reproducibility"
SEVERAL_CARDS = "Several cards"
# A run is missing: each page that runs workloads shows the code of the run that it shows.
_PAGES: dict[type, tuple[str, str]] = {
    UseDevice: (SWITCHER, "Choose"),
    InspectFile: (SWITCHER, "Place"),
    PlaceModel: (SWITCHER, "Place"),
    PlaceTensors: (SWITCHER, "Place"),
    RunPitfall: (SWITCHER, "Pitfalls"),
    EmptyCache: ("Memory", ""),
    ReadMemory: ("Memory", ""),
    ReadSegments: ("Memory", ""),
    RunMemoryExperiment: ("Memory", ""),
}


class Snippets(QObject):
    """The snippet of each page, and which page is in front.

    A page is a tab, or a part of a tab that has several pages of its own.

    Signals:
        snippet_changed(str): the code of the page in front; empty if it has none yet.
    """

    snippet_changed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tab = ""
        self._parts: dict[str, str] = {}
        self._kept: dict[tuple[str, str], str] = {}
        self._shown = ""

    @property
    def snippet(self) -> str:
        """The code of the page in front."""
        return self._shown

    def turn_to(self, tab: str) -> None:
        """Follow the window to a tab."""
        self._tab = tab
        self._update()

    def turn_to_part(self, tab: str, part: str) -> None:
        """Follow a tab to one of its pages."""
        self._parts[tab] = part
        self._update()

    def show(self, snippet: str, tab: str, part: str | None = None) -> None:
        """Replace the code of a page: without a part, of the tab's page in front."""
        self._kept[tab, self._part(tab) if part is None else part] = snippet
        self._update()

    def follow(self, reply: Reply) -> None:
        """Show the code that comes with the answers to a request on the request's page."""
        if type(reply.request) in _PAGES:
            reply.event_received.connect(self._take)

    def _take(self, event: Event) -> None:
        reply = self.sender()
        assert isinstance(reply, Reply)
        snippet = getattr(event, "snippet", "")
        if snippet:  # an answer without code leaves that of the last action
            self.show(snippet, *_PAGES[type(reply.request)])

    def _part(self, tab: str) -> str:
        return self._parts.get(tab, "")

    def _update(self) -> None:
        snippet = self._kept.get((self._tab, self._part(self._tab)), "")
        if snippet != self._shown:
            self._shown = snippet
            self.snippet_changed.emit(snippet)
