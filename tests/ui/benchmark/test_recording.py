"""Recordings in the tab: opened, played, labelled wherever they show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtWidgets import QComboBox, QMenu, QTableView

from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.messages.message import LARGEST_COUNT
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.protocol import encode_all
from gpu_studio.engine.recorded_engine import RecordedEngine
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.benchmark.recording import AT_ONCE
from gpu_studio.model.pages import HISTORY, Destination
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import (
    cells,
    columns_of,
    drawn_keys,
    explain,
    reasons,
    run,
    select_row,
    trust,
    wait_over,
)
from tests.driving.window import click, drawn, find, text
from tests.fakes.pc import gt_1030
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import batch, finished, run_events, started

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab

LABEL = "A100 with Ryzen 7 5700G, 2026-01-02 03:04"
HEADER = recording_header(title=LABEL, device_name="NVIDIA A100", pc="Ryzen 7 5700G, Linux")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    requests = [
        RunWorkload(
            run_id=f"theirs-{device}-{size}", workload="elementwise", device=device, size=size,
            dtype="float32", budget_s=2.0,
        )
        for size in (64, 2048)
        for device in ("cpu", "cuda:0")
    ]  # fmt: skip
    events = [
        event
        for request in requests
        for event in run_events(
            request, **({"device_name": "NVIDIA A100"} if request.device != "cpu" else {})
        )
    ]
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(encode_all([HEADER, *events]))
    return path


@pytest.fixture
def replaying(studio: Studio, ready: BenchmarkTab) -> BenchmarkTab:
    """The tab of a window that can replay recordings."""
    studio.recorded_factory = lambda recording, speed: RecordedEngine(recording, speed=speed)
    return ready


def open_recording(qtbot: QtBot, tab: BenchmarkTab, path: Path) -> None:
    tab.go_to(Destination(page=HISTORY, paths=(path,)))
    history = tab.findChild(HistoryModel)
    qtbot.waitUntil(lambda: history.recording is not None and not history.is_busy)


def play(qtbot: QtBot, tab: BenchmarkTab, path: Path) -> None:
    """Open a recording as the window does, and play it to its end at once."""
    open_recording(qtbot, tab, path)
    pace = find(tab, "benchmark.recording.pace", QComboBox)
    pace.setCurrentIndex(pace.findData(AT_ONCE))
    click(tab, "benchmark.recording.play")
    wait_over(tab)
    tab.findChild(HistoryModel).choose(selected=())
    tab.findChild(HistoryModel)._opened.clear()  # the next one may be the same


def test_an_opened_recording_says_what_it_is_and_who_is_faster_in_it(
    qtbot: QtBot, replaying: BenchmarkTab, path: Path
) -> None:
    open_recording(qtbot, replaying, path)
    heading = text(replaying, "benchmark.history.heading")
    assert heading == "The Ryzen 7 5700G and the A100 win in 1 each"
    click(replaying, "benchmark.history.details.more")
    facts = text(replaying, "benchmark.history.facts")
    found = ("2026-01-02", "03:04", "NVIDIA A100", "Ryzen 7 5700G, Linux", "4 runs", "8.00 s")
    assert all(fact in facts for fact in found)
    assert replaying.benchmark.runs == []


@pytest.mark.parametrize("inventory", [gt_1030()], ids=["card"])
def test_wherever_its_numbers_show_they_are_called_recorded(
    qtbot: QtBot, replaying: BenchmarkTab, path: Path
) -> None:
    play(qtbot, replaying, path)
    explain(replaying)
    verdict = text(replaying, "benchmark.why.verdict")
    assert all(fact in verdict for fact in ("recording", "A100 against", LABEL))
    assert trust(replaying) == ("amber", "Recording")
    assert LABEL in reasons(replaying)
    assert LABEL in text(replaying, "benchmark.hero.work")
    assert columns_of(replaying)[1:3] == ["CPU, recorded", "A100, recorded"]
    assert cells(replaying, "Trust") == ["▲ recording"] * 2
    click(replaying, "benchmark.view.sizes")
    assert LABEL in text(replaying, "benchmark.plot.caption")
    sizes = find(replaying, "benchmark.plot.sizes", LivePlot)
    legend = [sizes._curves[key].label for key in sizes.curve_keys]
    assert legend == ["CPU, recorded", "A100, recorded"]
    click(replaying, "benchmark.view.time")
    live = find(replaying, "benchmark.plot", LivePlot)
    assert [live._curves[key].label for key in live.curve_keys] == legend
    qtbot.waitUntil(lambda: len(drawn(replaying, "benchmark.plot", "cuda:0")[1]) == 40)
    assert LABEL in text(replaying, "benchmark.plot.caption")
    explain(replaying)
    assert "recorded" in text(replaying, "benchmark.explanation.run")


@pytest.mark.parametrize("inventory", [gt_1030()], ids=["card"])
def test_it_mixes_into_no_verdict_and_no_curve_of_this_pc(
    qtbot: QtBot, replaying: BenchmarkTab, path: Path
) -> None:
    run(replaying, "64, 2048")
    explain(replaying)
    before = text(replaying, "benchmark.why.verdict")
    assert "GT 1030 against" in before
    faster = cells(replaying, "Faster")
    play(qtbot, replaying, path)
    assert cells(replaying, "Faster")[: len(faster)] == faster
    titles = ["CPU", "GT 1030", "CPU, recorded", "A100, recorded"]
    assert columns_of(replaying)[1:5] == titles
    live = find(replaying, "benchmark.plot", LivePlot)
    assert {live._curves[key].label for key in drawn_keys(replaying)} == {
        "CPU, recorded", "A100, recorded",
    }  # fmt: skip
    click(replaying, "benchmark.view.time")
    run(replaying, "64, 2048")
    assert text(replaying, "benchmark.why.verdict") == before
    assert not any("recorded" in live._curves[key].label for key in drawn_keys(replaying))


def test_its_results_are_kept_when_asked(qtbot: QtBot, replaying: BenchmarkTab, path: Path) -> None:
    open_recording(qtbot, replaying, path)
    click(replaying, "benchmark.recording.keep")
    table = find(replaying, "benchmark.history.table", QTableView)
    qtbot.waitUntil(lambda: table.model().rowCount() == 6)
    history = replaying.findChild(HistoryModel)
    kept = [key for key, row in history.rows.items() if row.entry is not None]
    assert {history.rows[key].texts[0] for key in kept} == {"2026-01-02 03:04"}
    card = next(key for key in kept if history.rows[key].texts[2] == "A100, recorded")
    history.choose(selected=(card,))
    assert f"Recorded: {LABEL}." in text(replaying, "benchmark.history.sentence")


def test_runs_made_here_are_exported_as_a_recording(
    qtbot: QtBot, replaying: BenchmarkTab, path: Path, chosen_path: Path
) -> None:
    def export() -> None:
        menu = find(replaying, "benchmark.export.menu", QMenu)
        menu.aboutToShow.emit()
        next(
            action
            for action in menu.actions()
            if action.objectName() == "benchmark.export.recording"
        ).trigger()

    play(qtbot, replaying, path)
    export()
    assert "this PC" in text(replaying, "benchmark.outcome")
    assert not chosen_path.with_suffix(".jsonl").exists()
    run(replaying, "64")
    export()
    created = read_recording(chosen_path.with_suffix(".jsonl"))
    assert [each.request.size for each in created.runs] == [64]
    assert created.runs[0].samples_s == replaying.benchmark.runs[-1].series.values.tolist()


def strange_run(call_s: float, most: float, run_id: str, device: str) -> list[Event]:
    """Return a run at the limits of what a recording may have."""
    asked = RunWorkload(
        run_id=run_id, workload="elementwise", device=device, size=64, dtype="float32",
        budget_s=1e6,
    )  # fmt: skip
    samples_s = (call_s,) * 20
    return [
        started(asked),
        batch(asked, samples_s, 1e6, calls=LARGEST_COUNT),
        finished(
            asked, samples_s, calls_per_sample=LARGEST_COUNT, throughput=most, bytes_per_call=most,
            share_of_ceiling=most, first_call_s=1e6, timed_s=1e6,
            parts_s={"copy in": 1e6, "compute": 0.0}, curves={"loss": (-most, most, 0.0)},
            peak_allocated_bytes=1 << 62, cpu_threads=LARGEST_COUNT,
        ),
    ]  # fmt: skip


@pytest.mark.parametrize("inventory", [gt_1030()], ids=["card"])
@pytest.mark.parametrize(
    ("calls_s", "most"), [((1e-12, 1e6), 1e100), ((1e6, 1e-12), 0.0), ((1e-12, 1e-12), 1e100)]
)
def test_the_limits_of_a_recording_are_drawn(
    qtbot: QtBot, replaying: BenchmarkTab, path: Path, calls_s: tuple[float, float], most: float
) -> None:
    runs = zip(("cpu", "cuda:0"), calls_s, strict=True)
    events = [e for device, call_s in runs for e in strange_run(call_s, most, device, device)]
    path.write_bytes(encode_all([HEADER, *events]))
    play(qtbot, replaying, path)
    explain(replaying)
    for device in ("CPU, recorded", "GT 1030, recorded"):
        select_row(replaying, 0, device)
        for view in ("time", "sizes"):
            click(replaying, f"benchmark.view.{view}")
            replaying.grab()
    assert columns_of(replaying)[1:3] == ["CPU, recorded", "GT 1030, recorded"]
