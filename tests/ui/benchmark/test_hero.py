"""The result at the top of the tab: what is read there, and in which size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from gpu_studio.core.messages.run_messages import RunWorkload
from tests.driving.benchmark import (
    headline,
    run,
    select_row,
    trust,
    type_sizes,
    wait_over,
    wait_samples,
)
from tests.driving.window import click, find, sees, text
from tests.fakes.run_answers import call_time_s, kept_busy, run_events
from tests.ui.benchmark.answers import hold, with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines


@with_a_card
def test_the_selected_size_is_at_the_top(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 512, 2048")
    assert headline(ready) == "GT 1030 6.8 × faster"
    select_row(ready, 0)
    qtbot.waitUntil(lambda: headline(ready) == "CPU 48.9 × faster")
    assert "64 × 64" in text(ready, "benchmark.hero.work")
    select_row(ready, 1)
    qtbot.waitUntil(lambda: headline(ready) == "GT 1030 1.2 × faster")


@with_a_card
def test_while_it_runs_the_top_is_gray_and_has_the_time_left(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "512")
    click(ready, "benchmark.run")
    wait_samples(ready)
    assert find(ready, "benchmark.hero.headline", QLabel).property("tone") == "quiet"
    tone, words = trust(ready)
    assert (tone, "left" in words) == ("quiet", True)
    engines.latest.go()
    qtbot.waitUntil(lambda: engines.latest.paused.is_set() and len(ready.benchmark.runs) == 2)
    engines.latest.go()
    wait_over(ready)
    assert find(ready, "benchmark.hero.headline", QLabel).property("tone") == ""


@with_a_card
def test_the_words_shrink_before_they_are_cut_and_are_heard(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    run(ready, "64, 2048")
    label = find(ready, "benchmark.hero.headline", QLabel)
    assert label.property("role") == "hero_words"
    ready.window().resize(520, 720)
    qtbot.waitUntil(lambda: label.property("role") != "hero_words")
    qtbot.waitUntil(lambda: label.width() >= label.sizeHint().width())
    assert "6.8" in find(ready, "benchmark.hero", QWidget).accessibleName()


@with_a_card
def test_the_plot_has_half_of_the_window_at_any_size(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 2048")
    click(ready, "benchmark.options.more")
    place = find(ready, "benchmark.plots")
    for width, height in ((1250, 900), (870, 480), (1250, 700)):
        ready.window().resize(width, height)
        qtbot.waitUntil(lambda whole=height: 0.5 * whole <= place.height() < 0.75 * whole)
        assert find(ready, "benchmark.hero").height() < 50


def test_the_keyboard_goes_from_run_to_stop(
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
    assert headline(ready) == "GT 1030 1.2 × faster"
    assert not again.isVisible()
