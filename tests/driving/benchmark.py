"""What a person types, runs and reads in the Benchmark tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QTableView, QWidget

from gpu_studio.model.benchmark.results_table import Column
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.share_bars import ShareBars
from tests.driving.window import click, column, find, plain, wait_until, write

if TYPE_CHECKING:
    from gpu_studio.core.protocol import RunWorkload
    from gpu_studio.ui.benchmark_tab import BenchmarkTab


def type_sizes(tab: QWidget, sizes: str) -> QLineEdit:
    """Replace the sizes; return their field."""
    write(tab, "benchmark.sizes", sizes)
    return find(tab, "benchmark.sizes", QLineEdit)


def run(tab: BenchmarkTab, sizes: str = "64, 512, 2048") -> None:
    """Run some sizes, and wait for the end."""
    type_sizes(tab, sizes)
    click(tab, "benchmark.run")
    wait_over(tab)


def wait_over(tab: BenchmarkTab) -> None:
    """Wait until nothing runs."""
    wait_until(lambda: not tab.benchmark.state.is_busy)


def wait_samples(tab: BenchmarkTab) -> None:
    """Wait for the first samples of the run under way."""

    def timed() -> bool:
        running = tab.benchmark.running
        return running is not None and len(running.series) > 0

    wait_until(timed)


def cells(tab: QWidget, which: Column) -> list[str]:
    """Return a column of the results."""
    return column(tab, "benchmark.results", int(which))


def select_row(tab: QWidget, row: int) -> None:
    """Click on a result."""
    view = find(tab, "benchmark.results", QTableView)
    view.scrollTo(view.model().index(row, 0))
    place = view.visualRect(view.model().index(row, Column.SIZE)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)


def drawn_keys(tab: QWidget) -> tuple[str, ...]:
    """Return the keys of the curves on the live plot."""
    return find(tab, "benchmark.plot", LivePlot).curve_keys


def bars(tab: QWidget, name: str) -> dict[str, str]:
    """Return the labels of some bars and what stands at each."""
    return {bar.label: plain(bar.text) for bar in find(tab, name, ShareBars).bars}


def requests_of(tab: BenchmarkTab) -> list[RunWorkload]:
    """Return the request of each run, oldest first."""
    return [run.request for run in tab.benchmark.runs]
