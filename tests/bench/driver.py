"""GPU Studio's real window, driven through its object names as a person would."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QEventLoop, QObject, QTimer
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QTabWidget

from gpu_studio.app import build_window
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.protocol import RunFinished

Found = TypeVar("Found", bound=QObject)

_LONGEST_WAIT_MS = 300_000
_BENCHMARK_TAB = 2


class Driver:
    """One open window; settings are kept nowhere.

    Args:
        budget_s: the time of each run.
    """

    def __init__(self, budget_s: float) -> None:
        settings = Settings(None)
        settings.change(budget_s=budget_s)
        self.window = build_window(settings=settings)
        self.studio = self.find(Studio)
        self.benchmark = self.find(BenchmarkTab).benchmark

    def find(self, kind: type[Found], name: str = "") -> Found:
        """Return a part of the window."""
        found = self.window.findChild(kind, name) if name else self.window.findChild(kind)
        if found is None:
            raise LookupError(f"The window has no {name or kind.__name__}.")
        return found

    def wait(self, is_done: Callable[[], bool]) -> None:
        """Let the window live until something is so."""
        if is_done():
            return
        loop = QEventLoop()
        look = QTimer()
        look.timeout.connect(lambda: is_done() and loop.quit())
        look.start(20)
        QTimer.singleShot(_LONGEST_WAIT_MS, loop.quit)
        loop.exec()
        if not is_done():
            raise TimeoutError("The window did not get there in five minutes.")

    def wait_ready(self) -> None:
        """Wait for the engine and the sensors."""
        self.wait(
            lambda: (
                self.studio.session.state is EngineState.READY
                and self.studio.sensors.inventory is not None
            )
        )

    def show_benchmark(self) -> None:
        """Bring the Benchmark tab to the front."""
        self.find(QTabWidget, "tabs").setCurrentIndex(_BENCHMARK_TAB)

    def run(self, workload: str, sizes: str) -> list[RunFinished]:
        """Press Run and return the results of that plan; ``LOW:HIGH`` is a sweep."""
        choice = self.find(QComboBox, "benchmark.workload")
        choice.setCurrentIndex(choice.findData(workload))
        low, colon, high = sizes.partition(":")
        self.find(QCheckBox, "benchmark.sweep").setChecked(bool(colon))
        if colon:
            self.find(QLineEdit, "benchmark.sweep.low").setText(low)
            self.find(QLineEdit, "benchmark.sweep.high").setText(high)
        else:
            self.find(QLineEdit, "benchmark.sizes").setText(sizes)
        before = len(self.benchmark.runs)
        self.find(QPushButton, "benchmark.run").click()
        self.wait(lambda: not self.benchmark.state.is_busy)
        results = [run.result for run in self.benchmark.runs[before:]]
        if not results or None in results:
            raise RuntimeError(f"A run did not finish: {self.benchmark.notice.text}")
        return [result for result in results if result is not None]

    @property
    def is_plot_built(self) -> bool:
        """Whether the live plot has its curves."""
        return self.find(LivePlot, "benchmark.plot").plot is not None
