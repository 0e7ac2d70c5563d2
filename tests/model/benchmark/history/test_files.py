"""Results that leave for elsewhere, and files that come from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.export import to_json
from gpu_studio.core.benchmark.kept_run import decode_kept
from gpu_studio.core.benchmark.standard_record import encode_standard
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.protocol import encode_all
from tests.core.benchmark.standard_runs import paced_device, standard_device, standard_run
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import run_events
from tests.model.benchmark.history.kept import choose, kept_bytes, run

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.history_model import HistoryModel


def test_an_exported_run_can_be_imported_elsewhere(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    path = tmp_path / "mine.json"
    choose(history, 64)
    history.export_file(path)
    qtbot.waitUntil(lambda: notices == [Notice(f"Saved as {path}")])
    assert history.entries[0].header.card  # which card it was made on stays on this PC
    assert decode_kept(path.read_bytes()).card == ""
    history.open_files([path])
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
    history: HistoryModel,
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64, 128)
    path = tmp_path / "table.json"
    path.write_text(to_json(benchmark.runs, None, "2026-01-01T00:00:00+00:00"), encoding="utf-8")
    history.open_files([path])
    qtbot.waitUntil(lambda: len(history.entries) == 4)
    assert notices[-1].sentence.startswith("Kept: 2 results, the first is elementwise on ")
    assert notices[-1].sentence.endswith("“imported from table.json”.")


def test_an_export_that_cannot_be_written_is_reported(
    qtbot: QtBot,
    benchmark: Benchmark,
    history: HistoryModel,
    notices: list[Notice],
    tmp_path: Path,
) -> None:
    run(qtbot, benchmark, history, 64)
    choose(history, 64)
    history.export_file(tmp_path)
    qtbot.waitUntil(lambda: bool(notices))
    assert "not write" in notices[0].sentence
    assert notices[0].tone is Tone.FAILURE


def test_standard_runs_and_recordings_are_rows_that_are_selected_when_they_are_opened(
    qtbot: QtBot, history: HistoryModel, notices: list[Notice], tmp_path: Path
) -> None:
    own = standard_run(paced_device("GTX 1660"))
    assert history._standard is not None
    history._standard.keep(own)
    theirs = tmp_path / "theirs"
    theirs.write_bytes(
        encode_standard(standard_run(standard_device(), paced_device("RTX 3060", 2.0)))
    )
    recorded = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    recording = tmp_path / "recording.jsonl"
    recording.write_bytes(encode_all([recording_header(), *run_events(recorded)]))

    history.open_files([theirs])
    qtbot.waitUntil(lambda: len(history.rows) == 3 and not history.is_busy)
    assert [side.name for side in history.compared.sides] == ["GTX 1660", "RTX 3060"]
    assert history.heading == "The RTX 3060 beats your GTX 1660 in all 9"
    history.open_files([recording])
    qtbot.waitUntil(lambda: history.recording is not None)
    assert len(history.rows) == 4
    history.keep_results()
    qtbot.waitUntil(lambda: len(history.entries) == 1)
    assert history.entries[0].header.result.recording == history.selected[0].side.place
    history.choose(selected=tuple(history.rows))
    assert history.recording is None
    history.delete()
    history.delete()
    qtbot.waitUntil(lambda: not history.is_busy)
    assert [row.side.name for row in history.rows.values()] == ["GTX 1660"]


def test_a_file_that_claims_the_turns_of_a_run_that_was_made_here_is_of_another_time(
    qtbot: QtBot, benchmark: Benchmark, history: HistoryModel, tmp_path: Path
) -> None:
    run(qtbot, benchmark, history, 64)
    mine = history.entries[0].header.result
    path = tmp_path / "theirs.json"
    path.write_bytes(kept_bytes(turns=mine.turns, options=mine.options))
    history.open_files([path])
    qtbot.waitUntil(lambda: len(history.entries) == 2)
    choose(history, 64)
    assert len({side.origin for side in history.compared.sides}) == 2
