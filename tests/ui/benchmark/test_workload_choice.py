"""The page as a whole, and choosing a workload: its sizes, options and modes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QWidget

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.run_messages import SUSTAINED_LOAD_S, RunWorkload
from gpu_studio.model.pages import BENCHMARK, Destination
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from tests.driving.benchmark import (
    cells,
    columns_of,
    front,
    requests_of,
    run,
    turn_to,
    type_sizes,
    wait_over,
)
from tests.driving.window import click, find, numbers, sees, text
from tests.fakes.descriptions import described, described_with_cuda, elementwise
from tests.fakes.pc import two_cards
from tests.ui.benchmark.answers import train_step, with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.settings import Settings
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme
    from tests.fakes.scripted_engine import Engines


def test_a_workload_brings_its_sizes_options_and_modes(
    qtbot: QtBot, with_training: Engines, ready: BenchmarkTab
) -> None:
    workload = find(ready, "benchmark.workload", QComboBox)
    assert ready.findChild(QComboBox, "benchmark.option.amp") is None
    workload.setCurrentIndex(1)
    assert text(ready, "benchmark.sizes.note") == train_step().size_title
    assert find(ready, "benchmark.sizes", QLineEdit).text() == "32, 64"
    amp = find(ready, "benchmark.option.amp", QComboBox)
    (option,) = train_step().options
    assert (amp.accessibleName(), amp.toolTip()) == (option.title, option.sentence)
    assert [amp.itemText(i) for i in range(amp.count())] == ["off", "float16", "bfloat16"]
    click(ready, "benchmark.expert.more")
    cold = find(ready, "benchmark.mode.cold", QCheckBox)
    assert (cold.isEnabled(), cold.toolTip()) == (False, train_step().refuses["cold"])
    amp.setCurrentIndex(1)
    run(ready, "64")
    (request,) = [r for r in with_training.requests if isinstance(r, RunWorkload)]
    assert (request.workload, request.options) == ("train_step", {"amp": "float16"})
    assert cells(ready, "Mode") == ["AMP float16"]
    # What was chosen is there again after a look at another workload.
    workload.setCurrentIndex(0)
    assert cold.isEnabled()
    workload.setCurrentIndex(1)
    assert find(ready, "benchmark.option.amp", QComboBox).currentData() == "float16"
    assert find(ready, "benchmark.sizes", QLineEdit).text() == "64"
    find(ready, "benchmark.option.amp", QComboBox).setCurrentIndex(0)
    run(ready, "64")
    assert with_training.requests[-1].options == {}, "the usual value is no option of a run"


def test_a_workload_that_cannot_run_is_listed_with_the_reason(
    qtbot: QtBot, with_training: Engines, ready: BenchmarkTab
) -> None:
    workload = find(ready, "benchmark.workload", QComboBox)
    assert workload.itemText(2) != "Data parallel"  # marked as not available
    workload.setCurrentIndex(2)
    (described,) = with_training.scripts[DescribeEngine]
    assert described.workloads[2].skipped in text(ready, "benchmark.devices.note")
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    workload.setCurrentIndex(0)
    assert find(ready, "benchmark.run", QPushButton).isEnabled()


@with_a_card
def test_a_workload_of_cards_alone_leaves_the_cpu_out(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, studio: Studio
) -> None:
    kernel = train_step(name="custom_kernel", device_kinds=("cuda",), options=())
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=(kernel,))]
    studio.session.restart()
    qtbot.waitUntil(lambda: text(ready, "benchmark.devices.note") != "")
    run(ready, "64")
    assert {run.request.device for run in ready.benchmark.runs} == {"cuda:0"}


@with_a_card
def test_the_modes_go_into_the_requests_and_are_kept(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, settings: Settings
) -> None:
    assert not find(ready, "benchmark.mode.cold", QCheckBox).isVisible()
    click(ready, "benchmark.expert.more")
    for mode in ("transfers", "naive", "cold", "stop_early"):
        find(ready, f"benchmark.mode.{mode}", QCheckBox).setChecked(True)
    run(ready, "64")
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [(r.device, r.transfers) for r in asked] == [
        ("cpu", False), ("cuda:0", False), ("cuda:0", True),
    ]  # fmt: skip
    assert {(r.cache, r.naive, r.stop_at_relative_interval) for r in asked} == {
        ("cold", True, 0.02)
    }
    assert settings.choices.modes == ("cold", "transfers", "naive", "stop_early")
    assert cells(ready, "Mode") == ["cold cache"]
    titles = columns_of(ready)
    assert titles[2:5] == ["CPU", "GT 1030", "GT 1030 + copies"]


def test_the_sustained_speed_can_be_asked_for(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, settings: Settings
) -> None:
    box = find(ready, "benchmark.mode.sustained", QCheckBox)
    assert box.isVisible()
    assert "15 s" in box.toolTip().replace("\u202f", " ")
    assert box.accessibleDescription() == box.toolTip()
    type_sizes(ready, "64")
    quick = text(ready, "benchmark.progress.text")
    click(ready, "benchmark.mode.sustained")
    shown = text(ready, "benchmark.progress.text")
    run(ready, "64")
    (request,) = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert request.sustained
    assert request.timed_s == SUSTAINED_LOAD_S
    assert settings.choices.modes == ("sustained",)
    assert cells(ready, "Mode") == ["sustained"]
    # The default of 2 s, or 15 s of load and 15 s more: the plan says so beforehand.
    seconds = [int(re.findall(r"about (\d+) s", words)[0]) for words in (quick, shown)]
    assert seconds[1] - seconds[0] == pytest.approx(28, abs=1)


@with_a_card
def test_the_choices_make_the_plan(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, settings: Settings
) -> None:
    find(ready, "benchmark.workload", QComboBox).setCurrentIndex(1)
    click(ready, "benchmark.dtype.float16")
    click(ready, "benchmark.devices.cuda:0")
    click(ready, "benchmark.devices.cpu")
    assert not find(ready, "benchmark.devices.cuda:0", QCheckBox).isChecked()
    click(ready, "benchmark.devices.cuda:0")
    budget = find(ready, "benchmark.budget", QComboBox)
    budget.setCurrentIndex(budget.findData(0.5))
    run(ready, "128")
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
    tab.show()
    studio.start()
    workload = find(tab, "benchmark.workload", QComboBox)
    qtbot.waitUntil(lambda: workload.currentData() == "matmul")
    assert find(tab, "benchmark.sizes", QLineEdit).text() == "7, 8"
    assert find(tab, "benchmark.budget", QComboBox).currentData() == 3.5
    boxes = find(tab, "benchmark.dtype", QWidget).findChildren(QCheckBox)
    assert [box.text() for box in boxes if box.isChecked()] == ["float64"]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_card_that_pytorch_cannot_use_is_listed_with_the_reason(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    assert find(ready, "benchmark.devices.cuda:0", QCheckBox).isChecked()
    engines.scripts[DescribeEngine] = [described()]
    ready._studio.session.restart()
    qtbot.waitUntil(lambda: ready._studio.session.state.is_idle)
    devices = find(ready, "benchmark.devices", QWidget)
    qtbot.waitUntil(
        lambda: (
            [box.isEnabled() for box in devices.findChildren(QCheckBox) if box.isVisible()]
            == [True, False, False]
        )
    )
    boxes = [box for box in devices.findChildren(QCheckBox) if box.isVisible()]
    reasons = [box.accessibleDescription() for box in boxes]
    cards = ready._studio.board.cards
    assert [card.obstacle for card in cards] == [Obstacle.NO_CUDA] * 2
    assert reasons[1:] == [card.reason for card in cards]
    assert "CPU-only build. The cu126 build can use it." in reasons[1]


# ── the page as a whole ──────────────────────────────────────────────────────────────────────────


def test_until_the_engine_is_there_nothing_can_run(
    qtbot: QtBot, studio: Studio, tab: BenchmarkTab
) -> None:
    run_button = find(tab, "benchmark.run", QPushButton)
    assert not run_button.isEnabled()
    assert "PyTorch" in text(tab, "benchmark.progress.text")
    assert numbers(text(tab, "benchmark.verdict")) == []
    qtbot.keyClick(find(tab, "benchmark.sizes", QLineEdit), Qt.Key.Key_Return)
    assert not tab.benchmark.runs
    studio.start()
    qtbot.waitUntil(run_button.isEnabled)
    qtbot.waitUntil(lambda: numbers(text(tab, "benchmark.progress.text")) == ["4", "16"])
    assert find(tab, "benchmark.workload", QComboBox).currentText() == elementwise().title
    assert elementwise().sentence in find(tab, "benchmark.workload").toolTip()


def test_without_an_engine_there_is_a_way_to_start_one(
    qtbot: QtBot, studio: Studio, engines: Engines, tab: BenchmarkTab, caplog: Any
) -> None:
    fresh = find(tab, "benchmark.fresh_engine", QPushButton)
    assert not fresh.isVisible()
    engines.scripts[DescribeEngine] = [EngineEnded(exit_code=1)]
    studio.start()
    qtbot.waitUntil(fresh.isVisible)
    assert "stopped" in text(tab, "benchmark.progress.text")
    engines.scripts[DescribeEngine] = [described()]
    click(tab, "benchmark.fresh_engine")
    qtbot.waitUntil(find(tab, "benchmark.run", QPushButton).isEnabled)
    assert not fresh.isVisible()


def test_most_options_are_folded_and_say_what_differs_from_the_default(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    click(ready, "benchmark.options.more")
    assert not sees(ready, "benchmark.dtype")
    assert sees(ready, "benchmark.devices.cpu")
    assert "changed" not in text(ready, "benchmark.options.summary")
    find(ready, "benchmark.mode.transfers", QCheckBox).setChecked(True)
    find(ready, "benchmark.dtype.float16", QCheckBox).setChecked(True)
    assert "float16" in text(ready, "benchmark.options.summary")
    assert text(ready, "benchmark.options.summary").endswith("2 changed")


def test_before_the_first_run_and_after_clear_there_are_other_ways_to_a_result(
    qtbot: QtBot, tab: BenchmarkTab, studio: Studio
) -> None:
    ways = ("benchmark.view.recording",)
    assert not any(sees(tab, way) for way in ways), "devices may still come"
    studio.start()
    qtbot.waitUntil(lambda: all(sees(tab, way) for way in ways))
    assert "?" in text(tab, "benchmark.hero.headline")
    run(tab, "64, 128")
    assert not any(sees(tab, way) for way in ways)
    click(tab, "benchmark.clear")
    assert all(sees(tab, way) for way in ways)
    assert cells(tab, "Size") == []
    assert numbers(text(tab, "benchmark.verdict")) == []
    assert not sees(tab, "benchmark.results")
    assert not sees(tab, "benchmark.export")


def test_in_a_narrow_page_the_choices_are_a_bar_and_the_focus_stays(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    click(ready, "benchmark.options.more")

    def top(name: str) -> int:
        widget = find(ready, f"benchmark.{name}")
        return widget.mapTo(ready, widget.rect().center()).y()

    run_button = find(ready, "benchmark.run", QPushButton)
    for width, is_bar in ((1400, False), (1000, True), (1400, False)):
        run_button.setFocus()
        ready.window().resize(width, 800)
        qtbot.waitUntil(lambda wanted=is_bar: wanted == (abs(top("workload") - top("run")) < 20))
        assert (top("hero") > top("devices")) == is_bar
        assert run_button.hasFocus()
        assert sees(ready, "benchmark.sizes") is not is_bar
        assert "about" in text(ready, "benchmark.progress.text"), "how long Run would take"
    ready.window().resize(1000, 800)
    click(ready, "benchmark.options.more")
    qtbot.waitUntil(lambda: sees(ready, "benchmark.options.sizes"))
    qtbot.waitUntil(lambda: top("hero") > top("options.sizes"))


def test_what_another_page_starts_is_what_this_page_shows(
    qtbot: QtBot, ready: BenchmarkTab, settings: Settings
) -> None:
    type_sizes(ready, "32, 48")
    turn_to(ready, "History")
    ready.go_to(Destination(page=BENCHMARK, starts=True))
    assert front(ready) == "Run"
    wait_over(ready)
    asked = {request.size for request in requests_of(ready)}
    shown = find(ready, "benchmark.sizes", QLineEdit).text()
    assert shown == ", ".join(map(str, sorted(asked)))
    (workload,) = {request.workload for request in requests_of(ready)}
    assert find(ready, "benchmark.workload", QComboBox).currentData() == workload
    assert settings.choices.sizes != shown, "one's own choices come back at the next start"
