"""Results that leave for elsewhere, and files that come from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.export import to_json
from gpu_studio.core.notice import Notice, Tone
from tests.model.benchmark.history.kept import entry, kept_bytes, run

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.benchmark_history import BenchmarkHistory


def test_a_file_from_elsewhere_is_imported(
    qtbot: QtBot, history: BenchmarkHistory, notices: list[Notice], tmp_path: Path
) -> None:
    path = tmp_path / "theirs.json"
    path.write_bytes(kept_bytes(device_name="<img onerror=alert(1)>"))
    history.import_file(path)
    assert notices == [Notice("Opening theirs.json…")]  # a large file takes seconds
    qtbot.waitUntil(lambda: len(history.entries) == 1)
    assert notices[-1].tone is Tone.PLAIN
    assert "<img onerror=alert(1)>" in notices[-1].sentence


def test_an_exported_run_can_be_imported_elsewhere(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    path = tmp_path / "mine.json"
    history.export_file(entry(history, 64).key, path)
    qtbot.waitUntil(lambda: notices == [Notice(f"Saved as {path}")])
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
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    path = tmp_path / "table.json"
    path.write_text(to_json(benchmark.runs, None, "2026-01-01T00:00:00+00:00"), encoding="utf-8")
    history.import_file(path)
    qtbot.waitUntil(lambda: len(history.entries) == 4)
    assert notices[-1].sentence.startswith("Imported: 2 results, the first is elementwise on ")
    assert notices[-1].sentence.endswith("“imported from table.json”.")


def test_an_export_that_cannot_be_written_is_reported(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    history.export_file(entry(history, 64).key, tmp_path)
    qtbot.waitUntil(lambda: bool(notices))
    assert "not write" in notices[0].sentence
    assert notices[0].tone is Tone.FAILURE


def test_a_bad_file_is_refused_and_the_rest_is_untouched(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: BenchmarkHistory,
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    path = tmp_path / "bad.json"
    path.write_bytes(kept_bytes()[:200])
    history.import_file(path)
    qtbot.waitUntil(lambda: len(notices) == 2)
    assert "is damaged" in notices[1].sentence
    assert notices[1].tone is Tone.FAILURE
    assert len(history.entries) == 1
