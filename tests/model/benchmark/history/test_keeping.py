"""Every finished run is kept, named, deleted, and there for the next window."""

from pytestqt.qtbot import QtBot

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.studio import Studio
from tests.model.benchmark.history.kept import choose, folder_of, run


def test_what_a_folder_does_not_take_is_saved_when_the_page_is_seen(
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
    folder.unlink()
    history.on_seen()
    qtbot.waitUntil(lambda: len(history.entries) == 1)


def test_a_kept_run_is_shown_behind_the_same_work_alone(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, notices: list[Notice]
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    choose(history, 64)
    history.overlay()
    assert "Not comparable: its size is 64" in notices[-1].sentence
    choose(history, 128)
    with qtbot.waitSignal(history.overlaid) as shown:
        history.overlay()
    _label, again = shown.args[0]
    assert again.series.values.tolist() == benchmark.runs[1].series.values.tolist()


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
