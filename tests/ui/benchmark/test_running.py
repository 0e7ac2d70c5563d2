"""A plan on its way: what it shows, what is read at the top, and how it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QWidget

from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import (
    cells,
    drawn_keys,
    explain,
    headline,
    run,
    select_row,
    trust,
    type_sizes,
    wait_over,
    wait_samples,
)
from tests.driving.window import click, drawn, find, sees, text
from tests.fakes.run_answers import call_time_s, kept_busy, run_events, samples_of
from tests.model.benchmark.plans import held_in_turns
from tests.ui.benchmark.answers import hold, with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines


@with_a_card
def test_a_run_shows_what_it_does_and_every_sample(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "64, 128")
    click(ready, "benchmark.run")
    wait_samples(ready)
    qtbot.waitUntil(lambda: cells(ready, "CPU")[0] != "–")
    qtbot.waitUntil(lambda: "timing" in text(ready, "benchmark.progress.text"))
    shown = text(ready, "benchmark.progress.text")
    assert all(fact in shown for fact in ("64 × 64", "float32", "CPU"))
    progress = find(ready, "benchmark.progress", QProgressBar)
    assert progress.isVisible()
    assert progress.value() == 62  # a quarter of the first of four runs
    assert all(fact in text(ready, "benchmark.warning") for fact in ("1.20 s", "Stop", "PyTorch"))
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    assert cells(ready, "Trust") == ["… timing"]
    assert "64 × 64" in text(ready, "benchmark.plot.caption")
    samples = list(
        samples_of(RunWorkload(run_id="", workload="", device="cpu", size=64, dtype=""), 8)
    )
    qtbot.waitUntil(lambda: drawn(ready, "benchmark.plot", "cpu")[1] == samples)
    engines.latest.go()
    # The next device at the same size has a curve beside the first one.
    qtbot.waitUntil(lambda: len(drawn_keys(ready)) == 2)
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cuda:0")[0]) == 8)
    engines.latest.go()
    # The next size begins with its own curves.
    qtbot.waitUntil(lambda: "128 × 128" in text(ready, "benchmark.plot.caption"))
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cpu")[0]) == 8)
    assert drawn(ready, "benchmark.plot", "cuda:0") == ([], [])
    click(ready, "benchmark.stop")
    wait_over(ready)


@with_a_card
def test_each_sample_stands_at_its_time_and_a_bar_says_whose_turn_it_was(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunInTurns] = held_in_turns(rounds=2)
    type_sizes(ready, "2048")
    click(ready, "benchmark.run")
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cuda:0")[0]) == 16)
    times = {device: drawn(ready, "benchmark.plot", device)[0] for device in ("cpu", "cuda:0")}
    # CPU, card, card, CPU: each turn of eight samples ended half a second after the one before.
    assert [times["cpu"][7], times["cpu"][15]] == [0.5, 2.0]
    assert [times["cuda:0"][7], times["cuda:0"][15]] == [1.0, 1.5]
    plot = find(ready, "benchmark.plot", LivePlot)
    assert [(span.role, span.end) for span in plot.marks["spans"]] == [
        ("cpu", 0.5), ("gpu0", 1.5), ("cpu", 2.0),
    ]  # fmt: skip
    first, last = plot.plot.plotItem.vb.viewRange()[0]
    assert (first, last >= 4.0) == (0.0, True), "both runs have two seconds each"
    low, high = (10**end for end in plot.plot.plotItem.vb.viewRange()[1])
    every = [s for device in ("cpu", "cuda:0") for s in drawn(ready, "benchmark.plot", device)[1]]
    assert low < min(every) < max(every) < high
    assert high > 2 * low, "a spread of 1 % does not fill the plot"
    joined = plot._curves["cpu"].shown.joined
    assert [at for at, leads_on in enumerate(joined[:-1]) if not leads_on] == [7]
    engines.latest.go()
    wait_over(ready)
    qtbot.waitUntil(lambda: plot.plot.plotItem.vb.viewRange()[0][1] < 3.0)


def test_a_doubt_shows_over_the_plot(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, verified=False)
    run(ready, "64")
    assert "Wrong" in headline(ready)
    assert trust(ready) == ("failure", "At 64 × 64")


def test_names_from_outside_are_plain_text(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    evil = "<b>CPU</b> & Co"
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, device_name=evil)
    run(ready, "64")
    explain(ready)
    assert evil in text(ready, "benchmark.why.verdict")
    for name in (
        "benchmark.verdict",
        "benchmark.why.verdict",
        "benchmark.details",
        "benchmark.plot.caption",
    ):
        assert find(ready, name, QLabel).textFormat() is Qt.TextFormat.PlainText


# ── what is at the top ───────────────────────────────────────────────────────────────────────────


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
