"""Where the time goes, the two stopwatches, and whether a result is normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QComboBox, QPushButton, QScrollArea, QTableView, QWidget

from gpu_studio.core.messages.run_messages import NaiveTime
from gpu_studio.core.protocol import RunWorkload
from gpu_studio.model.benchmark.results_table import Column
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.share_bars import ShareBars
from tests.fakes.run_answers import run_events
from tests.ui.benchmark.answers import hold, parts_of, with_a_card
from tests.ui.benchmark.person import (
    bars,
    cells,
    click,
    drawn,
    run,
    select_row,
    text,
    toggle,
    type_sizes,
    wait_over,
    wait_samples,
)
from tests.ui.by_name import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines, ScriptedEngine


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
    card = find(ready, "benchmark.parts.bars", ShareBars).bars[1]
    assert [part.name for part in card.parts] == ["copy in", "launch", "compute", "copy out"]
    assert len({(part.role, part.hatch) for part in card.parts}) == 4  # not by colour alone
    rows = find(ready, "benchmark.parts.table", QTableView).model()
    told = [rows.index(1, column).data().replace("\u202f", " ") for column in range(4)]
    assert told == ["GT 1030", "copy in", "200 µs", "25 %"]
    said = text(ready, "benchmark.parts.sentence")
    assert "GT 1030: 62 % of 800 µs is computing." in said
    assert "512 × 512" in text(ready, "benchmark.plot.caption")
    # Another row is explained in its place.
    select_row(qtbot, ready, 0)
    assert "64 × 64" in text(ready, "benchmark.plot.caption")
    assert find(ready, "benchmark.view.explanation", QPushButton).isChecked()


def test_two_stopwatches_stand_side_by_side(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    assert text(ready, "benchmark.naive.sentence").startswith("Off.")
    naive = NaiveTime(printed_s=3e-3, finished_s=4e-3, sentence="It printed 3.00 ms, and why.")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, naive=naive)
    run(qtbot, ready, "1000")
    click(qtbot, ready, "benchmark.view.explanation")
    assert bars(ready, "benchmark.naive.bars") == {
        "honest: median": "1.00 ms",
        "naive: printed by a script": "3.00 ms",
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
    assert bars(ready, "benchmark.naive.bars")["finished on the device"] == "4.00 ms"


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
    assert "CPU 300 MiB." in said
    plot = find(ready, "benchmark.findings.plot", LivePlot)
    assert "loss from 2 to 0.5" in plot.accessibleDescription()
    find(ready, "benchmark.explanation", QScrollArea).ensureWidgetVisible(plot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    assert drawn(ready, "benchmark.findings.plot", "loss")[1] == [2.0, 1.0, 0.5]


def test_the_memory_of_a_workload_with_and_without_an_option_is_told_together(
    qtbot: QtBot, with_training: Engines, ready: BenchmarkTab
) -> None:
    def answer(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        peak_bytes = (100 if request.options else 180) << 20
        return run_events(request, peak_allocated_bytes=peak_bytes)

    with_training.scripts[RunWorkload] = answer
    find(ready, "benchmark.workload", QComboBox).setCurrentIndex(1)
    run(qtbot, ready, "64")
    find(ready, "benchmark.option.amp", QComboBox).setCurrentIndex(1)
    run(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.view.explanation")
    assert "CPU 180 MiB, CPU · amp float16 100 MiB." in text(ready, "benchmark.findings.text")


def test_nothing_is_explained_before_anything_finished(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    assert not find(ready, "benchmark.view.explanation", QPushButton).isEnabled()
    engines.scripts[RunWorkload] = hold
    type_sizes(qtbot, ready, "64")
    click(qtbot, ready, "benchmark.run")
    wait_samples(qtbot, ready)
    click(qtbot, ready, "benchmark.view.explanation")
    assert text(ready, "benchmark.plot.caption").startswith("No run has finished yet")
    assert not find(ready, "benchmark.naive", QWidget).isVisible()
    click(qtbot, ready, "benchmark.stop")
    wait_over(qtbot, ready)


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
