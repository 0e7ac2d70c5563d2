"""Choosing a workload: its sizes, options and modes, and where it cannot run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QWidget

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import SUSTAINED_LOAD_S, RunWorkload
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from tests.driving.benchmark import cells, columns_of, run, type_sizes
from tests.driving.window import click, find, text
from tests.fakes.descriptions import described, described_with_cuda
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
