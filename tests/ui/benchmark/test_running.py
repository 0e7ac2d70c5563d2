"""A plan on its way: what it shows, how it is stopped, and what can end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.model.benchmark.results_table import Column
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import (
    cells,
    drawn_keys,
    headline,
    run,
    select_row,
    trust,
    type_sizes,
    wait_over,
    wait_samples,
)
from tests.driving.window import click, drawn, find, numbers, text
from tests.fakes.run_answers import run_events, samples_of, started
from tests.ui.benchmark.answers import hold, with_a_card

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines, ScriptedEngine


@with_a_card
def test_a_run_shows_what_it_does_and_every_sample(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "64, 128")
    click(ready, "benchmark.run")
    wait_samples(ready)
    qtbot.waitUntil(lambda: cells(ready, "CPU")[0] != "–")
    shown = text(ready, "benchmark.progress.text")
    assert all(fact in shown for fact in ("64 × 64", "float32", "CPU", "timing"))
    progress = find(ready, "benchmark.progress", QProgressBar)
    assert progress.isVisible()
    assert progress.value() == 62  # a quarter of the first of four runs
    assert progress.format() == find(ready, "benchmark.progress.text", QLabel).text()
    assert all(fact in text(ready, "benchmark.warning") for fact in ("1.20 s", "Stop", "engine"))
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
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
    click(ready, "benchmark.stop")
    wait_over(ready)


def test_what_a_run_hands_over_is_drawn_at_once(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(ready, "64")
    plot = find(ready, "benchmark.plot", LivePlot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    for frames in plot.findChildren(QTimer):
        frames.stop()
    monkeypatch.setattr("gpu_studio.model.benchmark.benchmark._SOONEST_UPDATE_MS", 0)
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "128")
    click(ready, "benchmark.run")
    wait_samples(ready)
    qtbot.waitUntil(lambda: len(drawn(ready, "benchmark.plot", "cpu")[0]) == 8)
    click(ready, "benchmark.stop")
    wait_over(ready)


def test_one_size_stays_in_the_live_view(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64")
    assert find(ready, "benchmark.plot", LivePlot).isVisible()


def test_a_view_that_was_chosen_stays(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "64, 128")
    click(ready, "benchmark.run")
    wait_samples(ready)
    click(ready, "benchmark.view.sizes")
    assert find(ready, "benchmark.plot.sizes", LivePlot).isVisible()
    assert numbers(text(ready, "benchmark.plot.caption")) == []
    click(ready, "benchmark.view.live")
    engines.latest.go()
    qtbot.waitUntil(lambda: len(ready.benchmark.runs) == 2)
    wait_samples(ready)
    engines.latest.go()
    wait_over(ready)
    assert find(ready, "benchmark.plot", LivePlot).isVisible()


def test_stop_keeps_what_was_measured(qtbot: QtBot, ready: BenchmarkTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = hold
    type_sizes(ready, "64, 128")
    click(ready, "benchmark.run")
    wait_samples(ready)
    click(ready, "benchmark.stop")
    wait_over(ready)
    assert cells(ready, Column.STAMP) == ["■ stopped"]
    assert cells(ready, Column.SAMPLES) == ["8"]
    assert numbers(text(ready, "benchmark.progress.text"))[:2] == ["0", "2"]
    assert numbers(text(ready, "benchmark.verdict")) == []
    assert not find(ready, "benchmark.stop", QPushButton).isEnabled()
    assert find(ready, "benchmark.run", QPushButton).isEnabled()


def test_an_engine_that_dies_is_reported_and_run_goes_on(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, studio: Studio
) -> None:
    def crash(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        if request.size == 64:
            yield from run_events(request)
        else:
            yield started(request)
            yield EngineEnded(exit_code=-11)

    engines.scripts[RunWorkload] = crash
    run(ready, "64, 128, 256")
    assert "signal 11" in text(ready, "benchmark.warning")
    assert "Run" in text(ready, "benchmark.warning")
    assert cells(ready, Column.STAMP)[0] == "✔ verified"
    assert cells(ready, Column.STAMP)[1].startswith("✖ engine")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    qtbot.waitUntil(find(ready, "benchmark.run", QPushButton).isEnabled)
    run(ready, "128")
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
    run(ready, "64")
    (stamp,) = cells(ready, Column.STAMP)
    assert stamp.startswith("✖")
    assert text(ready, "benchmark.hero.work") == refusal.message
    select_row(ready, 0)
    assert refusal.message in text(ready, "benchmark.details")
    assert "Traceback" not in text(ready, "benchmark.details")


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
    assert evil in text(ready, "benchmark.verdict")
    for name in ("benchmark.verdict", "benchmark.details", "benchmark.plot.caption"):
        assert find(ready, name, QLabel).textFormat() is Qt.TextFormat.PlainText
