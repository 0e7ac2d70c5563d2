"""The tab as a whole: what is there before anything ran, names, keys, the look, a narrow window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton

from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.model.pages import BENCHMARK, Destination
from tests.driving.benchmark import cells, front, requests_of, run, turn_to, type_sizes, wait_over
from tests.driving.window import click, find, numbers, sees, text
from tests.fakes.descriptions import described, elementwise

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.settings import Settings
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines


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
