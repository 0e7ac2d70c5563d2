"""Time over size: the curves, and where they cross."""

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton
from pytestqt.qtbot import QtBot

from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import cells, columns_of, run, type_sizes, wait_over, wait_samples
from tests.driving.window import click, drawn, find, text
from tests.fakes.run_answers import finished, started
from tests.fakes.scripted_engine import Engines, ScriptedEngine
from tests.ui.benchmark.answers import hold, slow_to_reach, with_a_card


@with_a_card
def test_the_crossing_is_marked_between_the_sizes_measured(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(ready, "64, 512")
    click(ready, "benchmark.view.sizes")
    plot = find(ready, "benchmark.plot.sizes", LivePlot)
    (marker,) = plot.marks["markers"]
    assert marker.role == "gpu0"
    assert (marker.low, marker.high) == (64, 512)
    assert 64 < marker.x < 512
    assert {(name.label, name.x) for name in plot.marks["names"]} == {("CPU", 64), ("GT 1030", 64)}
    crossing = f"{marker.x:.0f} × {marker.x:.0f}"
    assert marker.label.replace("\u202f", " ").endswith(crossing)
    shown = plot.accessibleDescription().replace("\u202f", " ")
    assert all(fact in shown for fact in ("overtakes", crossing, "64 × 64", "512 × 512"))
    run(ready, "1024, 2048")
    click(ready, "benchmark.view.sizes")
    assert len(plot.marks["markers"]) == 1
    click(ready, "benchmark.clear")
    assert (plot.marks["markers"], plot.curve_keys) == ([], ())


@with_a_card
def test_the_crossing_is_marked_twice_where_the_copies_count(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    def answer(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        samples_s = tuple(slow_to_reach(request) * (1 + 0.001 * i) for i in range(20))
        yield started(request)
        yield finished(request, samples_s, transfers=request.transfers)

    engines.scripts[RunWorkload] = answer
    find(ready, "benchmark.mode.transfers", QCheckBox).setChecked(True)
    run(ready, "64, 256, 512, 1024, 2048")
    click(ready, "benchmark.view.sizes")
    plot = find(ready, "benchmark.plot.sizes", LivePlot)
    only, both = plot.marks["markers"]
    assert (only.low, only.high, only.dashed) == (256, 512, False)
    assert (both.low, both.high, both.dashed) == (512, 1024, True)
    assert "copies" in both.label
    assert only.row != both.row  # their labels do not cover each other
    assert len(plot.curve_keys) == 3
    shown = plot.accessibleDescription().replace("\u202f", " ")
    assert shown.count("overtakes the CPU") == 2
    assert "copies" in shown


def test_runs_of_two_workloads_are_told_apart(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "32")
    assert "Workload" not in columns_of(ready)
    find(ready, "benchmark.workload", QComboBox).setCurrentIndex(1)
    run(ready, "64, 128")
    qtbot.waitUntil(lambda: "Workload" in columns_of(ready))
    assert cells(ready, "Workload") == ["Elementwise", "Matrix product", "Matrix product"]
    click(ready, "benchmark.view.sizes")  # the medians over the size are of one workload
    qtbot.waitUntil(lambda: find(ready, "benchmark.plot.sizes", LivePlot).plot is not None)
    assert drawn(ready, "benchmark.plot.sizes", "cpu float32")[0] == [64, 128]


def test_a_second_precision_gets_into_the_legend(qtbot: QtBot, ready: BenchmarkTab) -> None:
    def labels() -> list[str]:
        click(ready, "benchmark.view.sizes")
        click(ready, "benchmark.view.sizes")
        plot = find(ready, "benchmark.plot.sizes", LivePlot)
        return [curve.label for curve in plot._curves.values()]

    run(ready, "64, 128")
    assert labels() == ["CPU"]
    click(ready, "benchmark.dtype.float16")
    click(ready, "benchmark.dtype.float32")
    run(ready, "64, 128")
    assert sorted(labels()) == ["CPU · float16", "CPU · float32"]


def test_a_wrong_size_gets_a_sentence_and_disables_run_alone(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    field = type_sizes(ready, "12, abc")
    assert "“abc”" in text(ready, "benchmark.sizes.note")
    assert field.property("invalid") is True
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    assert find(ready, "benchmark.workload", QComboBox).isEnabled()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not ready.benchmark.runs
    type_sizes(ready, "64")
    assert "Side" in text(ready, "benchmark.sizes.note")
    assert find(ready, "benchmark.run", QPushButton).isEnabled()


def test_nothing_chosen_is_reported(qtbot: QtBot, ready: BenchmarkTab) -> None:
    click(ready, "benchmark.devices.cpu")
    assert "device" in text(ready, "benchmark.progress.text")
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    click(ready, "benchmark.devices.cpu")
    click(ready, "benchmark.dtype.float32")
    assert "precision" in text(ready, "benchmark.progress.text")
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()


@with_a_card
def test_one_click_looks_closer_where_the_winner_changes(qtbot: QtBot, ready: BenchmarkTab) -> None:
    type_sizes(ready, "128, 1024")
    click(ready, "benchmark.sweep")
    wait_over(ready)
    sizes = [result.size for result in ready.benchmark.results]
    assert sizes[:8:2] == [128, 256, 512, 1024]
    assert any(256 < size < 512 for size in sizes[8:])
    click(ready, "benchmark.devices.cpu")
    assert not find(ready, "benchmark.sweep", QPushButton).isEnabled(), "nothing to compare with"


def test_return_in_the_sizes_runs_and_escape_stops(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    field = type_sizes(ready, "64")
    field.setFocus()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_samples(ready)
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    wait_over(ready)
    assert cells(ready, "Trust") == ["■ stopped"]
