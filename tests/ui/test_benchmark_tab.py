from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest
from PySide6.QtCore import QItemSelectionModel, QObject, QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication, QImage
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QTableView,
    QToolButton,
    QWidget,
)

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import NaiveTime, WorkloadOption
from gpu_studio.core.protocol import (
    DescribeEngine,
    EngineEnded,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunWorkload,
    WorkloadDescription,
)
from gpu_studio.model.results_table import Column
from gpu_studio.ui.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.share_bars import ShareBars
from tests.fakes.descriptions import described, described_with_cuda, elementwise
from tests.fakes.pc import gt_1030, two_cards
from tests.fakes.run_answers import batch, call_time_s, finished, run_events, samples_of, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.settings import Settings
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

Found = TypeVar("Found", bound=QObject)

with_a_card = pytest.mark.parametrize("inventory", [gt_1030()])


@pytest.fixture
def engines(inventory: Any) -> Engines:
    cards = len(inventory.cards)
    description = described_with_cuda(device_count=cards) if cards else described()
    return Engines({DescribeEngine: [description]})


@pytest.fixture
def tab(qtbot: QtBot, studio: Studio, theme: Theme) -> BenchmarkTab:
    """The tab in a window of its own; the engine has not started yet."""
    tab = BenchmarkTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(1240, 720)
    with qtbot.waitActive(tab):  # shortcuts are heard by the active window alone
        tab.show()
        tab.activateWindow()
    return tab


@pytest.fixture
def ready(qtbot: QtBot, studio: Studio, tab: BenchmarkTab) -> BenchmarkTab:
    """The tab with its engine described and its devices found."""
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state.is_idle and studio.sensors.inventory is not None)
    return tab


def find(tab: QWidget, kind: type[Found], name: str) -> Found:
    found = tab.findChild(kind, name)
    assert found is not None, name
    return found


def text(tab: QWidget, name: str) -> str:
    """Return a label's text as a person reads it; empty where it is not shown."""
    label = find(tab, QLabel, name)
    return label.text().replace("\u202f", " ").replace("\u00a0", " ") if label.isVisible() else ""


def click(qtbot: QtBot, tab: QWidget, name: str) -> None:
    button = find(tab, QPushButton, name)
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def toggle(qtbot: QtBot, tab: QWidget, name: str) -> None:
    box = find(tab, QCheckBox, name)
    assert box.isEnabled()
    # A check box hears a click on its text alone.
    qtbot.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))


def type_sizes(qtbot: QtBot, tab: QWidget, sizes: str) -> QLineEdit:
    field = find(tab, QLineEdit, "benchmark.sizes")
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
    model = find(tab, QTableView, "benchmark.results").model()
    return [
        model.index(row, column).data().replace("\u202f", " ") for row in range(model.rowCount())
    ]


def select_row(qtbot: QtBot, tab: QWidget, row: int) -> None:
    view = find(tab, QTableView, "benchmark.results")
    view.scrollTo(view.model().index(row, 0))
    place = view.visualRect(view.model().index(row, Column.SIZE)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)


def drawn(tab: QWidget, plot: str, key: str) -> tuple[list[float], list[float]]:
    """Return what a curve shows, in the data's own scale."""
    curve = find(tab, LivePlot, plot)._curves[key]
    assert curve.item is not None
    xs, ys = curve.item.getOriginalDataset()
    return ([], []) if xs is None else (xs.tolist(), ys.tolist())


def hold(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    yield started(request)
    yield RunPhaseChanged(run_id=request.run_id, phase="timing", expected_call_s=1.2)
    yield batch(request, samples_of(request, 8), spent_s=0.5)
    yield Pause()
    yield finished(request, samples_of(request, 8))


# ── before anything ran ───────────────────────────────────────────────────────────────────────


def test_everything_a_script_drives_is_there_before_the_tab_was_seen(
    qtbot: QtBot, studio: Studio, theme: Theme
) -> None:
    tab = BenchmarkTab(studio, theme)
    qtbot.addWidget(tab)
    for part in (
        "workload", "sizes", "dtype", "devices", "run", "stop", "progress", "plot", "results",
        "verdict", "export",
    ):  # fmt: skip
        assert tab.findChild(QWidget, f"benchmark.{part}") is not None, part


def test_every_control_has_a_name_for_those_who_do_not_see_it(ready: BenchmarkTab) -> None:
    for kind in (QPushButton, QComboBox, QLineEdit, QTableView, QProgressBar, LivePlot):
        for widget in ready.findChildren(kind):
            named = widget.objectName().startswith("benchmark.")
            assert not named or widget.accessibleName(), widget.objectName()
    boxes = ready.findChildren(QCheckBox)
    assert len(boxes) >= 5
    assert all(box.text() or box.accessibleName() for box in boxes)


def test_until_the_engine_is_there_nothing_can_run(
    qtbot: QtBot, studio: Studio, tab: BenchmarkTab
) -> None:
    run_button = find(tab, QPushButton, "benchmark.run")
    assert not run_button.isEnabled()
    assert text(tab, "benchmark.progress.text") == "The engine is starting…"
    assert text(tab, "benchmark.verdict") == "Nothing was measured yet."
    qtbot.keyClick(find(tab, QLineEdit, "benchmark.sizes"), Qt.Key.Key_Return)
    assert not tab.benchmark.runs
    studio.start()
    qtbot.waitUntil(run_button.isEnabled)
    assert text(tab, "benchmark.progress.text") == "4 runs, at least 10 s."
    assert find(tab, QComboBox, "benchmark.workload").currentText() == "Elementwise"
    assert "bound by memory" in text(tab, "benchmark.workload.sentence")


def test_without_an_engine_there_is_a_way_to_start_one(
    qtbot: QtBot, studio: Studio, engines: Engines, tab: BenchmarkTab, caplog: Any
) -> None:
    fresh = find(tab, QPushButton, "benchmark.fresh_engine")
    assert not fresh.isVisible()
    engines.scripts[DescribeEngine] = [EngineEnded(exit_code=1)]
    studio.start()
    qtbot.waitUntil(fresh.isVisible)
    assert text(tab, "benchmark.progress.text") == "There is no engine."
    engines.scripts[DescribeEngine] = [described()]
    click(qtbot, tab, "benchmark.fresh_engine")
    qtbot.waitUntil(find(tab, QPushButton, "benchmark.run").isEnabled)
    assert not fresh.isVisible()


# ── choosing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("0", "The size 0 is out of range"),
        ("-5", "“-5” is not a size"),
        ("99999999999", "The size 99999999999 is out of range"),
        ("12, abc", "“abc” is not a size"),
        (" ", "Give at least one size"),
    ],
)
def test_a_wrong_size_gets_a_sentence_and_disables_run_alone(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, typed: str, said: str
) -> None:
    field = type_sizes(qtbot, ready, typed)
    assert said in text(ready, "benchmark.sizes.error")
    assert field.property("invalid") is True
    assert not find(ready, QPushButton, "benchmark.run").isEnabled()
    assert find(ready, QComboBox, "benchmark.workload").isEnabled()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not ready.benchmark.runs
    type_sizes(qtbot, ready, "64")
    assert text(ready, "benchmark.sizes.error") == ""
    assert find(ready, QPushButton, "benchmark.run").isEnabled()


def test_nothing_chosen_is_said(qtbot: QtBot, ready: BenchmarkTab) -> None:
    toggle(qtbot, ready, "benchmark.devices.cpu")
    assert text(ready, "benchmark.progress.text") == "Choose at least one device."
    toggle(qtbot, ready, "benchmark.devices.cpu")
    toggle(qtbot, ready, "benchmark.dtype.float32")
    assert text(ready, "benchmark.progress.text") == "Choose at least one precision."
    assert not find(ready, QPushButton, "benchmark.run").isEnabled()


def train_step(**changes: Any) -> WorkloadDescription:
    plain = WorkloadDescription(
        name="train_step",
        title="A training step",
        sentence="Forward, loss, backward, optimizer.",
        dtypes=("float32",),
        sizes=(32, 64),
        throughput_unit="samples/s",
        options=(
            WorkloadOption(
                name="amp", title="Mixed precision", sentence="What AMP does.",
                values=("off", "float16", "bfloat16"),
            ),
        ),
        size_title="Rows of a batch",
        size_text="batch of {size}",
        refuses={"cold": "A step writes its weights: there is no cold one."},
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


@pytest.fixture
def with_training(engines: Engines) -> Engines:
    """An engine that has one workload with an option, and one that cannot run here."""
    scan = train_step(
        name="data_parallel", title="Data parallel", skipped="It needs two GPUs: there is none."
    )
    engines.scripts[DescribeEngine] = [described(workloads=(elementwise(), train_step(), scan))]
    return engines


def test_a_workload_brings_its_sizes_options_and_modes(
    qtbot: QtBot, with_training: Engines, ready: BenchmarkTab
) -> None:
    workload = find(ready, QComboBox, "benchmark.workload")
    assert ready.findChild(QComboBox, "benchmark.option.amp") is None
    workload.setCurrentIndex(1)
    assert text(ready, "benchmark.sizes.meaning") == "Rows of a batch"
    assert find(ready, QLineEdit, "benchmark.sizes").text() == "32, 64"
    amp = find(ready, QComboBox, "benchmark.option.amp")
    assert (amp.accessibleName(), amp.toolTip()) == ("Mixed precision", "What AMP does.")
    assert [amp.itemText(i) for i in range(amp.count())] == ["off", "float16", "bfloat16"]
    click_expert(qtbot, ready)
    cold = find(ready, QCheckBox, "benchmark.mode.cold")
    assert (cold.isEnabled(), cold.toolTip()) == (False, train_step().refuses["cold"])
    amp.setCurrentIndex(1)
    run(qtbot, ready, "64")
    (request,) = [r for r in with_training.requests if isinstance(r, RunWorkload)]
    assert (request.workload, request.options) == ("train_step", {"amp": "float16"})
    assert cells(ready, Column.MODE) == ["amp float16"]
    # What was chosen is there again after a look at another workload.
    workload.setCurrentIndex(0)
    assert cold.isEnabled()
    workload.setCurrentIndex(1)
    assert find(ready, QComboBox, "benchmark.option.amp").currentData() == "float16"
    assert find(ready, QLineEdit, "benchmark.sizes").text() == "64"


def click_expert(qtbot: QtBot, tab: QWidget) -> None:
    expert = find(tab, QToolButton, "benchmark.expert")
    find(tab, QScrollArea, "benchmark.choices").ensureWidgetVisible(expert)
    qtbot.mouseClick(expert, Qt.MouseButton.LeftButton)


def test_a_workload_that_cannot_run_is_listed_with_the_reason(
    qtbot: QtBot, with_training: Engines, ready: BenchmarkTab
) -> None:
    workload = find(ready, QComboBox, "benchmark.workload")
    assert workload.itemText(2) == "Data parallel (not here)"
    workload.setCurrentIndex(2)
    assert "It needs two GPUs" in text(ready, "benchmark.workload.sentence")
    assert not find(ready, QPushButton, "benchmark.run").isEnabled()
    assert text(ready, "benchmark.progress.text") == "This workload cannot run here."
    workload.setCurrentIndex(0)
    assert find(ready, QPushButton, "benchmark.run").isEnabled()


@with_a_card
def test_a_workload_of_cards_alone_leaves_the_cpu_out(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, studio: Studio
) -> None:
    kernel = train_step(name="custom_kernel", device_kinds=("cuda",), options=())
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=(kernel,))]
    studio.session.restart()
    qtbot.waitUntil(lambda: text(ready, "benchmark.devices.note") != "")
    run(qtbot, ready, "64")
    assert {run.request.device for run in ready.benchmark.runs} == {"cuda:0"}


@with_a_card
def test_a_sweep_looks_closer_where_the_winner_changes(
    qtbot: QtBot, ready: BenchmarkTab, settings: Settings
) -> None:
    toggle(qtbot, ready, "benchmark.sweep")
    assert not find(ready, QLineEdit, "benchmark.sizes").isVisible()
    assert text(ready, "benchmark.progress.text").endswith("; then closer to the crossover.")
    for name, typed in (("low", "128"), ("high", "1024")):
        field = find(ready, QLineEdit, f"benchmark.sweep.{name}")
        field.selectAll()
        qtbot.keyClicks(field, typed)
    click(qtbot, ready, "benchmark.run")
    wait_over(qtbot, ready)
    sizes = [result.size for result in ready.benchmark.results]
    assert sizes[:8:2] == [128, 256, 512, 1024]
    assert any(256 < size < 512 for size in sizes[8:])
    assert settings.choices.sweep
    assert settings.choices.sweep_range == "128:1024"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [("64", "32", "is empty"), ("", "64", "is not a size"), ("64", "x", "“x” is not a size")],
)
def test_a_wrong_range_gets_a_sentence(
    qtbot: QtBot, ready: BenchmarkTab, low: str, high: str, said: str
) -> None:
    toggle(qtbot, ready, "benchmark.sweep")
    find(ready, QLineEdit, "benchmark.sweep.low").setText(low)
    find(ready, QLineEdit, "benchmark.sweep.high").setText(high)
    assert said in text(ready, "benchmark.sizes.error")
    assert not find(ready, QPushButton, "benchmark.run").isEnabled()
    toggle(qtbot, ready, "benchmark.sweep")  # the list is as it was
    assert find(ready, QPushButton, "benchmark.run").isEnabled()


@with_a_card
def test_the_modes_go_into_the_requests_and_are_kept(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, settings: Settings
) -> None:
    assert not find(ready, QCheckBox, "benchmark.mode.cold").isVisible()
    click_expert(qtbot, ready)
    for mode in ("transfers", "naive", "cold", "stop_early"):
        find(ready, QCheckBox, f"benchmark.mode.{mode}").setChecked(True)
    run(qtbot, ready, "64")
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [(r.device, r.transfers) for r in asked] == [
        ("cpu", False), ("cuda:0", False), ("cuda:0", True),
    ]  # fmt: skip
    assert {(r.cache, r.naive, r.stop_at_relative_interval) for r in asked} == {
        ("cold", True, 0.02)
    }
    assert settings.choices.modes == ("transfers", "naive", "cold", "stop_early")
    assert cells(ready, Column.MODE)[2] == "cold cache, with transfers"


@with_a_card
def test_the_choices_make_the_plan(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, settings: Settings
) -> None:
    find(ready, QComboBox, "benchmark.workload").setCurrentIndex(1)
    toggle(qtbot, ready, "benchmark.dtype.float16")
    toggle(qtbot, ready, "benchmark.devices.cpu")
    budget = find(ready, QComboBox, "benchmark.budget")
    budget.setCurrentIndex(budget.findData(0.5))
    run(qtbot, ready, "128")
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert {(r.workload, r.size, r.dtype, r.device, r.budget_s) for r in asked} == {
        ("matmul", 128, "float16", "cuda:0", 0.5),
        ("matmul", 128, "float32", "cuda:0", 0.5),
    }
    choices = settings.choices
    assert (choices.workload, choices.sizes, choices.budget_s) == ("matmul", "128", 0.5)
    assert set(choices.dtypes) == {"float32", "float16"}


def test_the_last_choices_are_there_at_the_next_start(
    qtbot: QtBot, studio: Studio, settings: Settings, theme: Theme
) -> None:
    settings.change(workload="matmul", sizes="7, 8", dtypes=("float64",), budget_s=3.5)
    tab = BenchmarkTab(studio, theme)
    qtbot.addWidget(tab)
    studio.start()
    workload = find(tab, QComboBox, "benchmark.workload")
    qtbot.waitUntil(lambda: workload.currentData() == "matmul")
    assert find(tab, QLineEdit, "benchmark.sizes").text() == "7, 8"
    assert find(tab, QComboBox, "benchmark.budget").currentData() == 3.5
    boxes = find(tab, QWidget, "benchmark.dtype").findChildren(QCheckBox)
    assert [box.text() for box in boxes if box.isChecked()] == ["float64"]


def test_return_in_the_sizes_runs_and_escape_stops(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    field = type_sizes(qtbot, ready, "64")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_samples(qtbot, ready)
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    wait_over(qtbot, ready)
    assert cells(ready, Column.STAMP) == ["■ stopped"]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_card_that_pytorch_cannot_use_is_listed_with_the_reason(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    assert find(ready, QCheckBox, "benchmark.devices.cuda:0").isChecked()
    engines.scripts[DescribeEngine] = [described()]
    ready._studio.session.restart()
    qtbot.waitUntil(lambda: ready._studio.session.state.is_idle)
    devices = find(ready, QWidget, "benchmark.devices")
    qtbot.waitUntil(
        lambda: (
            [box.isEnabled() for box in devices.findChildren(QCheckBox) if box.isVisible()]
            == [True, False, False]
        )
    )
    reasons = [label.text() for label in devices.findChildren(QLabel) if label.isVisible()]
    assert reasons[1:] == ["This PyTorch was built without CUDA."] * 2


@with_a_card
def test_a_device_taken_away_stays_so_when_the_devices_are_listed_again(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, studio: Studio
) -> None:
    toggle(qtbot, ready, "benchmark.devices.cpu")
    engines.scripts[DescribeEngine] = [described()]
    studio.session.restart()
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
    assert ready.findChild(QCheckBox, "benchmark.devices.cuda:0") is None
    assert not find(ready, QCheckBox, "benchmark.devices.cpu").isChecked()


# ── running ───────────────────────────────────────────────────────────────────────────────────


@with_a_card
def test_a_run_shows_what_it_does_and_every_sample(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(qtbot, ready, "64, 128")
    click(qtbot, ready, "benchmark.run")
    wait_samples(qtbot, ready)
    qtbot.waitUntil(lambda: cells(ready, Column.SAMPLES) == ["8"])
    assert text(ready, "benchmark.progress.text").startswith("64 × 64 · float32 · CPU · timing")
    progress = find(ready, QProgressBar, "benchmark.progress")
    assert progress.isVisible()
    assert progress.value() == 62  # a quarter of the first of four runs
    assert progress.format() == find(ready, QLabel, "benchmark.progress.text").text()
    assert "One call takes about 1.20 s; Stop will end the engine" in text(
        ready, "benchmark.warning"
    )
    assert not find(ready, QPushButton, "benchmark.run").isEnabled()
    assert cells(ready, Column.STAMP) == ["… timing"]
    assert "64 × 64" in text(ready, "benchmark.plot.caption")
    samples = list(
        samples_of(RunWorkload(run_id="", workload="", device="cpu", size=64, dtype=""), 8)
    )
    qtbot.waitUntil(lambda: drawn(ready, "benchmark.plot", "cpu")[1] == samples)
    engines.latest.go()
    # The next device at the same size has a curve beside the first one.
    qtbot.waitUntil(lambda: len(drawn_keys(ready)) == 2)
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cuda:0")[0]) == 8)
    assert drawn(ready, "benchmark.plot", "cpu")[0] == [1, 2, 3, 4, 5, 6, 7, 8]
    engines.latest.go()
    # The next size begins with its own curves.
    qtbot.waitUntil(lambda: "128 × 128" in text(ready, "benchmark.plot.caption"))
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cpu")[0]) == 8)
    assert drawn(ready, "benchmark.plot", "cuda:0") == ([], [])
    click(qtbot, ready, "benchmark.stop")
    wait_over(qtbot, ready)


def drawn_keys(tab: QWidget) -> tuple[str, ...]:
    return find(tab, LivePlot, "benchmark.plot").curve_keys


@with_a_card
def test_the_verdict_the_table_and_the_curves_say_the_same(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(qtbot, ready)
    assert text(ready, "benchmark.verdict") == (
        "On this PC the GeForce GT 1030 wins from 512 × 512 on, of the sizes measured "
        "(elementwise, float32); at 64 × 64 the CPU is 48.9 × faster."
    )
    assert "✔ every result was checked" in text(ready, "benchmark.trust")
    assert cells(ready, Column.SIZE) == ["64", "64", "512", "512", "2048", "2048"]
    assert cells(ready, Column.SPEED_UP) == ["–", "0.020 ×", "–", "1.2 ×", "–", "6.8 ×"]
    assert set(cells(ready, Column.STAMP)) == {"✔ verified"}
    # Several sizes have finished, so the medians over the size are in front.
    plot = find(ready, LivePlot, "benchmark.plot.sizes")
    assert plot.isVisible()
    assert find(ready, QPushButton, "benchmark.view.sizes").isChecked()
    assert "GT 1030 · float32 2048 × 2048: 619 µs" in (
        plot.accessibleDescription().replace("\u202f", " ")
    )
    qtbot.waitUntil(lambda: plot.plot is not None)
    medians = {(result.device, result.size): result.median_s for result in ready.benchmark.results}
    for device in ("cpu", "cuda:0"):
        xs, ys = drawn(ready, "benchmark.plot.sizes", f"{device} float32")
        assert xs == [64, 512, 2048]
        assert ys == [medians[device, size] for size in (64, 512, 2048)]


@with_a_card
def test_the_crossing_is_marked_between_the_sizes_measured(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(qtbot, ready, "64, 512")
    plot = find(ready, LivePlot, "benchmark.plot.sizes")
    (marker,) = plot._markers
    assert marker.role == "gpu0"
    assert (marker.low, marker.high) == (64, 512)
    assert 64 < marker.x < 512
    assert (
        marker.label.replace("\u202f", " ") == f"computing only: ≈ {marker.x:.0f} × {marker.x:.0f}"
    )
    said = text(ready, "benchmark.plot.caption")
    assert "change places at about" in said
    assert "(measured: between 64 × 64 and 512 × 512)" in said
    run(qtbot, ready, "1024, 2048")
    assert len(plot._markers) == 1
    click(qtbot, ready, "benchmark.clear")
    assert (plot._markers, plot.curve_keys) == ([], ())


def slow_to_reach(request: RunWorkload) -> float:
    """Return the invented time of a call whose copies take as long as two launches."""
    return call_time_s(request) + (400e-6 if request.transfers else 0.0)


@with_a_card
def test_the_crossing_is_marked_twice_where_the_copies_count(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    def answer(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        samples_s = tuple(slow_to_reach(request) * (1 + 0.001 * i) for i in range(20))
        yield started(request)
        yield finished(request, samples_s, transfers=request.transfers)

    engines.scripts[RunWorkload] = answer
    find(ready, QCheckBox, "benchmark.mode.transfers").setChecked(True)
    run(qtbot, ready, "64, 256, 512, 1024, 2048")
    plot = find(ready, LivePlot, "benchmark.plot.sizes")
    only, both = plot._markers
    assert (only.low, only.high, only.dashed) == (256, 512, False)
    assert (both.low, both.high, both.dashed) == (512, 1024, True)
    assert both.label.startswith("with transfers: ≈ ")
    assert only.row != both.row  # their labels do not cover each other
    assert set(plot.curve_keys) == {
        "cpu float32", "cuda:0 float32", "cuda:0 float32 with transfers",
    }  # fmt: skip
    said = text(ready, "benchmark.plot.caption")
    assert "Computing only, the GeForce GT 1030 and the CPU change places" in said
    assert "With transfers, the GeForce GT 1030 and the CPU change places" in said


@with_a_card
def test_no_crossing_where_the_curves_do_not_cross(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "2048, 1024")
    plot = find(ready, LivePlot, "benchmark.plot.sizes")
    assert plot._markers == []
    # and the curve goes from the smaller to the larger size, in whichever order they ran
    qtbot.waitUntil(lambda: plot.plot is not None)
    assert drawn(ready, "benchmark.plot.sizes", "cpu float32")[0] == [1024, 2048]


def test_one_size_stays_in_the_live_view(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "64")
    assert find(ready, LivePlot, "benchmark.plot").isVisible()


def test_a_view_that_was_chosen_stays(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(qtbot, ready, "64, 128")
    click(qtbot, ready, "benchmark.run")
    wait_samples(qtbot, ready)
    click(qtbot, ready, "benchmark.view.sizes")
    assert find(ready, LivePlot, "benchmark.plot.sizes").isVisible()
    assert text(ready, "benchmark.plot.caption") == "Nothing has finished yet."
    click(qtbot, ready, "benchmark.view.live")
    engines.latest.go()
    qtbot.waitUntil(lambda: len(ready.benchmark.runs) == 2)
    wait_samples(qtbot, ready)
    engines.latest.go()
    wait_over(qtbot, ready)
    assert find(ready, LivePlot, "benchmark.plot").isVisible()


@with_a_card
def test_selecting_a_row_shows_that_run(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "64, 512")
    select_row(qtbot, ready, 1)
    assert find(ready, LivePlot, "benchmark.plot").isVisible()
    details = text(ready, "benchmark.details")
    assert "elementwise · 64 × 64 · float32 · NVIDIA GeForce GT 1030: 200 µs a call" in details
    assert "95 % interval" in details
    assert "40 samples of 4 calls" in details
    assert drawn_keys(ready) == ("cuda:0", "median")
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cuda:0")[0]) == 40)
    selected = ready.benchmark.runs[1]
    assert selected.result is not None
    assert drawn(ready, "benchmark.plot", "median")[1] == [selected.result.median_s] * 2
    assert "a sample is the mean of 4 calls" in text(ready, "benchmark.plot.caption")
    # Escape lets go of the row: the latest size of all devices again.
    qtbot.keyClick(find(ready, QTableView, "benchmark.results"), Qt.Key.Key_Escape)
    assert drawn_keys(ready) == ("cpu", "cuda:0")
    assert text(ready, "benchmark.details") == ""


def test_the_newest_row_is_in_sight_and_stays_so_when_its_details_take_room(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    def newest_is_in_sight() -> bool:
        row = view.visualRect(view.model().index(5, Column.SIZE))
        return view.viewport().rect().contains(row)

    ready.resize(1000, 560)
    run(qtbot, ready, "32, 64, 128, 256, 512, 1024")
    view = find(ready, QTableView, "benchmark.results")
    before = view.viewport().height()
    qtbot.waitUntil(newest_is_in_sight)
    select_row(qtbot, ready, 5)
    assert text(ready, "benchmark.details") != ""
    for _ in range(3):  # until every part has found its place
        QApplication.processEvents()
    assert view.viewport().height() < before
    assert newest_is_in_sight()


def test_rows_can_be_reached_by_the_keyboard(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "64, 512")
    view = find(ready, QTableView, "benchmark.results")
    view.setFocus()
    view.selectionModel().setCurrentIndex(
        view.model().index(0, Column.SIZE), QItemSelectionModel.SelectionFlag.NoUpdate
    )
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert "512 × 512" in text(ready, "benchmark.details")


def test_the_tab_key_goes_through_the_parts_as_they_are_read(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    """Of the two views one is reached; the arrow keys go to the other."""
    run(qtbot, ready, "64, 128")
    first = find(ready, QComboBox, "benchmark.workload")
    first.setFocus()
    reached = []
    for _ in range(18):
        widget = QApplication.focusWidget()
        assert widget is not None
        reached.append(widget.objectName().removeprefix("benchmark."))
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    assert reached == [
        "workload", "sizes", "sweep", "dtype.float32", "dtype.float16", "dtype.float64",
        "dtype.bfloat16", "devices.cpu", "budget", "mode.transfers", "mode.naive", "expert", "run",
        "view.live", "clear", "export",
        "plot.sizes", "results",
    ]  # fmt: skip
    assert first.hasFocus()


def test_stop_keeps_what_was_measured(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(qtbot, ready, "64, 128")
    click(qtbot, ready, "benchmark.run")
    wait_samples(qtbot, ready)
    click(qtbot, ready, "benchmark.stop")
    wait_over(qtbot, ready)
    assert cells(ready, Column.STAMP) == ["■ stopped"]
    assert cells(ready, Column.SAMPLES) == ["8"]
    assert "Stopped: 0 of 2 runs finished." in text(ready, "benchmark.progress.text")
    assert text(ready, "benchmark.verdict") == "Nothing has finished yet."
    assert not find(ready, QPushButton, "benchmark.stop").isEnabled()
    assert find(ready, QPushButton, "benchmark.run").isEnabled()


def test_an_engine_that_dies_is_told_and_run_goes_on(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, studio: Studio
) -> None:
    def crash(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        if request.size == 64:
            yield from run_events(request)
        else:
            yield started(request)
            yield EngineEnded(exit_code=-11)

    engines.scripts[RunWorkload] = crash
    run(qtbot, ready, "64, 128, 256")
    assert "The engine crashed (signal 11)" in text(ready, "benchmark.warning")
    assert "press Run to go on" in text(ready, "benchmark.warning")
    assert cells(ready, Column.STAMP)[0] == "✔ verified"
    assert cells(ready, Column.STAMP)[1].startswith("✖ failed: The engine crashed")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    qtbot.waitUntil(find(ready, QPushButton, "benchmark.run").isEnabled)
    run(qtbot, ready, "128")
    assert cells(ready, Column.STAMP)[2] == "✔ verified"
    assert text(ready, "benchmark.warning") == ""


def test_a_refusal_is_a_row_with_its_sentence(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    refusal = Failure(
        FailureKind.TOO_LARGE, "It needs 64 GiB, 3 GiB are free.", "Traceback (most recent …"
    )

    def refuse(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        yield RunFailed(run_id=request.run_id, failure=refusal)

    engines.scripts[RunWorkload] = refuse
    run(qtbot, ready, "64")
    assert cells(ready, Column.STAMP) == ["✖ failed: It needs 64 GiB, 3 GiB are free."]
    assert "1 could not run; the table says why." in text(ready, "benchmark.warning")
    select_row(qtbot, ready, 0)
    assert "Traceback" not in text(ready, "benchmark.details")


def test_a_doubt_shows_over_the_plot(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, verified=False)
    run(qtbot, ready, "64")
    assert "▲ wrong results at 64 × 64" in text(ready, "benchmark.trust")
    assert find(ready, QLabel, "benchmark.trust").property("role") == "amber"


def test_names_from_outside_are_plain_text(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    evil = "<b>CPU</b> & Co"
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, device_name=evil)
    run(qtbot, ready, "64")
    assert evil in text(ready, "benchmark.verdict")
    for name in ("benchmark.verdict", "benchmark.details", "benchmark.plot.caption"):
        assert find(ready, QLabel, name).textFormat() is Qt.TextFormat.PlainText


def test_runs_of_two_workloads_are_told_apart(qtbot: QtBot, ready: BenchmarkTab) -> None:
    view = find(ready, QTableView, "benchmark.results")
    run(qtbot, ready, "32")
    assert view.isColumnHidden(Column.WORKLOAD)
    find(ready, QComboBox, "benchmark.workload").setCurrentIndex(1)
    run(qtbot, ready, "64, 128")
    assert not view.isColumnHidden(Column.WORKLOAD)
    assert cells(ready, Column.WORKLOAD) == ["elementwise", "matmul", "matmul"]
    # The medians over the size are of one workload.
    qtbot.waitUntil(lambda: find(ready, LivePlot, "benchmark.plot.sizes").plot is not None)
    assert drawn(ready, "benchmark.plot.sizes", "cpu float32")[0] == [64, 128]


def test_a_second_precision_gets_into_the_legend(qtbot: QtBot, ready: BenchmarkTab) -> None:
    def labels() -> list[str]:
        plot = find(ready, LivePlot, "benchmark.plot.sizes")
        return [curve.label for curve in plot._curves.values()]

    run(qtbot, ready, "64, 128")
    assert labels() == ["CPU"]
    toggle(qtbot, ready, "benchmark.dtype.float16")
    toggle(qtbot, ready, "benchmark.dtype.float32")
    run(qtbot, ready, "64, 128")
    assert sorted(labels()) == ["CPU · float16", "CPU · float32"]


def test_a_narrow_window_gives_up_the_number_of_samples_first(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(qtbot, ready, "64")
    view = find(ready, QTableView, "benchmark.results")
    assert not view.isColumnHidden(Column.SAMPLES)
    ready.resize(880, 600)
    qtbot.waitUntil(lambda: view.isColumnHidden(Column.SAMPLES))
    ready.resize(1240, 720)
    qtbot.waitUntil(lambda: not view.isColumnHidden(Column.SAMPLES))


# ── keeping ───────────────────────────────────────────────────────────────────────────────────


def test_clear_brings_the_empty_page_back(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "64, 128")
    click(qtbot, ready, "benchmark.clear")
    assert cells(ready, Column.SIZE) == []
    assert text(ready, "benchmark.verdict") == "Nothing was measured yet."
    assert not find(ready, QTableView, "benchmark.results").isVisible()
    assert not find(ready, QPushButton, "benchmark.export").isVisible()


def export(tab: QWidget, kind: str) -> None:
    find(tab, QAction, f"benchmark.export.{kind}").trigger()


@pytest.fixture
def chosen_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the file dialog says to save, without its suffix."""
    path = tmp_path / "results"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(path), ""))
    return path


def test_csv_and_json_are_written(qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path) -> None:
    run(qtbot, ready, "64, 128")
    export(ready, "csv")
    written = chosen_path.with_suffix(".csv")
    assert text(ready, "benchmark.export.outcome") == f"Saved as {written}"
    with written.open(encoding="utf-8", newline="") as file:
        assert [line["size"] for line in csv.DictReader(file)] == ["64", "128"]
    export(ready, "json")
    exported = json.loads(chosen_path.with_suffix(".json").read_text(encoding="utf-8"))
    assert [len(run["samples_s"]) for run in exported["runs"]] == [40, 40]
    assert exported["engine"]["torch_version"] == "2.13.0+cpu"
    assert exported["exported_at"].startswith("20")


def test_a_file_that_cannot_be_written_is_told(
    qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path
) -> None:
    run(qtbot, ready, "64")
    chosen_path.with_suffix(".csv").mkdir()
    export(ready, "csv")
    assert "could not be written" in text(ready, "benchmark.export.outcome")
    assert find(ready, QLabel, "benchmark.export.outcome").property("role") == "failure"


def test_a_dialog_that_was_closed_writes_nothing(
    qtbot: QtBot, ready: BenchmarkTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(qtbot, ready, "64")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: ("", ""))
    export(ready, "json")
    assert text(ready, "benchmark.export.outcome") == ""


@pytest.mark.parametrize(
    ("kind", "start"),
    [("markdown", "| Workload |"), ("text", "Workload "), ("copy_csv", "workload,size,")],
)
def test_the_table_goes_onto_the_clipboard(
    qtbot: QtBot, ready: BenchmarkTab, kind: str, start: str
) -> None:
    run(qtbot, ready, "64")
    export(ready, kind)
    assert QGuiApplication.clipboard().text().startswith(start)
    assert text(ready, "benchmark.export.outcome") == "The table is on the clipboard."


def click_head(qtbot: QtBot, tab: QWidget, column: Column) -> None:
    header = find(tab, QTableView, "benchmark.results").horizontalHeader()
    place = QPoint(header.sectionViewportPosition(column) + 12, header.height() // 2)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_a_click_on_a_head_sorts_and_the_copy_keeps_that_order(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(qtbot, ready, "512, 64, 1024")
    click_head(qtbot, ready, Column.MEDIAN)
    assert cells(ready, Column.SIZE) == ["64", "512", "1024"]
    click_head(qtbot, ready, Column.MEDIAN)
    assert cells(ready, Column.SIZE) == ["1024", "512", "64"]
    view = find(ready, QTableView, "benchmark.results")
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["1024", "512", "64"]
    # A selected row is the run that is shown there.
    select_row(qtbot, ready, 0)
    assert "1024 × 1024" in text(ready, "benchmark.details")
    click_head(qtbot, ready, Column.MEDIAN)
    assert cells(ready, Column.SIZE) == ["512", "64", "1024"]


def test_the_tables_menu_sorts_for_those_without_a_mouse(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "512, 64")
    view = find(ready, QTableView, "benchmark.results")
    assert view.contextMenuPolicy() is Qt.ContextMenuPolicy.CustomContextMenu
    find(ready, QAction, f"benchmark.results.sort.{int(Column.SIZE)}").trigger()
    assert cells(ready, Column.SIZE) == ["64", "512"]
    find(ready, QAction, "benchmark.results.sort.-1").trigger()
    assert cells(ready, Column.SIZE) == ["512", "64"]


def test_the_plot_in_front_is_written_as_png_and_svg(
    qtbot: QtBot, ready: BenchmarkTab, chosen_path: Path, theme: Theme
) -> None:
    run(qtbot, ready, "64, 512, 1024")
    plot = find(ready, LivePlot, "benchmark.plot.sizes")
    qtbot.waitUntil(lambda: plot.plot is not None)
    export(ready, "png")
    picture = QImage(str(chosen_path.with_suffix(".png")))
    assert picture.width() >= 2 * plot.width()
    colours = {
        picture.pixelColor(x, y).name()
        for x in range(0, picture.width(), 3)
        for y in range(0, picture.height(), 3)
    }
    assert theme.colour("cpu_ink").lower() in colours  # the curve itself
    assert picture.pixelColor(1, 1).name() == theme.colour("card").lower()
    export(ready, "svg")
    drawing = chosen_path.with_suffix(".svg").read_text(encoding="utf-8")
    assert "<svg" in drawing
    for said in ("medians, every finished run", "time per call", "1024"):
        assert said in drawing
    ElementTree.fromstring(drawing)


def test_no_plot_is_written_before_there_is_one(
    qtbot: QtBot, studio: Studio, theme: Theme, chosen_path: Path
) -> None:
    tab = BenchmarkTab(studio, theme)
    qtbot.addWidget(tab)
    export(tab, "png")
    assert not chosen_path.with_suffix(".png").exists()


def test_the_look_changes_while_results_are_shown(
    qtbot: QtBot, ready: BenchmarkTab, settings: Settings, theme: Theme
) -> None:
    run(qtbot, ready, "64, 128")
    plot = find(ready, LivePlot, "benchmark.plot.sizes")
    qtbot.waitUntil(lambda: plot.plot is not None)
    settings.change(theme="dark" if not theme.is_dark else "light")
    assert drawn(ready, "benchmark.plot.sizes", "cpu float32")[0] == [64, 128]
    assert isinstance(ready.benchmark.results[0], RunFinished)


# ── explained ─────────────────────────────────────────────────────────────────────────────────


def bars(tab: QWidget, name: str) -> dict[str, str]:
    return {bar.label: bar.text.replace("\u202f", " ") for bar in find(tab, ShareBars, name).bars}


def parts_of(request: RunWorkload) -> dict[str, float]:
    if request.device == "cpu":
        return {"compute": 1e-3}
    return {"copy in": 2e-4, "launch": 1e-5, "compute": 5e-4, "copy out": 9e-5}


@with_a_card
def test_where_the_time_goes_is_a_bar_a_table_and_a_sentence(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, parts_s=parts_of(request)
    )
    run(qtbot, ready, "64, 512")
    click(qtbot, ready, "benchmark.view.explanation")
    assert bars(ready, "benchmark.parts.bars") == {"CPU": "1.00 ms", "GT 1030": "800 µs"}
    card = find(ready, ShareBars, "benchmark.parts.bars").bars[1]
    assert [part.name for part in card.parts] == ["copy in", "launch", "compute", "copy out"]
    assert len({(part.role, part.hatch) for part in card.parts}) == 4  # not by colour alone
    rows = find(ready, QTableView, "benchmark.parts.table").model()
    told = [rows.index(1, column).data().replace("\u202f", " ") for column in range(4)]
    assert told == ["GT 1030", "copy in", "200 µs", "25 %"]
    said = text(ready, "benchmark.parts.sentence")
    assert "GT 1030: 62 % of 800 µs is computing." in said
    assert "512 × 512" in text(ready, "benchmark.plot.caption")
    # Another row is explained in its place.
    select_row(qtbot, ready, 0)
    assert "64 × 64" in text(ready, "benchmark.plot.caption")
    assert find(ready, QPushButton, "benchmark.view.explanation").isChecked()


def test_two_stopwatches_stand_side_by_side(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    assert text(ready, "benchmark.naive.sentence").startswith("Not asked for.")
    naive = NaiveTime(printed_s=3e-3, finished_s=4e-3, sentence="It printed 3.00 ms, and why.")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, naive=naive)
    run(qtbot, ready, "1000")
    click(qtbot, ready, "benchmark.view.explanation")
    assert bars(ready, "benchmark.naive.bars") == {
        "honest: the median": "1.00 ms",
        "naive: what a script prints": "3.00 ms",
    }
    assert text(ready, "benchmark.naive.sentence") == "It printed 3.00 ms, and why."


@with_a_card
def test_the_stopwatch_of_a_card_shows_when_it_was_done(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    naive = NaiveTime(printed_s=3e-3, finished_s=4e-3, sentence="It did not wait.")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, naive=naive)
    toggle(qtbot, ready, "benchmark.devices.cpu")
    run(qtbot, ready, "1000")
    click(qtbot, ready, "benchmark.view.explanation")
    assert bars(ready, "benchmark.naive.bars")["done on the device"] == "4.00 ms"


def test_a_low_share_of_the_ceiling_gets_its_cause(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    assert "is not known" in text(ready, "benchmark.ceiling.sentence")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        share_of_ceiling=0.2,
        ceiling="memory bandwidth, 20 GB/s",
        other_processes=True,
    )
    run(qtbot, ready, "512")
    click(qtbot, ready, "benchmark.view.explanation")
    assert bars(ready, "benchmark.ceiling.bars") == {"CPU": "20 %"}
    said = text(ready, "benchmark.ceiling.sentence")
    assert "20 % of this CPU's memory bandwidth" in said
    assert "Other programs used the same device." in said
    assert cells(ready, Column.CEILING) == ["–", "20 %"]


def test_what_the_work_showed_is_told_and_drawn(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        findings=("AMP saved half.", "<b>Twelve</b> kernels."),
        curves={"loss": (2.0, 1.0, 0.5)},
        peak_allocated_bytes=300 << 20,
    )
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    said = text(ready, "benchmark.findings.text")
    assert "AMP saved half.\n<b>Twelve</b> kernels." in said
    assert "Memory allocated at most: CPU 300 MiB." in said
    plot = find(ready, LivePlot, "benchmark.findings.plot")
    assert "loss from 2 to 0.5" in plot.accessibleDescription()
    find(ready, QScrollArea, "benchmark.explanation").ensureWidgetVisible(plot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    assert drawn(ready, "benchmark.findings.plot", "loss")[1] == [2.0, 1.0, 0.5]


def test_the_memory_of_a_workload_with_and_without_an_option_is_told_together(
    qtbot: QtBot, with_training: Engines, ready: BenchmarkTab
) -> None:
    def answer(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        peak_bytes = (100 if request.options else 180) << 20
        return run_events(request, peak_allocated_bytes=peak_bytes)

    with_training.scripts[RunWorkload] = answer
    find(ready, QComboBox, "benchmark.workload").setCurrentIndex(1)
    run(qtbot, ready, "64")
    find(ready, QComboBox, "benchmark.option.amp").setCurrentIndex(1)
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    assert "Memory allocated at most: CPU 180 MiB, CPU · amp float16 100 MiB." in text(
        ready, "benchmark.findings.text"
    )


def test_nothing_is_explained_before_anything_finished(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    assert not find(ready, QPushButton, "benchmark.view.explanation").isEnabled()
    engines.scripts[RunWorkload] = hold
    type_sizes(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.run")
    wait_samples(qtbot, ready)
    click(qtbot, ready, "benchmark.view.explanation")
    assert text(ready, "benchmark.plot.caption").startswith("Nothing has finished yet")
    assert not find(ready, QWidget, "benchmark.naive").isVisible()
    click(qtbot, ready, "benchmark.stop")
    wait_over(qtbot, ready)


def test_in_a_narrow_window_nothing_is_cut_off(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "64, 128")
    assert find(ready, QPushButton, "benchmark.view.sizes").text() == "Time over size"
    ready.resize(760, 560)
    sizes = find(ready, QPushButton, "benchmark.view.sizes")
    qtbot.waitUntil(lambda: sizes.text() == "Sizes")
    assert sizes.accessibleName() == "Time over size"
    click(qtbot, ready, "benchmark.view.history")
    page = find(ready, QScrollArea, "benchmark.history")
    qtbot.waitUntil(lambda: page.isVisible())
    QApplication.processEvents()
    inner = page.widget()
    assert inner is not None
    assert inner.width() <= page.viewport().width()
    for made in ready.findChildren(QPushButton):
        if made.isVisible():
            assert made.width() >= made.sizeHint().width(), made.objectName()
    view = find(ready, QTableView, "benchmark.history.table")
    assert view.isColumnHidden(1)  # nothing has a name
    click(qtbot, ready, "benchmark.view.live")
    results = find(ready, QTableView, "benchmark.results")
    QApplication.processEvents()
    assert results.horizontalScrollBar().maximum() == 0
    assert results.isColumnHidden(Column.SPEED_UP)  # with one device there is nothing to compare


@with_a_card
def test_a_low_window_tells_where_the_curves_cross_in_short(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(qtbot, ready, "64, 512")
    click(qtbot, ready, "benchmark.view.sizes")
    whole = text(ready, "benchmark.plot.caption")
    assert "(measured: between 64 × 64 and 512 × 512)" in whole
    ready.resize(1240, 560)
    caption = find(ready, QLabel, "benchmark.plot.caption")
    qtbot.waitUntil(lambda: caption.text().endswith(" …"))
    assert whole.startswith(text(ready, "benchmark.plot.caption")[:-2])
    assert "measured" not in caption.text()
    assert "measured" in caption.toolTip()


def test_a_cached_result_has_a_whole_bar_and_no_absurd_share(
    qtbot: QtBot, engines: Engines, ready: BenchmarkTab
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, share_of_ceiling=38.75, ceiling="memory bandwidth, 4.10 GB/s"
    )
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    assert bars(ready, "benchmark.ceiling.bars") == {"CPU": "cached"}
    assert "the operands stay in a cache" in text(ready, "benchmark.ceiling.sentence")
    assert "3875" not in text(ready, "benchmark.ceiling.sentence")


# ── history ───────────────────────────────────────────────────────────────────────────────────


def history_rows(tab: QWidget) -> list[list[str]]:
    model = find(tab, QTableView, "benchmark.history.table").model()
    return [
        [model.index(row, column).data() for column in range(model.columnCount())]
        for row in range(model.rowCount())
    ]


def open_history(qtbot: QtBot, tab: BenchmarkTab, count: int) -> None:
    click(qtbot, tab, "benchmark.view.history")
    qtbot.waitUntil(lambda: len(history_rows(tab)) == count)


def test_the_history_lists_names_and_deletes_after_asking(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    click(qtbot, ready, "benchmark.view.history")
    assert "None was yet." in text(ready, "benchmark.history.empty")
    click(qtbot, ready, "benchmark.view.live")
    run(qtbot, ready, "64, 128")
    open_history(qtbot, ready, 2)
    view = find(ready, QTableView, "benchmark.history.table")
    view.setFocus()
    view.selectRow(0)
    size = history_rows(ready)[0][3]
    assert "in the median of 40 samples" in text(ready, "benchmark.history.details")
    name = find(ready, QLineEdit, "benchmark.history.name")
    name.setFocus()
    qtbot.keyClicks(name, "<b>before</b>")
    qtbot.keyClick(name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: history_rows(ready)[0][1] == "<b>before</b>")
    click(qtbot, ready, "benchmark.history.delete")
    delete = find(ready, QPushButton, "benchmark.history.delete")
    assert delete.text() == "Delete for good?"
    assert len(history_rows(ready)) == 2
    view.selectRow(1)  # takes the question back
    assert delete.text() == "Delete"
    view.selectRow(0)
    click(qtbot, ready, "benchmark.history.delete")
    click(qtbot, ready, "benchmark.history.delete")
    qtbot.waitUntil(lambda: len(history_rows(ready)) == 1)
    assert history_rows(ready)[0][3] != size


def test_a_ghost_races_along_on_the_live_plot(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(qtbot, ready, "64, 128")
    open_history(qtbot, ready, 2)
    view = find(ready, QTableView, "benchmark.history.table")
    sizes = [row[3].replace("\u202f", " ") for row in history_rows(ready)]
    view.selectRow(sizes.index("64 × 64"))
    assert "Not comparable: its size is 64 × 64 and not 128 × 128." in text(
        ready, "benchmark.history.details"
    )
    click(qtbot, ready, "benchmark.history.ghost")
    assert "Not comparable" in text(ready, "benchmark.history.outcome")
    assert find(ready, QPushButton, "benchmark.view.history").isChecked()
    view.selectRow(sizes.index("128 × 128"))
    click(qtbot, ready, "benchmark.history.ghost")
    qtbot.waitUntil(lambda: "ghost" in drawn_keys(ready))
    assert find(ready, QPushButton, "benchmark.view.live").isChecked()
    plot = find(ready, LivePlot, "benchmark.plot")
    assert plot._curves["ghost"].label.startswith("ghost: Ryzen 7 5700G")
    assert "the ghost" in plot.accessibleDescription()
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "ghost")[0]) == 40)
    # Beside other work it would say nothing.
    select_row(qtbot, ready, 0)
    assert "ghost" not in drawn_keys(ready)
    select_row(qtbot, ready, 1)
    assert "ghost" in drawn_keys(ready)
    click(qtbot, ready, "benchmark.view.history")
    click(qtbot, ready, "benchmark.history.ghost.end")
    assert "ghost" not in drawn_keys(ready)


def test_a_refused_file_is_said_and_the_list_stays(
    qtbot: QtBot, ready: BenchmarkTab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run(qtbot, ready, "64")
    open_history(qtbot, ready, 1)
    path = tmp_path / "<b>.json"
    path.write_text("{")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_args: (str(path), ""))
    click(qtbot, ready, "benchmark.history.import")
    qtbot.waitUntil(lambda: "refused" in text(ready, "benchmark.history.outcome"))
    assert find(ready, QLabel, "benchmark.history.outcome").property("role") == "failure"
    assert len(history_rows(ready)) == 1


def test_who_looks_at_the_history_during_a_plan_is_left_there(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(qtbot, ready, "64, 128")
    click(qtbot, ready, "benchmark.run")
    wait_samples(qtbot, ready)
    click(qtbot, ready, "benchmark.view.history")
    engines.latest.go()
    qtbot.waitUntil(lambda: len(ready.benchmark.runs) == 2)
    assert find(ready, QPushButton, "benchmark.view.history").isChecked()
    assert find(ready, QWidget, "benchmark.history").isVisible()
    click(qtbot, ready, "benchmark.stop")
    wait_over(qtbot, ready)
    assert find(ready, QWidget, "benchmark.history").isVisible()


@with_a_card
def test_the_published_table_stands_beside_this_pcs_experiment(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    click(qtbot, ready, "benchmark.view.published")
    said = text(ready, "benchmark.published.source")
    assert "Radosław Śmigielski" in said
    assert "nothing in it was measured by this program" in said
    full = find(ready, QPushButton, "benchmark.preset.gt_1030.full")
    assert not full.isEnabled()
    rows = find(ready, QTableView, "benchmark.published.table").model()
    heads = [rows.headerData(i, Qt.Orientation.Horizontal) for i in range(rows.columnCount())]
    assert heads == [
        "Size", "Iterations", "Post: Ryzen 7 5700G", "Post: GeForce GT 1030", "Here: CPU",
        "Here: GT 1030",
    ]  # fmt: skip

    def row(number: int) -> list[str]:
        cells = (rows.index(number, column).data() for column in range(6))
        return [cell.replace("\u202f", " ") for cell in cells]

    assert row(1) == ["2048 × 2048", "2048", "30.2 s", "45.5 s", "–", "–"]
    click(qtbot, ready, "benchmark.preset.gt_1030")
    assert find(ready, LivePlot, "benchmark.plot").isVisible()
    wait_over(qtbot, ready)
    asked = [(r.size, r.dtype, r.device, r.budget_s, r.naive) for r in requests_of(ready)]
    assert asked[:2] == [(512, "float16", "cpu", 2.0, True), (512, "float16", "cuda:0", 2.0, True)]
    assert {size for size, *_ in asked} == {512, 2048, 4096}
    click(qtbot, ready, "benchmark.view.history")
    median_s = ready.benchmark.results[2].median_s
    assert row(1)[4] == f"≈ {2048 * median_s:.2f} s"
    assert "CPU at 2048 × 2048: scaled from 160 calls to 2048" in text(
        ready, "benchmark.published.scaling"
    )
    # The time of the full length is told before it can begin.
    assert full.isEnabled()
    assert "it took its author 13 min" in text(ready, "benchmark.published.full.text")
    find(ready, QScrollArea, "benchmark.history").ensureWidgetVisible(full)
    click(qtbot, ready, "benchmark.preset.gt_1030.full")
    wait_over(qtbot, ready)
    (whole,) = [r for r in requests_of(ready)[6:] if (r.size, r.device) == (2048, "cpu")]
    assert whole.budget_s == pytest.approx(2048 * median_s)


def requests_of(tab: BenchmarkTab) -> list[RunWorkload]:
    return [run.request for run in tab.benchmark.runs]
