"""A kept run beside the live one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.run_answers import run_events
from tests.model.benchmark.history.kept import entry, run

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.notice import Notice
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.benchmark_history import BenchmarkHistory
    from tests.fakes.scripted_engine import Engines


def test_a_ghost_races_what_can_be_compared(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, notices: list[Notice]
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    latest = benchmark.results[-1]
    history.race(entry(history, 64), latest)
    assert "Not comparable" in notices[-1].sentence
    assert "64 × 64" in notices[-1].sentence.replace("\u202f", " ")
    assert history.ghost is None
    history.rename(entry(history, 128).key, "yesterday")
    history.race(entry(history, 128), latest)
    with qtbot.waitSignal(history.ghost_changed):
        pass
    assert history.ghost is not None
    ghost, _label = history.ghost
    assert ghost.series.values.tolist() == benchmark.runs[1].series.values.tolist()
    history.end_race()
    assert history.ghost is None


def test_another_pytorch_ends_the_race_with_the_reason(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    engines: Engines,
    notices: list[Notice],
) -> None:
    run(qtbot, benchmark, history, 64)
    history.race(entry(history, 64), None)
    qtbot.waitUntil(lambda: history.ghost is not None)
    run(qtbot, benchmark, history, 64)
    assert history.ghost is not None
    engines.scripts[RunWorkload] = lambda _e, request: run_events(request, torch_version="3.0.0")
    run(qtbot, benchmark, history, 64)
    assert history.ghost is None
    assert any("removed. Not comparable: it used PyTorch 2.13.0" in one.sentence for one in notices)
