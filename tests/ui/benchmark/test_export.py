"""Results on their way out: files, the clipboard, a picture of the plot."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction, QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu, QWidget

from gpu_studio.core.units import local_now, shown_moment
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import run
from tests.driving.pages import settle
from tests.driving.window import click, find, plain, text, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from gpu_studio.ui.theme import Theme


def export(tab: QWidget, kind: str) -> None:
    find(tab, "benchmark.export.menu", QMenu).aboutToShow.emit()
    find(tab, f"benchmark.export.{kind}", QAction).trigger()


def test_csv_and_json_are_written(qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path) -> None:
    run(ready, "64, 128")
    export(ready, "csv")
    written = chosen_path.with_suffix(".csv")
    assert str(written) in text(ready, "benchmark.outcome")
    with written.open(encoding="utf-8", newline="") as file:
        assert [line["size"] for line in csv.DictReader(file)] == ["64", "128"]
    export(ready, "json")
    exported = json.loads(chosen_path.with_suffix(".json").read_text(encoding="utf-8"))
    assert [len(run["samples_s"]) for run in exported["runs"]] == [40, 40]
    assert exported["engine"]["torch_version"] == "2.13.0+cpu"
    assert exported["exported_at"].startswith("20")


def test_a_file_that_cannot_be_written_is_reported(
    qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path
) -> None:
    run(ready, "64")
    chosen_path.with_suffix(".csv").mkdir()
    export(ready, "csv")
    assert "not write" in text(ready, "benchmark.outcome")
    assert find(ready, "benchmark.outcome", QLabel).property("tone") == "failure"


def test_what_became_of_a_file_moves_no_choice_and_goes_with_other_choices(
    qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path
) -> None:
    run(ready, "64")
    sizes = find(ready, "benchmark.sizes", QLineEdit)
    settle()
    before = sizes.mapTo(ready, QPoint())
    export(ready, "csv")
    assert "Saved" in text(ready, "benchmark.outcome")
    settle()
    assert sizes.mapTo(ready, QPoint()) == before
    sizes.setText("128")
    assert not text(ready, "benchmark.outcome")


@pytest.mark.parametrize(
    ("kind", "start"),
    [("markdown", "| Workload |"), ("copy_csv", "workload,size,")],
)
def test_the_table_goes_onto_the_clipboard(
    qtbot: QtBot, ready: BenchmarkTab, kind: str, start: str
) -> None:
    run(ready, "64")
    export(ready, kind)
    assert QGuiApplication.clipboard().text().startswith(start)
    assert "copied" in text(ready, "benchmark.outcome")


def test_the_plot_in_front_is_written(
    qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path, theme: Theme
) -> None:
    run(ready, "64, 512, 1024")
    click(ready, "benchmark.view.sizes")
    plot = find(ready, "benchmark.plot.sizes", LivePlot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    export(ready, "png")
    picture = QImage(str(chosen_path.with_suffix(".png")))
    assert picture.width() >= 2 * plot.width()
    colours = {
        picture.pixelColor(x, y).getRgb()[:3]
        for x in range(0, picture.width(), 9)
        for y in range(picture.height())
    }
    line = QColor(theme.colour("cpu_ink")).getRgb()[:3]  # the curve itself; its edges are smoothed
    assert min(max(abs(a - b) for a, b in zip(line, one, strict=True)) for one in colours) < 32
    assert picture.pixelColor(1, 1).name() == theme.colour("card").lower()


def test_a_picture_says_which_program_made_it_and_when(
    ready: BenchmarkTab, chosen_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def read(page: QWidget, *_args: object, **_changes: object) -> bytes:
        said.extend(label.text() for label in page.findChildren(QLabel))
        return b"picture"

    monkeypatch.setattr("gpu_studio.ui.benchmark.run_export.picture_of", read)
    run(ready, "64")
    plot = find(ready, "benchmark.plot", LivePlot)
    wait_until(lambda: plot.plot is not None)
    export(ready, "png")
    assert text(ready, "benchmark.hero.headline") in [plain(one) for one in said]
    assert said[-1].startswith("GPU Studio ")
    assert shown_moment(local_now())[:10] in said[-1]
