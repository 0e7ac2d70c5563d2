"""A published table, and this PC beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QTableView

from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import requests_of, wait_over
from tests.driving.window import click, find, text
from tests.ui.benchmark.answers import with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab


@with_a_card
def test_the_published_table_stands_beside_this_pcs_experiment(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    click(ready, "benchmark.view.published")
    qtbot.waitUntil(find(ready, "benchmark.published").isVisible)  # the kept runs are read
    shown = text(ready, "benchmark.published.source")
    assert "Radosław Śmigielski" in shown
    full = find(ready, "benchmark.preset.gt_1030.full", QPushButton)
    assert not full.isEnabled()
    rows = find(ready, "benchmark.published.table", QTableView).model()
    heads = [rows.headerData(i, Qt.Orientation.Horizontal) for i in range(rows.columnCount())]
    assert heads == [
        "Size", "Iterations", "Post: Ryzen 7 5700G", "Post: GeForce GT 1030", "Here: CPU",
        "Here: GT 1030",
    ]  # fmt: skip

    def row(number: int) -> list[str]:
        cells = (rows.index(number, column).data() for column in range(6))
        return [cell.replace("\u202f", " ") for cell in cells]

    assert row(1) == ["2048 × 2048", "2048", "30.2 s", "45.5 s", "–", "–"]
    click(ready, "benchmark.preset.gt_1030")
    assert find(ready, "benchmark.plot", LivePlot).isVisible()
    wait_over(ready)
    asked = [(r.size, r.dtype, r.device, r.budget_s, r.naive) for r in requests_of(ready)]
    assert asked[:2] == [(512, "float16", "cpu", 2.0, True), (512, "float16", "cuda:0", 2.0, True)]
    assert {size for size, *_ in asked} == {512, 2048, 4096}
    click(ready, "benchmark.view.history")
    median_s = ready.benchmark.results[2].median_s
    assert row(1)[4] == f"≈ {2048 * median_s:.2f} s"
    scaling = text(ready, "benchmark.published.scaling")
    assert all(fact in scaling for fact in ("CPU", "2048 × 2048", "from 160", "to 2048"))
    # The time of the full length is told before it can begin.
    assert full.isEnabled()
    assert "13 min" in text(ready, "benchmark.published.full.text")  # of the post's author
    ready.window().ensureWidgetVisible(full)
    click(ready, "benchmark.preset.gt_1030.full")
    wait_over(ready)
    (whole,) = [r for r in requests_of(ready)[6:] if (r.size, r.device) == (2048, "cpu")]
    assert whole.budget_s == pytest.approx(2048 * median_s)
