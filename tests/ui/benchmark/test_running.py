"""A plan on its way: what it shows, how it is stopped, and what can end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton

from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import (
    cells,
    drawn_keys,
    explain,
    headline,
    run,
    trust,
    type_sizes,
    wait_over,
    wait_samples,
)
from tests.driving.window import click, drawn, find, text
from tests.fakes.run_answers import run_events, samples_of
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
