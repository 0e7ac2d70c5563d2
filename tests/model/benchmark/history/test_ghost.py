"""A kept run beside the live one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.benchmark.history.kept import choose, run

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.notice import Notice
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.history_model import HistoryModel


def test_a_ghost_is_shown_beside_the_same_work_alone(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, notices: list[Notice]
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    choose(history, 64)
    history.show_or_remove()
    assert "Not comparable" in notices[-1].sentence
    assert "64 × 64" in notices[-1].sentence.replace("\u202f", " ")
    assert history.ghost is None
    choose(history, 128)
    history.rename("yesterday")
    history.show_or_remove()
    with qtbot.waitSignal(history.ghost_changed):
        pass
    assert history.ghost is not None
    ghost, _label = history.ghost
    assert ghost.series.values.tolist() == benchmark.runs[1].series.values.tolist()
    assert history.ghost_words.startswith("Remove")
    history.show_or_remove()
    assert history.ghost is None


def test_other_work_removes_it_with_the_reason(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, notices: list[Notice]
) -> None:
    run(qtbot, benchmark, history, 64)
    choose(history, 64)
    history.show_or_remove()
    qtbot.waitUntil(lambda: history.ghost is not None)
    run(qtbot, benchmark, history, 64)
    assert history.ghost is not None
    run(qtbot, benchmark, history, 128)
    assert history.ghost is None
    assert any("removed. Not comparable: its size" in one.sentence for one in notices)


def test_runs_of_one_day_are_compared_by_device_and_those_of_one_work_with_each_other(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    choose(history, 64, 128)
    assert len(history.compared.sides) == 1
    assert [row[0] for row in history.compared.table] == [
        row[0] for row in history.compared.table if row[0]
    ]
    run(qtbot, benchmark, history, 64)
    choose(history, 64)
    assert len(history.compared.sides) == 2
    assert len(history.compared.table) == 2
    assert "faster" in history.heading or "as fast as" in history.heading
