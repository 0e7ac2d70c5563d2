"""GPU Studio's real window, driven through its object names as a person would."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from gpu_studio.app import build_window
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving import window

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.sensors import SensorSource

_LONGEST_WAIT_S = 300.0


class Driver:
    """One open window, as the program opens it; settings are kept nowhere.

    Each key and each click has a turn of the event loop of its own, as a person's have.

    Args:
        budget_s: the time of each run.
        sensors: those of this PC if there are no others.
    """

    def __init__(self, budget_s: float, sensors: SensorSource | None = None) -> None:
        settings = Settings(None)
        settings.change(budget_s=budget_s)
        self.window = build_window(settings=settings, sensor_source=sensors, tabs_after_paint=True)
        self.studio = self.window.findChild(Studio)

    @cached_property  # looking through the whole window costs as much as what is measured
    def benchmark(self) -> Benchmark:
        """The runs of the Benchmark tab, which is made after the first paint."""
        return self.window.findChild(BenchmarkTab).benchmark

    def wait(self, is_done: Callable[[], bool]) -> None:
        window.wait_until(is_done, _LONGEST_WAIT_S)

    def wait_ready(self) -> None:
        window.wait_ready(self.studio)

    def show_benchmark(self) -> None:
        window.open_tab(self.window, "Benchmark")

    def run(self, workload: str, sizes: str) -> list[Run]:
        """Press Run and return the runs of that plan; ``LOW:HIGH`` is a sweep."""
        window.choose_data(self.window, "benchmark.workload", workload)
        QApplication.processEvents()
        self._type("benchmark.sizes", sizes.replace(":", ".."))
        before = len(self.benchmark.runs)
        window.click(self.window, "benchmark.sweep" if ":" in sizes else "benchmark.run")
        self.wait(lambda: not self.benchmark.state.is_busy)
        runs = self.benchmark.runs[before:]
        if not runs or not all(run.result for run in runs):
            raise RuntimeError(f"A run did not finish: {self.benchmark.notice.sentence}")
        return list(runs)

    def _type(self, name: str, words: str) -> None:
        field = window.find(self.window, name, QWidget)
        QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        for letter in words:
            QTest.keyClick(field, letter)
            QApplication.processEvents()

    @property
    def is_plot_built(self) -> bool:
        return window.find(self.window, "benchmark.plot", LivePlot).plot is not None
