"""Every finished run is kept, named, deleted, and there for the next window."""

import gc
import threading

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark import history as history_module
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.studio import Studio
from gpu_studio.model.worker import Task
from tests.model.benchmark.history.kept import choose, folder_of, run
from tests.patience import PATIENCE_S


def test_every_finished_run_is_kept_once(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    run(qtbot, benchmark, history, 256)
    assert sorted(each.header.result.size for each in history.entries) == [64, 128, 256]
    assert len(list(folder_of(ready_studio).iterdir())) == 3


def test_a_folder_that_takes_nothing_is_reported_once_and_gets_all_when_the_page_is_seen_again(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    ready_studio: Studio,
    notices: list[Notice],
) -> None:
    folder = folder_of(ready_studio)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file is in the way")
    run(qtbot, benchmark, history, 64, 128)
    assert len([one for one in notices if one.tone is Tone.FAILURE]) == 1
    assert "Cannot save results" in history.trouble
    assert "2 runs are only in memory" in history.trouble
    assert len(history.entries) == 2  # nothing is lost
    folder.unlink()
    history.see(is_seen=True)
    qtbot.waitUntil(lambda: history.trouble == "")
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_can_be_neither_read_nor_written_is_asked_a_few_times(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    notices: list[Notice],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise StudioError(FailureKind.NOT_SAVED, "No permission.")

    monkeypatch.setattr(history._history, "_save", refuse)
    monkeypatch.setattr(history._history, "_file_names", refuse)
    run(qtbot, benchmark, history, 64)
    assert len(notices) <= 3
    assert "1 run is only in memory" in history.trouble


def test_many_bad_files_are_reported_in_few_lines(
    qtbot: QtBot, history: HistoryModel, ready_studio: Studio
) -> None:
    folder = folder_of(ready_studio)
    folder.mkdir(parents=True)
    for number in range(15):
        (folder / f"bad-{number}.json").write_text("{}")
    history.refresh()
    qtbot.waitUntil(lambda: bool(history.refused))
    lines = history.refused.splitlines()
    assert (len(lines), lines[-1][:12]) == (11, "5 more files")


def test_closing_reads_nothing_more(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    ready_studio: Studio,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(qtbot, benchmark, history, *range(64, 96))
    read: list[object] = []
    reads, closes = threading.Event(), threading.Event()

    def slow_read(path: object) -> bytes:
        read.append(path)
        reads.set()
        closes.wait(PATIENCE_S)
        raise StudioError(FailureKind.FILE_REFUSED, "It is no run.")

    monkeypatch.setattr(history_module, "read_capped", slow_read)
    for _ in range(3):
        history.refresh()
    qtbot.waitUntil(reads.is_set)
    wait = Task.wait

    def noted_wait(task: Task, longest_ms: int | None = None) -> bool:
        closes.set()
        return wait(task, longest_ms)

    monkeypatch.setattr(Task, "wait", noted_wait)
    ready_studio.close()
    assert len(read) == 1


def test_closing_writes_what_waits(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64, 128, 256)
    path = folder_of(ready_studio)
    for file in path.iterdir():
        file.unlink()
    for saved in benchmark.runs:
        benchmark.run_ended.emit(saved)
    assert history.is_busy
    ready_studio.close()
    assert len(list(path.iterdir())) == 3


def test_a_run_after_clear_is_kept_as_well(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel
) -> None:
    for size in range(64, 72):  # each may come to lie where the one before it was
        run(qtbot, benchmark, history, size)
        benchmark.clear()
        gc.collect()
    assert len(history.entries) == 8


def test_an_unexpected_error_is_reported_and_the_history_goes_on(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    notices: list[Notice],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_key: str) -> None:
        raise ZeroDivisionError("no such thing")

    run(qtbot, benchmark, history, 64)
    monkeypatch.setattr(history._history, "delete", fail)
    choose(history, 64)
    history.delete()
    history.delete()
    qtbot.waitUntil(lambda: bool(notices) and not history.is_busy)
    assert notices[0].tone is Tone.FAILURE
    assert "Traceback" not in notices[0].sentence
    monkeypatch.undo()
    run(qtbot, benchmark, history, 128)
    assert len(history.entries) == 2


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
