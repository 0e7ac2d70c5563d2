"""The result at the top of the tab: what is read there, and in which size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.benchmark_hero import Hero
from gpu_studio.ui.benchmark.benchmark_head import HeroCard
from gpu_studio.ui.result_bars import ResultBars
from gpu_studio.ui.trust_chip import TrustChip
from tests.driving.benchmark import (
    headline,
    hero_bars,
    hover_row,
    run,
    select_row,
    trust,
    type_sizes,
    wait_over,
    wait_samples,
)
from tests.driving.window import click, find, sees, text
from tests.fakes.run_answers import call_time_s, kept_busy, run_events, started
from tests.ui.benchmark.answers import hold, with_a_card

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from gpu_studio.ui.theme import Theme
    from tests.fakes.scripted_engine import Engines


@with_a_card
def test_the_size_under_the_mouse_is_at_the_top_and_then_the_selected_one(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(ready, "64, 512, 2048")
    assert headline(ready) == "6.8 × faster"
    hover_row(ready, 0)
    qtbot.waitUntil(lambda: headline(ready) == "CPU 48.9 × faster")
    assert "64 × 64" in text(ready, "benchmark.hero.work")
    select_row(ready, 1)
    qtbot.waitUntil(lambda: headline(ready) == "1.2 × faster")
    hover_row(ready, 2)
    qtbot.waitUntil(lambda: headline(ready) == "6.8 × faster")
    find(ready, "benchmark.results", QWidget).viewportEntered.emit()
    assert headline(ready) == "1.2 × faster"


@with_a_card
def test_before_a_run_the_bars_are_those_of_the_chosen_devices(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    assert hero_bars(ready) == {"CPU": "", "GT 1030": ""}
    assert trust(ready) == ("", "")
    click(ready, "benchmark.devices.cuda:0")
    assert hero_bars(ready) == {"CPU": ""}


@with_a_card
def test_while_it_runs_the_top_is_gray_and_has_the_time_left(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "512")
    click(ready, "benchmark.run")
    wait_samples(ready)
    qtbot.waitUntil(lambda: hero_bars(ready)["CPU"] != "")
    assert find(ready, "benchmark.hero.headline", QLabel).property("tone") == "quiet"
    tone, words = trust(ready)
    assert (tone, "left" in words) == ("quiet", True)
    assert hero_bars(ready)["GT 1030"] == ""
    engines.latest.go()
    qtbot.waitUntil(lambda: engines.latest.paused.is_set() and len(ready.benchmark.runs) == 2)
    engines.latest.go()
    wait_over(ready)
    assert find(ready, "benchmark.hero.headline", QLabel).property("tone") == ""


def test_a_failure_is_reported_once(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    refused = Failure(FailureKind.TOO_LARGE, "It needs 64 GiB. Use a smaller size.")
    engines.scripts[RunWorkload] = lambda _engine, request: [
        started(request), RunFailed(run_id=request.run_id, failure=refused)
    ]  # fmt: skip
    run(ready, "64")
    assert text(ready, "benchmark.hero.work") == refused.message
    assert text(ready, "benchmark.warning") == ""
    assert trust(ready)[0] == "failure"


@with_a_card
def test_the_largest_type_is_the_ratio_and_it_shrinks_before_it_is_cut(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(ready, "64, 2048")
    label = find(ready, "benchmark.hero.headline", QLabel)
    assert label.property("role") == "hero"
    assert label.fontMetrics().height() > 2.5 * ready.fontMetrics().height()
    ready.window().resize(700, 720)
    qtbot.waitUntil(lambda: label.property("role") != "hero")
    assert label.height() >= label.heightForWidth(label.width())


@with_a_card
def test_what_is_seen_at_the_top_is_also_heard(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 2048")
    hero = find(ready, "benchmark.hero", QWidget)
    assert "6.8" in hero.accessibleName()
    assert "GT 1030" in hero.accessibleDescription()


@with_a_card
def test_a_picture_of_the_plot_has_the_result_on_top(
    qtbot: QtBot, ready: BenchmarkTab, theme: Theme, chosen_path: Path
) -> None:
    run(ready, "64, 2048")
    plot = find(ready, "benchmark.plot.sizes", QWidget)
    qtbot.waitUntil(lambda: plot.plot is not None)
    find(ready, "benchmark.export.png", QAction).trigger()
    picture = QImage(str(chosen_path.with_suffix(".png")))
    bars = find(ready, "benchmark.hero.bars", ResultBars)
    assert picture.height() > 2 * (plot.height() + bars.height())
    orange = theme.colour("cpu").lower()
    row = [picture.pixelColor(picture.width() // 2, y).name() for y in range(picture.height())]
    assert row.count(orange) > bars.fontMetrics().height()


def test_the_keyboard_goes_from_run_to_stop_and_back(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "512")
    start, stop = (find(ready, f"benchmark.{name}", QPushButton) for name in ("run", "stop"))
    start.setFocus()
    click(ready, "benchmark.run")
    assert stop.hasFocus()
    wait_samples(ready)
    engines.latest.go()
    wait_over(ready)
    assert start.hasFocus()


def test_the_chip_is_no_wider_than_its_words_where_there_is_no_ratio(qtbot, theme):
    card = HeroCard(theme, name="hero")
    qtbot.addWidget(card)
    card.show_hero(Hero("", "Matrix product", chip=Notice("Spread 25 %", Tone.AMBER)))
    card.resize(900, 300)
    card.show()
    chip = card.findChild(TrustChip)
    qtbot.waitUntil(lambda: 0 < chip.width() < card.width() / 2)


@with_a_card
def test_no_verdict_beside_other_programs_has_a_button_that_runs_it_again(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    assert not sees(ready, "benchmark.hero.action")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, **(kept_busy(call_time_s(request)) if request.device == "cpu" else {})
    )
    run(ready, "512")
    assert headline(ready) == "Cannot be told"
    assert "other programs" in text(ready, "benchmark.verdict")
    again = find(ready, "benchmark.hero.action", QPushButton)
    assert (again.text(), again.isVisible()) == ("Run again", True)

    type_sizes(ready, "64")  # what is chosen meanwhile is another comparison
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    click(ready, "benchmark.hero.action")
    wait_over(ready)
    assert {one.request.size for one in ready.benchmark.runs} == {512}
    assert headline(ready) == "1.2 × faster"
    assert not again.isVisible()
