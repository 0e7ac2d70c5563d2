"""What a person reads, types and clicks in the benchmark's tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QTableView,
    QToolButton,
    QWidget,
)

from gpu_studio.model.benchmark.results_table import Column
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.share_bars import ShareBars
from tests.ui.by_name import find

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.protocol import RunWorkload
    from gpu_studio.ui.benchmark_tab import BenchmarkTab


def text(tab: QWidget, name: str) -> str:
    """Return a label's text as a person reads it; empty where it is not shown."""
    label = find(tab, name, QLabel)
    return label.text().replace("\u202f", " ").replace("\u00a0", " ") if label.isVisible() else ""


def click(qtbot: QtBot, tab: QWidget, name: str) -> None:
    button = find(tab, name, QPushButton)
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def toggle(qtbot: QtBot, tab: QWidget, name: str) -> None:
    box = find(tab, name, QCheckBox)
    assert box.isEnabled()
    # A check box hears a click on its text alone.
    qtbot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))


def type_sizes(qtbot: QtBot, tab: QWidget, sizes: str) -> QLineEdit:
    field = find(tab, "benchmark.sizes", QLineEdit)
    field.selectAll()
    qtbot.keyClicks(field, sizes)
    return field


def run(qtbot: QtBot, tab: BenchmarkTab, sizes: str = "64, 512, 2048") -> None:
    type_sizes(qtbot, tab, sizes)
    click(qtbot, tab, "benchmark.run")
    wait_over(qtbot, tab)


def wait_over(qtbot: QtBot, tab: BenchmarkTab) -> None:
    qtbot.waitUntil(lambda: not tab.benchmark.state.is_busy)


def wait_samples(qtbot: QtBot, tab: BenchmarkTab) -> None:
    def timed() -> bool:
        running = tab.benchmark.running
        return running is not None and len(running.series) > 0

    qtbot.waitUntil(timed)


def cells(tab: QWidget, column: Column) -> list[str]:
    model = find(tab, "benchmark.results", QTableView).model()
    return [
        model.index(row, column).data().replace("\u202f", " ") for row in range(model.rowCount())
    ]


def select_row(qtbot: QtBot, tab: QWidget, row: int) -> None:
    view = find(tab, "benchmark.results", QTableView)
    view.scrollTo(view.model().index(row, 0))
    place = view.visualRect(view.model().index(row, Column.SIZE)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)


def drawn(tab: QWidget, plot: str, key: str) -> tuple[list[float], list[float]]:
    """Return what a curve shows, in the data's own scale."""
    curve = find(tab, plot, LivePlot)._curves[key]
    assert curve.item is not None
    xs, ys = curve.item.getOriginalDataset()
    return ([], []) if xs is None else (xs.tolist(), ys.tolist())


def click_expert(qtbot: QtBot, tab: QWidget) -> None:
    expert = find(tab, "benchmark.expert", QToolButton)
    find(tab, "benchmark.choices", QScrollArea).ensureWidgetVisible(expert)
    qtbot.mouseClick(expert, Qt.MouseButton.LeftButton)


def drawn_keys(tab: QWidget) -> tuple[str, ...]:
    return find(tab, "benchmark.plot", LivePlot).curve_keys


def bars(tab: QWidget, name: str) -> dict[str, str]:
    return {bar.label: bar.text.replace("\u202f", " ") for bar in find(tab, name, ShareBars).bars}


def requests_of(tab: BenchmarkTab) -> list[RunWorkload]:
    return [run.request for run in tab.benchmark.runs]
