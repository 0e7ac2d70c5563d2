"""Where the time goes, the two stopwatches, and whether a result is normal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QTableView, QWidget

from gpu_studio.core.messages.run_messages import Limit, NaiveTime, RunWorkload
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.result_bars import ResultBars
from tests.driving.benchmark import bars, explain, run, select_row
from tests.driving.pages import settle
from tests.driving.window import drawn, find, numbers, text
from tests.fakes.run_answers import run_events
from tests.ui.benchmark.answers import parts_of, with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines


@with_a_card
def test_where_the_time_goes_is_a_bar_a_table_and_a_sentence(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, parts_s=parts_of(request)
    )
    run(ready, "64, 512")
    assert ready.findChild(QWidget, "benchmark.naive") is None, "nobody asked why yet"
    explain(ready)
    assert bars(ready, "benchmark.parts.bars") == {"CPU": "1.00 ms", "GT 1030": "800 µs"}
    card = find(ready, "benchmark.parts.bars", ResultBars).bars[1]
    assert [*dict(card.parts)] == ["copy in", "launch", "compute", "copy out"]
    rows = find(ready, "benchmark.parts.table", QTableView).model()
    sentence = [rows.index(1, column).data().replace("\u202f", " ") for column in range(4)]
    assert sentence == ["GT 1030", "copy in", "200 µs", "25 %"]
    shown = text(ready, "benchmark.parts.sentence")
    assert all(fact in shown for fact in ("GT 1030", "62 %", "800 µs"))
    assert "512 × 512" in text(ready, "benchmark.explanation.run")
    # Another row is explained in its place.
    select_row(ready, 0)
    assert "64 × 64" in text(ready, "benchmark.explanation.run")


def test_two_stopwatches_stand_side_by_side(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(ready, "64")
    explain(ready)
    assert bars(ready, "benchmark.naive.bars") == {}
    naive = NaiveTime(printed_s=3e-3, finished_s=4e-3, sentence="It printed 3.00 ms, and why.")
    assert naive.sentence != text(ready, "benchmark.naive.sentence")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, naive=naive)
    run(ready, "1000")
    explain(ready)
    shown = bars(ready, "benchmark.naive.bars")
    assert {label.split(":")[0]: time for label, time in shown.items()} == {
        "honest": "1.00 ms", "naive": "3.00 ms",
    }  # fmt: skip
    assert text(ready, "benchmark.naive.sentence") == naive.sentence


def test_a_low_share_of_the_ceiling_gets_its_cause(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    run(ready, "64")
    explain(ready)
    assert numbers(text(ready, "benchmark.ceiling.sentence")) == []
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        share_of_ceiling=0.2,
        ceiling="memory bandwidth, 20 GB/s",
        other_processes=True,
    )
    run(ready, "512")
    explain(ready)
    assert bars(ready, "benchmark.ceiling.bars") == {"CPU": "20 %"}
    shown = text(ready, "benchmark.ceiling.sentence")
    assert all(fact in shown for fact in ("20 %", "CPU", "memory bandwidth", "20 GB/s"))
    assert "programs" in shown  # of the causes of a low share this is the one that was seen


def test_what_the_work_showed_is_reported_and_drawn(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    findings = ("AMP saved half.", "<b>Twelve</b> kernels.")
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request,
        findings=findings,
        curves={"loss": (2.0, 1.0, 0.5)},
        peak_allocated_bytes=300 << 20,
    )
    run(ready, "64")
    explain(ready)
    shown = text(ready, "benchmark.findings.text")
    assert "\n".join(findings) in shown
    assert "CPU 300 MiB" in shown
    plot = find(ready, "benchmark.findings.plot", LivePlot)
    described = plot.accessibleDescription()
    assert "loss" in described
    assert numbers(described) == ["2", "0.5", "3"]
    settle()
    ready.window().ensureWidgetVisible(plot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    assert drawn(ready, "benchmark.findings.plot", "loss")[1] == [2.0, 1.0, 0.5]


def test_a_cached_result_has_a_whole_bar_and_no_absurd_share(
    qtbot: QtBot, engines: Engines, ready: BenchmarkTab
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, share_of_ceiling=38.75, ceiling="memory bandwidth, 4.10 GB/s", limit=Limit.MEMORY
    )
    run(ready, "64")
    explain(ready)
    assert bars(ready, "benchmark.ceiling.bars") == {"CPU": "cached"}
    assert "cache" in text(ready, "benchmark.ceiling.sentence")
    assert "3875" not in text(ready, "benchmark.ceiling.sentence")
