"""The history: kept runs, their names, an overlay, and files from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QTableView,
    QWidget,
)

from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.benchmark import benchmark_history
from gpu_studio.model.benchmark.benchmark_history import BenchmarkHistory
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.core.benchmark.kept_runs import kept_run
from tests.driving.benchmark import drawn_keys, run, select_row, type_sizes, wait_over, wait_samples
from tests.driving.window import click, drawn, find, numbers, text
from tests.ui.benchmark.answers import hold

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines


def history_rows(tab: QWidget) -> list[list[str]]:
    model = find(tab, "benchmark.history.table", QTableView).model()
    return [
        [model.index(row, column).data() for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


def open_history(qtbot: QtBot, tab: BenchmarkTab, count: int) -> None:
    click(tab, "benchmark.view.history")
    qtbot.waitUntil(lambda: len(history_rows(tab)) == count)


def test_older_runs_come_when_they_are_asked_for(
    qtbot: QtBot, ready: BenchmarkTab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    history = ready.findChild(BenchmarkHistory)
    monkeypatch.setattr(history, "_folder", tmp_path)
    run(ready, "64, 128, 256")
    open_history(qtbot, ready, 3)
    more = find(ready, "benchmark.history.more", QPushButton)
    assert more.isHidden()
    monkeypatch.setattr(benchmark_history, "_PAGE", 1)
    monkeypatch.setattr(history, "_most", 2)
    history.refresh()
    qtbot.waitUntil(lambda: len(history_rows(ready)) == 2)
    assert numbers(more.text()) == ["1"]
    click(ready, "benchmark.history.more")
    qtbot.waitUntil(lambda: len(history_rows(ready)) == 3)
    assert more.isHidden()


def test_a_long_history_asks_only_for_what_is_in_sight_and_scrolls_with_the_page(
    qtbot: QtBot, ready: BenchmarkTab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each column was as wide as all its cells: 100,000 questions held the window for a second."""
    saved = History(tmp_path / FOLDER_NAME)
    for minute in range(50):
        saved.add(kept_run(f"2026-01-01T00:{minute:02}:00+00:00"))
    history = ready.findChild(BenchmarkHistory)
    monkeypatch.setattr(history, "_folder", tmp_path)
    monkeypatch.setattr(history, "_opened", None)
    asked: list[int] = []

    def text_and_note(rows: TextRows, row: int, column: int) -> str:
        asked.append(row)
        return rows._rows[row][column]

    monkeypatch.setattr(TextRows, "text", text_and_note)
    ready.window().resize(1000, 540)
    click(ready, "benchmark.view.history")
    table = find(ready, "benchmark.history.table", QTableView)
    rows = table.model()
    qtbot.waitUntil(lambda: rows.rowCount() > 0)
    QApplication.processEvents()
    assert rows.rowCount() == 20
    assert numbers(find(ready, "benchmark.history.more", QPushButton).text()) == ["30"]
    longest = {asked.count(row) for row in range(rows.rowCount() - 5, rows.rowCount())}
    assert max(longest) <= rows.columnCount()
    assert table.verticalScrollBar().maximum() == 0
    assert table.viewport().height() >= 20 * table.rowHeight(0)
    # The page follows the arrow keys to the last row.
    table.setFocus()
    table.selectRow(rows.rowCount() - 1)
    page = ready.window()
    last = table.visualRect(rows.index(rows.rowCount() - 1, 0)).center()
    qtbot.waitUntil(
        lambda: page.viewport().rect().contains(table.viewport().mapTo(page.viewport(), last))
    )


def test_the_history_lists_names_and_deletes_after_asking(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    click(ready, "benchmark.view.history")
    assert text(ready, "benchmark.history.empty")
    click(ready, "benchmark.view.live")
    run(ready, "64, 128")
    open_history(qtbot, ready, 2)
    view = find(ready, "benchmark.history.table", QTableView)
    view.setFocus()
    view.selectRow(0)
    size = history_rows(ready)[0][3]
    assert "40 samples" in text(ready, "benchmark.history.details")
    name = find(ready, "benchmark.history.name", QLineEdit)
    name.setFocus()
    qtbot.keyClicks(name, "<b>before</b>")
    qtbot.keyClick(name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: history_rows(ready)[0][1] == "<b>before</b>")
    click(ready, "benchmark.history.delete")
    delete = find(ready, "benchmark.history.delete", QPushButton)
    assert delete.text().endswith("?")
    assert len(history_rows(ready)) == 2
    view.selectRow(1)  # takes the question back
    assert delete.text() == "Delete"
    view.selectRow(0)
    click(ready, "benchmark.history.delete")
    click(ready, "benchmark.history.delete")
    qtbot.waitUntil(lambda: len(history_rows(ready)) == 1)
    assert history_rows(ready)[0][3] != size


def test_a_ghost_races_along_on_the_live_plot(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 128")
    open_history(qtbot, ready, 2)
    view = find(ready, "benchmark.history.table", QTableView)
    sizes = [row[3].replace("\u202f", " ") for row in history_rows(ready)]
    view.selectRow(sizes.index("64 × 64"))
    details = text(ready, "benchmark.history.details")
    assert "Not comparable" in details
    assert all(size in details.split("Not comparable")[1] for size in ("64 × 64", "128 × 128"))
    click(ready, "benchmark.history.ghost")
    assert "Not comparable" in text(ready, "benchmark.history.outcome")
    assert find(ready, "benchmark.view.history", QPushButton).isChecked()
    view.selectRow(sizes.index("128 × 128"))
    click(ready, "benchmark.history.ghost")
    qtbot.waitUntil(lambda: "ghost" in drawn_keys(ready))
    assert find(ready, "benchmark.view.live", QPushButton).isChecked()
    plot = find(ready, "benchmark.plot", LivePlot)
    assert "Ryzen 7 5700G" in plot._curves["ghost"].label
    assert "overlay" in plot.accessibleDescription()
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "ghost")[0]) == 40)
    # Beside other work it would say nothing.
    select_row(ready, 0)
    assert "ghost" not in drawn_keys(ready)
    select_row(ready, 1)
    assert "ghost" in drawn_keys(ready)
    click(ready, "benchmark.view.history")
    click(ready, "benchmark.history.ghost.end")
    assert "ghost" not in drawn_keys(ready)


def test_a_refused_file_is_reported_and_the_list_stays(
    qtbot: QtBot, ready: BenchmarkTab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(ready, "64")
    open_history(qtbot, ready, 1)
    path = tmp_path / "&lt;b&gt;.json"
    path.write_text("{")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: (str(path), ""))
    click(ready, "benchmark.history.import")
    qtbot.waitUntil(lambda: "refused" in text(ready, "benchmark.history.outcome"))
    assert find(ready, "benchmark.history.outcome", QLabel).property("tone") == "failure"
    assert len(history_rows(ready)) == 1


def test_who_looks_at_the_history_during_a_plan_is_left_there(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "64, 128")
    click(ready, "benchmark.run")
    wait_samples(ready)
    click(ready, "benchmark.view.history")
    engines.latest.go()
    qtbot.waitUntil(lambda: len(ready.benchmark.runs) == 2)
    wait_samples(ready)
    assert find(ready, "benchmark.view.history", QPushButton).isChecked()
    assert find(ready, "benchmark.history", QWidget).isVisible()
    click(ready, "benchmark.stop")
    wait_over(ready)
    assert find(ready, "benchmark.history", QWidget).isVisible()


def test_a_narrow_history_leaves_out_what_all_runs_have_alike(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    def hidden() -> set[str]:
        heads = (table.model().headerData(column, Qt.Orientation.Horizontal) for column in columns)
        return {
            head
            for column, head in zip(columns, heads, strict=True)
            if table.isColumnHidden(column)
        }

    run(ready, "64, 128")
    open_history(qtbot, ready, 2)
    table = find(ready, "benchmark.history.table", QTableView)
    columns = range(table.model().columnCount())
    ready.window().resize(1600, 720)
    qtbot.waitUntil(lambda: hidden() == {"Name", "Mode"})
    ready.window().resize(820, 720)
    qtbot.waitUntil(lambda: {"Precision", "Workload"} <= hidden())
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    # What tells two runs apart stays.
    find(ready, "benchmark.workload", QComboBox).setCurrentIndex(1)
    click(ready, "benchmark.view.live")
    run(ready, "64")
    open_history(qtbot, ready, 3)
    assert "Workload" not in hidden()
