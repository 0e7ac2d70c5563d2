"""What a person types, runs and reads in the Benchmark tab."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QTabBar, QTableView, QToolButton, QWidget

from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.trust_chip import TrustChip
from tests.driving.window import click, column, find, open_page, plain, text, wait_until, write


def type_sizes(tab: QWidget, sizes: str) -> QLineEdit:
    """Replace the sizes; return their field."""
    write(tab, "benchmark.sizes", sizes)
    return find(tab, "benchmark.sizes", QLineEdit)


def turn_to(tab: QWidget, title: str) -> None:
    open_page(tab, "benchmark.pages", title)


def front(tab: QWidget) -> str:
    bar = find(tab, "benchmark.pages", QTabBar)
    return bar.tabText(bar.currentIndex())


def run(tab: BenchmarkTab, sizes: str = "64, 512, 2048") -> None:
    type_sizes(tab, sizes)
    click(tab, "benchmark.run")
    wait_over(tab)


def wait_over(tab: BenchmarkTab) -> None:
    wait_until(lambda: not tab.benchmark.state.is_busy)


def wait_samples(tab: BenchmarkTab) -> None:
    def timed() -> bool:
        running = tab.benchmark.running
        return running is not None and len(running.series) > 0

    wait_until(timed)


def cells(tab: QWidget, title: str) -> list[str]:
    """Return a column of the results; that of a device by its name."""
    return column(tab, "benchmark.results", title)


def columns_of(tab: QWidget) -> list[str]:
    """Return the titles of the columns of the results, without the arrow of a sorted one."""
    model = find(tab, "benchmark.results", QTableView).model()
    heads = (model.headerData(at, Qt.Orientation.Horizontal) for at in range(model.columnCount()))
    return [str(head).rstrip(" ↑↓") for head in heads]


def cell_place(tab: QWidget, row: int, title: str) -> QPoint:
    """Return the middle of a cell of the results, in its view."""
    view = find(tab, "benchmark.results", QTableView)
    view.scrollTo(view.model().index(row, 0))
    return view.visualRect(view.model().index(row, columns_of(tab).index(title))).center()


def select_row(tab: QWidget, row: int, title: str = "Size") -> None:
    """Click on a size, or on the median of a device."""
    place = cell_place(tab, row, title)
    viewport = find(tab, "benchmark.results", QTableView).viewport()
    QTest.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=place)


def drawn_keys(tab: QWidget) -> tuple[str, ...]:
    return find(tab, "benchmark.plot", LivePlot).curve_keys


def explain(tab: QWidget) -> None:
    if not find(tab, "benchmark.why.more", QToolButton).isChecked():
        click(tab, "benchmark.why.more")


def bars(tab: QWidget, name: str) -> dict[str, str]:
    """Return the labels of some bars and what stands at each."""
    return {bar.name: plain(bar.text) for bar in find(tab, name, ResultBars).bars}


def trust(tab: QWidget) -> tuple[str, str]:
    """Return the tone and the words of the trust chip; both empty if it is not shown."""
    chip = find(tab, "benchmark.trust", TrustChip)
    return (chip.notice.tone.value, plain(chip.notice.sentence)) if chip.isVisible() else ("", "")


def reasons(tab: QWidget) -> str:
    """Return what the trust chip says under the mouse."""
    return plain(find(tab, "benchmark.trust", TrustChip).accessibleDescription())


def headline(tab: QWidget) -> str:
    return text(tab, "benchmark.hero.headline")


def requests_of(tab: BenchmarkTab) -> list[RunWorkload]:
    """Return the request of each run, oldest first."""
    return [run.request for run in tab.benchmark.runs]
