"""The table of the results and the plot: how they are read, sorted, explained and exported."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QColor, QGuiApplication, QImage
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu, QTableView, QWidget

from gpu_studio.core.messages.run_messages import Limit, NaiveTime, RunWorkload
from gpu_studio.core.units import local_now, shown_moment
from gpu_studio.model.pages import BENCHMARK
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.result_bars import ResultBars
from tests.driving.benchmark import (
    bars,
    cells,
    columns_of,
    drawn_keys,
    explain,
    headline,
    reasons,
    run,
    select_row,
    trust,
)
from tests.driving.pages import settle
from tests.driving.window import click, drawn, find, numbers, plain, text, wait_until
from tests.fakes.run_answers import run_events
from tests.ui.benchmark.answers import parts_of, with_a_card

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from gpu_studio.ui.theme import Theme
    from tests.fakes.scripted_engine import Engines


@with_a_card
def test_the_verdict_the_table_and_the_curves_say_the_same(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(ready)
    explain(ready)
    verdict = text(ready, "benchmark.why.verdict")
    assert "GT 1030 against the CPU" in verdict
    assert all(fact in verdict for fact in ("Elementwise", "float32", "at 64 × 64", "48.9", "6.8"))
    assert headline(ready) == "GT 1030 6.8 × faster"
    tone, words = trust(ready)
    assert (tone, words) == ("good", "Results checked")
    assert cells(ready, "Size") == ["64", "512", "2048"]
    assert (cells(ready, "CPU")[2], cells(ready, "GT 1030")[2]) == ("4.19 ms", "619 µs")
    assert cells(ready, "Faster") == ["CPU 48.9 ×", "GT 1030 1.2 ×", "GT 1030 6.8 ×"]
    assert all(cell.startswith("✔ checked, spread") for cell in cells(ready, "Trust"))
    assert find(ready, "benchmark.plot", LivePlot).isVisible(), "the end of a run turns no view"
    click(ready, "benchmark.view.sizes")
    plot = find(ready, "benchmark.plot.sizes", LivePlot)
    assert plot.isVisible()
    described = plot.accessibleDescription().replace("\u202f", " ")
    assert all(fact in described for fact in ("GT 1030", "float32", "2048 × 2048", "619 µs"))
    qtbot.waitUntil(lambda: plot.plot is not None)
    medians = {(result.device, result.size): result.median_s for result in ready.benchmark.results}
    for device in ("cpu", "cuda:0"):
        xs, ys = drawn(ready, "benchmark.plot.sizes", f"{device} float32")
        assert xs == [64, 512, 2048]
        assert ys == [medians[device, size] for size in (64, 512, 2048)]


@with_a_card
def test_a_verdict_from_doubted_runs_is_amber(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    verdict = find(ready, "benchmark.verdict", QLabel)
    run(ready)
    plain = verdict.palette().color(verdict.foregroundRole())
    engines.scripts[RunWorkload] = lambda _, request: run_events(request, other_processes=True)
    run(ready)
    assert trust(ready) == ("amber", "Busy CPU · 1 more")
    assert "GT 1030: another program used the card" in reasons(ready)
    assert verdict.palette().color(verdict.foregroundRole()) != plain
    click(ready, "benchmark.clear")
    assert verdict.palette().color(verdict.foregroundRole()) == plain


def test_the_code_is_that_of_the_selected_run_or_else_of_the_last(
    studio: Studio, ready: BenchmarkTab
) -> None:
    studio.snippets.turn_to(BENCHMARK)
    run(ready, "64, 512")
    first, last = (done.snippet for done in ready.benchmark.runs)
    assert first != last
    assert studio.snippets.snippet == last
    select_row(ready, 0)
    assert studio.snippets.snippet == first
    click(ready, "benchmark.clear")
    assert studio.snippets.snippet == ""


@with_a_card
def test_selecting_a_row_shows_that_run(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 512")
    select_row(ready, 0)
    assert find(ready, "benchmark.plot", LivePlot).isVisible()
    details = text(ready, "benchmark.details")
    named = ("Elementwise", "64 × 64", "float32", "NVIDIA GeForce GT 1030", "200 µs")
    assert all(fact in details for fact in (*named, "95 %", "40 samples", "4 calls"))
    assert drawn_keys(ready) == ("cuda:0",)
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cuda:0")[0]) == 40)
    selected = ready.benchmark.runs[1]
    assert selected.result is not None
    (level,) = find(ready, "benchmark.plot", LivePlot).marks["levels"]
    assert level.y == selected.result.median_s
    assert "GT 1030" in level.label
    assert "4 calls" in text(ready, "benchmark.plot.caption")
    # A median is the run of its device: by the mouse, and by the arrow keys in a row.
    select_row(ready, 0, title="CPU")
    assert drawn_keys(ready) == ("cpu",)
    assert "4.10 µs" in text(ready, "benchmark.details")
    qtbot.keyClick(find(ready, "benchmark.results", QTableView), Qt.Key.Key_Right)
    assert drawn_keys(ready) == ("cuda:0",)
    # Escape lets go of the row: the latest size of all devices again.
    qtbot.keyClick(find(ready, "benchmark.results", QTableView), Qt.Key.Key_Escape)
    assert drawn_keys(ready) == ("cpu", "cuda:0")
    assert text(ready, "benchmark.details") == ""


def test_the_table_is_as_tall_as_its_rows_and_the_page_scrolls_to_a_chosen_one(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    ready.window().resize(1280, 700)
    page = ready.window()
    view = find(ready, "benchmark.results", QTableView)
    plot = find(ready, "benchmark.plot.sizes", LivePlot)
    run(ready, "32, 64, 128, 256, 512, 1024, 2048, 4096, 8192")
    settle()  # until every part has found its place
    assert view.model().rowCount() == 9
    assert view.verticalScrollBar().maximum() == 0
    assert view.viewport().height() >= 9 * view.rowHeight(0)
    assert plot.height() > 0.25 * page.height()
    assert page.verticalScrollBar().value() == 0
    view.setFocus()
    select_row(ready, 0)
    for _ in range(8):
        qtbot.keyClick(view, Qt.Key.Key_Down)
    assert "8192 × 8192" in text(ready, "benchmark.details")
    last = view.visualRect(view.model().index(8, 0)).center()
    qtbot.waitUntil(
        lambda: page.viewport().rect().contains(view.viewport().mapTo(page.viewport(), last))
    )
    assert view.verticalScrollBar().maximum() == 0


def click_head(qtbot: QtBot, tab: QWidget, title: str) -> None:
    header = find(tab, "benchmark.results", QTableView).horizontalHeader()
    place = QPoint(
        header.sectionViewportPosition(columns_of(tab).index(title)) + 12, header.height() // 2
    )
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_a_click_on_a_head_sorts_and_the_copy_keeps_that_order(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(ready, "512, 64, 1024")
    click_head(qtbot, ready, "CPU")
    assert cells(ready, "Size") == ["64", "512", "1024"]
    click_head(qtbot, ready, "CPU")
    assert cells(ready, "Size") == ["1024", "512", "64"]
    view = find(ready, "benchmark.results", QTableView)
    view.customContextMenuRequested.emit(QPoint(5, 5))
    find(ready, "benchmark.export.markdown", QAction).trigger()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert [line.split()[3] for line in lines[2:]] == ["1024", "512", "64"]
    # A selected row is the run that is shown there.
    select_row(ready, 0)
    assert "1024 × 1024" in text(ready, "benchmark.details")
    click_head(qtbot, ready, "CPU")
    assert cells(ready, "Size") == ["512", "64", "1024"]


def test_the_tables_menu_sorts_for_those_without_a_mouse(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "512, 64")
    view = find(ready, "benchmark.results", QTableView)
    view.customContextMenuRequested.emit(QPoint(5, 5))
    find(ready, "benchmark.results.sort.0", QAction).trigger()
    assert cells(ready, "Size") == ["64", "512"]
    view.customContextMenuRequested.emit(QPoint(5, 5))
    find(ready, "benchmark.results.sort.-1", QAction).trigger()
    assert cells(ready, "Size") == ["512", "64"]


# ── why ──────────────────────────────────────────────────────────────────────────────────────────


@with_a_card
def test_where_the_time_goes_is_a_bar_a_table_and_a_sentence(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, parts_s=parts_of(request)
    )
    run(ready, "64, 512")
    assert ready.findChild(QWidget, "benchmark.naive") is None, "nobody asked why yet"
    explain(ready)
    assert bars(ready, "benchmark.parts.bars") == {"CPU": "1.00 ms", "GT 1030": "800 µs"}
    card = find(ready, "benchmark.parts.bars", ResultBars).bars[1]
    assert [*dict(card.parts)] == ["copy in", "launch", "compute", "copy out"]
    rows = find(ready, "benchmark.parts.table", QTableView).model()
    sentence = [rows.index(1, column).data().replace("\u202f", " ") for column in range(4)]
    assert sentence == ["GT 1030", "copy in", "200 µs", "25 %"]
    shown = text(ready, "benchmark.parts.sentence")
    assert all(fact in shown for fact in ("GT 1030", "62 %", "800 µs"))
    assert "512 × 512" in text(ready, "benchmark.explanation.run")
    # Another row is explained in its place.
    select_row(ready, 0)
    assert "64 × 64" in text(ready, "benchmark.explanation.run")


def test_two_stopwatches_stand_side_by_side(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(ready, "64")
    explain(ready)
    assert bars(ready, "benchmark.naive.bars") == {}
    naive = NaiveTime(printed_s=3e-3, finished_s=4e-3, sentence="It printed 3.00 ms, and why.")
    assert naive.sentence != text(ready, "benchmark.naive.sentence")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, naive=naive)
    run(ready, "1000")
    explain(ready)
    shown = bars(ready, "benchmark.naive.bars")
    assert {label.split(":")[0]: time for label, time in shown.items()} == {
        "honest": "1.00 ms", "naive": "3.00 ms",
    }  # fmt: skip
    assert text(ready, "benchmark.naive.sentence") == naive.sentence


def test_a_low_share_of_the_ceiling_gets_its_cause(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(ready, "64")
    explain(ready)
    assert numbers(text(ready, "benchmark.ceiling.sentence")) == []
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        share_of_ceiling=0.2,
        ceiling="memory bandwidth, 20 GB/s",
        other_processes=True,
    )
    run(ready, "512")
    explain(ready)
    assert bars(ready, "benchmark.ceiling.bars") == {"CPU": "20 %"}
    shown = text(ready, "benchmark.ceiling.sentence")
    assert all(fact in shown for fact in ("20 %", "CPU", "memory bandwidth", "20 GB/s"))
    assert "programs" in shown  # of the causes of a low share this is the one that was seen


def test_what_the_work_showed_is_reported_and_drawn(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    findings = ("AMP saved half.", "<b>Twelve</b> kernels.")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        findings=findings,
        curves={"loss": (2.0, 1.0, 0.5)},
        peak_allocated_bytes=300 << 20,
    )
    run(ready, "64")
    explain(ready)
    shown = text(ready, "benchmark.findings.text")
    assert "\n".join(findings) in shown
    assert "CPU 300 MiB" in shown
    plot = find(ready, "benchmark.findings.plot", LivePlot)
    described = plot.accessibleDescription()
    assert "loss" in described
    assert numbers(described) == ["2", "0.5", "3"]
    settle()
    ready.window().ensureWidgetVisible(plot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    assert drawn(ready, "benchmark.findings.plot", "loss")[1] == [2.0, 1.0, 0.5]


def test_a_cached_result_has_a_whole_bar_and_no_absurd_share(
    qtbot: QtBot, engines: Engines, ready: BenchmarkTab
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, share_of_ceiling=38.75, ceiling="memory bandwidth, 4.10 GB/s", limit=Limit.MEMORY
    )
    run(ready, "64")
    explain(ready)
    assert bars(ready, "benchmark.ceiling.bars") == {"CPU": "cached"}
    assert "cache" in text(ready, "benchmark.ceiling.sentence")
    assert "3875" not in text(ready, "benchmark.ceiling.sentence")


# ── files, the clipboard, a picture of the plot ──────────────────────────────────────────────────


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
