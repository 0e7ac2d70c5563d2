"""The views of the runs; one is visible at a time."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from gpu_studio.ui.benchmark.explanation import Explanation
from gpu_studio.ui.benchmark.live_view import LiveView
from gpu_studio.ui.benchmark.size_view import SizeView
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.scroll_page import PageStack

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.theme import Theme


class View(Enum):
    """A view of the runs; its value is the text of its button."""

    LIVE = "Live"
    SIZES = "Time over size"
    EXPLANATION = "Explained"
    HISTORY = "History"


class HistoryPart(Enum):
    """What the history has to compare with; its value is the title of its page."""

    RUNS = "Kept runs"
    RECORDINGS = "Recordings"
    PUBLISHED = "Published"


class BenchmarkPlots(PageStack):
    """Live samples, time over size, or one result explained.

    Signals:
        run_pointed(Run): the run of the size under the mouse; None if it left the sizes.
    """

    run_pointed = Signal(object)

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.live = LiveView(benchmark, board, theme)
        self._sizes = SizeView(benchmark, board, theme)
        self._explanation = Explanation(benchmark, board, theme)
        self._by_view = {
            View.LIVE: self.live,
            View.SIZES: self._sizes,
            View.EXPLANATION: self._explanation,
        }
        for page in self._by_view.values():
            self.add(page)
        self._last_plot: LivePlot = self.live
        self._sizes.run_pointed.connect(self.run_pointed)

    @property
    def views(self) -> tuple[QWidget, ...]:
        """All pages; one of them is visible."""
        return tuple(self._by_view.values())

    @property
    def explains(self) -> bool:
        """Whether the explanation is visible."""
        return self.shown is self._explanation

    @property
    def front(self) -> LivePlot:
        """The visible plot, or the last one before an explanation without a plot."""
        curves = self._explanation.plot
        if self.explains and curves is not None and not curves.isHidden():
            return curves
        return self._last_plot

    @property
    def front_caption(self) -> str:
        """What `front` shows, in words."""
        front = self.front
        if front is self.live:
            return self.live.caption
        return (self._sizes if front is self._sizes else self._explanation).captions[0]

    @property
    def captions(self) -> tuple[str, ...]:
        """The visible page's contents in words, from the longest text to the shortest."""
        if self.shown is self._sizes:
            return self._sizes.captions
        if self.shown is self._explanation:
            return self._explanation.captions
        return (self.live.caption,)

    def show_view(self, view: View) -> None:
        """Show a page."""
        self.show_page(list(self._by_view).index(view))
        if isinstance(self.shown, LivePlot):
            self._last_plot = self.shown

    def select(self, run: Run | None) -> None:
        """Show one run; None follows the current run."""
        self.live.select(run)
        self._sizes.select(run)
        self._explanation.select(run)
