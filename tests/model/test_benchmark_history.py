from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.export import to_json
from gpu_studio.core.benchmark.history import FOLDER_NAME
from gpu_studio.core.benchmark.kept_run import encode_kept, kept_of
from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.benchmark.runs import Run
from gpu_studio.core.protocol import RunWorkload
from gpu_studio.model.benchmark import Benchmark
from gpu_studio.model.benchmark_history import BenchmarkHistory
from gpu_studio.model.studio import Studio
from tests.fakes.run_answers import run_events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.benchmark.history import HistoryEntry
    from gpu_studio.model.settings import Settings
    from tests.fakes.pc import SteadySensors
    from tests.fakes.scripted_engine import Engines


@pytest.fixture
def studio(
    qapp: object, engines: Engines, sensor_source: SteadySensors, settings: Settings, tmp_path: Path
) -> Iterator[Studio]:
    """The application's state with a folder for results."""
    studio = Studio(engines, sensor_source, settings, data_folder=tmp_path / "data")
    yield studio
    studio.close()
    studio.deleteLater()


@pytest.fixture
def benchmark(ready_studio: Studio) -> Benchmark:
    return Benchmark(ready_studio, ready_studio)


@pytest.fixture
def history(ready_studio: Studio, benchmark: Benchmark) -> BenchmarkHistory:
    return BenchmarkHistory(ready_studio, benchmark, ready_studio)


@pytest.fixture
def told(history: BenchmarkHistory) -> list[tuple[str, bool]]:
    said: list[tuple[str, bool]] = []
    history.told.connect(lambda text, bad: said.append((text, bad)))
    return said


def folder_of(studio: Studio) -> Path:
    assert studio.data_folder is not None
    return studio.data_folder / FOLDER_NAME


def run(qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, *sizes: int) -> None:
    plan = Plan(
        workload="elementwise", sizes=sizes, dtypes=("float32",), devices=("cpu",), budget_s=1.0
    )
    benchmark.start(plan)
    qtbot.waitUntil(lambda: not benchmark.state.is_busy and not history.is_busy)


def entry(history: BenchmarkHistory, size: int) -> HistoryEntry:
    return next(each for each in history.entries if each.header.result.size == size)


def kept_bytes(size: int = 64, **changes: object) -> bytes:
    request = RunWorkload(
        run_id="run-1", workload="elementwise", device="cpu", size=size, dtype="float32"
    )
    kept = Run(request)
    for event in run_events(request, **changes):
        kept.apply(event)
    return encode_kept(kept_of(kept, "2026-01-02T03:04:05+00:00"))


def test_every_finished_run_is_kept_once(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    benchmark.run_changed.emit(benchmark.runs[0])  # as a later look at the row does
    run(qtbot, benchmark, history, 256)
    assert sorted(each.header.result.size for each in history.entries) == [64, 128, 256]
    assert len(list(folder_of(ready_studio).iterdir())) == 3


def test_what_was_kept_is_there_for_the_next_window(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64)
    later = BenchmarkHistory(ready_studio, benchmark, ready_studio)
    assert later.entries == ()
    later.refresh()
    qtbot.waitUntil(lambda: len(later.entries) == 1)


def test_a_kept_run_is_named_and_deleted(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    history.rename(entry(history, 64).key, "  before\nthe driver  ")
    qtbot.waitUntil(lambda: entry(history, 64).header.name == "before the driver")
    history.delete(entry(history, 128).key)
    qtbot.waitUntil(lambda: len(history.entries) == 1)


def test_a_folder_that_takes_nothing_is_said_once_and_saving_can_be_tried_again(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    ready_studio: Studio,
    told: list[tuple[str, bool]],
) -> None:
    folder = folder_of(ready_studio)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file is in the way")
    run(qtbot, benchmark, history, 64, 128)
    assert len([text for text, bad in told if bad]) == 1
    assert "kept in memory only" in history.trouble
    assert history.trouble.endswith("2 runs wait.")
    assert len(history.entries) == 2  # nothing is lost
    folder.unlink()
    history.save_again()
    qtbot.waitUntil(lambda: history.trouble == "")
    assert told[-1] == ("2 runs were saved.", False)
    assert len(list(folder.iterdir())) == 2


def test_a_file_from_elsewhere_is_imported(
    qtbot: QtBot, history: BenchmarkHistory, told: list[tuple[str, bool]], tmp_path: Path
) -> None:
    path = tmp_path / "theirs.json"
    path.write_bytes(kept_bytes(device_name="<img onerror=alert(1)>"))
    history.import_file(path)
    qtbot.waitUntil(lambda: len(history.entries) == 1)
    assert not told[0][1]
    assert "<img onerror=alert(1)>" in told[0][0]


def test_an_exported_run_can_be_imported_elsewhere(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    told: list[tuple[str, bool]],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    path = tmp_path / "mine.json"
    history.export_file(entry(history, 64).key, path)
    qtbot.waitUntil(lambda: told == [(f"Saved as {path}", False)])
    history.import_file(path)
    qtbot.waitUntil(lambda: len(history.entries) == 2)
    first, second = (each.header.result for each in history.entries)
    # It is another PC's, or yours from another day: it says so from then on.
    assert {first.recording, second.recording} == {None, "imported from mine.json"}
    assert msgspec.structs.replace(first, recording=None) == msgspec.structs.replace(
        second, recording=None
    )


def test_what_the_export_button_and_the_terminal_write_is_imported_as_well(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    told: list[tuple[str, bool]],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    path = tmp_path / "table.json"
    path.write_text(to_json(benchmark.runs, None, "2026-01-01T00:00:00+00:00"), encoding="utf-8")
    history.import_file(path)
    qtbot.waitUntil(lambda: len(history.entries) == 4)
    assert told[-1][0].startswith("Imported: 2 results, the first elementwise on ")
    assert told[-1][0].endswith("Labelled “imported from table.json”.")


def test_an_export_that_cannot_be_written_is_said(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    told: list[tuple[str, bool]],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    history.export_file(entry(history, 64).key, tmp_path)
    qtbot.waitUntil(lambda: bool(told))
    assert "could not be written" in told[0][0]
    assert told[0][1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is damaged"),
        (kept_bytes()[:200], "is damaged"),
        (json.dumps({**json.loads(kept_bytes()), "schema": 99}).encode(), "newer version"),
        (b"[]", "no result of this program"),
    ],
    ids=["cut", "truncated", "later", "other"],
)
def test_a_bad_file_is_refused_and_the_rest_is_untouched(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    told: list[tuple[str, bool]],
    tmp_path: Path,
    content: bytes,
    said: str,
) -> None:
    run(qtbot, benchmark, history, 64)
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    history.import_file(path)
    qtbot.waitUntil(lambda: bool(told))
    assert said in told[0][0]
    assert told[0][1]
    assert len(history.entries) == 1


def test_a_bad_file_in_the_folder_leaves_the_others_readable(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64)
    (folder_of(ready_studio) / "20260101-bad.json").write_text("{}")
    history.refresh()
    qtbot.waitUntil(lambda: len(history.refused) == 1)
    assert history.refused[0].startswith("20260101-bad.json: This file is refused")
    assert len(history.entries) == 1


def test_a_ghost_races_what_can_be_compared(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, told: list[tuple[str, bool]]
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    latest = benchmark.results[-1]
    history.race(entry(history, 64), latest)
    assert "Not comparable" in told[-1][0]
    assert "64 × 64" in told[-1][0].replace("\u202f", " ")
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
    told: list[tuple[str, bool]],
) -> None:
    run(qtbot, benchmark, history, 64)
    history.race(entry(history, 64), None)
    qtbot.waitUntil(lambda: history.ghost is not None)
    run(qtbot, benchmark, history, 64)
    assert history.ghost is not None
    engines.scripts[RunWorkload] = lambda _e, request: run_events(request, torch_version="3.0.0")
    run(qtbot, benchmark, history, 64)
    assert history.ghost is None
    assert any("The ghost has left. Not comparable: it was PyTorch 2.13.0" in t for t, _ in told)


def test_closing_writes_what_waits(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory, ready_studio: Studio
) -> None:
    run(qtbot, benchmark, history, 64, 128, 256)
    path = folder_of(ready_studio)
    for file in path.iterdir():
        file.unlink()
    history._kept.clear()
    for kept in benchmark.runs:
        benchmark.run_changed.emit(kept)
    assert history.is_busy
    ready_studio.close()
    assert len(list(path.iterdir())) == 3


def test_a_run_after_clear_is_kept_as_well(
    qtbot: QtBot, benchmark: Benchmark, history: BenchmarkHistory
) -> None:
    for size in range(64, 72):  # each may come to lie where the one before it was
        run(qtbot, benchmark, history, size)
        benchmark.clear()
        gc.collect()
    assert len(history.entries) == 8


def test_an_unexpected_error_is_said_and_the_history_goes_on(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    told: list[tuple[str, bool]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_key: str) -> None:
        raise ZeroDivisionError("no such thing")

    run(qtbot, benchmark, history, 64)
    monkeypatch.setattr(history._history, "delete", fail)
    history.delete(entry(history, 64).key)
    qtbot.waitUntil(lambda: bool(told) and not history.is_busy)
    assert told[0][1]
    assert "Traceback" not in told[0][0]
    monkeypatch.undo()
    run(qtbot, benchmark, history, 128)
    assert len(history.entries) == 2
