"""Every finished run is kept, named, deleted, and there for the next window."""

from pytestqt.qtbot import QtBot

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.studio import Studio
from tests.model.benchmark.history.kept import folder_of, run


def test_every_finished_run_is_kept_once(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    run(qtbot, benchmark, history, 256)
    assert sorted(each.header.result.size for each in history.entries) == [64, 128, 256]
    assert len(list(folder_of(ready_studio).iterdir())) == 3


def test_a_folder_that_takes_nothing_is_reported(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    ready_studio: Studio,
    notices: list[Notice],
) -> None:
    folder = folder_of(ready_studio)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file is in the way")
    run(qtbot, benchmark, history, 64)
    (notice,) = notices
    assert "Cannot save results" in notice.sentence
    assert notice.tone is Tone.FAILURE


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
