"""The Benchmark tab: the same work on every device, with numbers that you can trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.benchmark.run_model import RunModel
from gpu_studio.model.pages import BENCHMARK, HISTORY, RUN
from gpu_studio.ui.benchmark.run_page import RunPage
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.tabs import CODE, PagedTab, tab_of

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


class BenchmarkTab(PagedTab):
    """Runs, and what was kept of them beside the results of others."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(tab_of(BENCHMARK), studio, theme, parent)
        self.benchmark = Benchmark(studio, self)
        self._history = HistoryModel(studio, self.benchmark, self)
        self.model = RunModel(studio, self.benchmark, self)
        run_page = RunPage(studio, self.model, theme, self._watch, self._show_history)
        self._history_page = LazyPage(
            "gpu_studio.ui.benchmark.history_page:HistoryPage",
            self._history, theme, parent=self,
        )  # fmt: skip
        self.add(run_page, self._history_page)
        self.model.front_wanted.connect(self._show_runs)
        self._history.begun.connect(self._on_begun)
        self._history.notified.connect(self.model.on_notified)
        self._history.overlaid.connect(self.model.show_overlay)

    def go_to(self, destination: Destination) -> None:
        """Compare the CPU and the cards, or open files."""
        super().go_to(destination)
        if destination.code is not None:
            self.model.own.choose(destination.code)
        elif destination.path is not None and destination.path.suffix.lower() == CODE:
            self.model.own.open_file(destination.path)
        elif destination.paths:
            self._show_history()
            self._history.open_files(destination.paths)
        if destination.starts:
            self._show_runs()
            self.model.compare()

    def _show_runs(self) -> None:
        self.pages.go_to(RUN)

    def _show_history(self) -> None:
        self.pages.go_to(HISTORY)

    def _on_begun(self) -> None:
        self.model.on_begun()
        self._show_runs()

    def _watch(self) -> None:
        self._show_history()
        self._history_page.make().ask_files()
