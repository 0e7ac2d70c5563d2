"""Finished runs are kept, results leave for elsewhere, and files come from there."""

from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark.kept_run import (
    KeptRun,
    decode_kept,
    encode_kept,
    kept_of,
    without_card,
)
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.standard_record import encode_standard
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.protocol import encode_all
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.benchmark.history_model import HistoryModel, kept_name
from gpu_studio.model.studio import Studio
from tests.core.benchmark.standard_runs import paced_device, standard_device, standard_run
from tests.fakes.pc import gt_1030_card, two_cards
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Engines
from tests.model.benchmark.history.kept import choose, folder_of, run


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
    choose(history, 64)  # of the same turns, as another PC's file may claim
    assert [side.is_here for side in history.compared.sides] == [True, False]
    assert len({side.origin for side in history.compared.sides}) == 2


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


CARD = gt_1030_card()
NAME = "GeForce GT 1030"


def twins() -> Inventory:
    inventory = two_cards()
    devices = [
        msgspec.structs.replace(one, name=CARD.name) if not one.is_cpu else one
        for one in inventory.devices
    ]
    return msgspec.structs.replace(inventory, devices=tuple(devices))


def kept(card: str, **changes: object) -> KeptRun:
    request = RunWorkload(
        run_id="run-1", workload="elementwise", device="cuda:1", size=64, dtype="float32"
    )
    run = Run(request)
    for event in run_events(request, device_name=CARD.name, **changes):
        run.apply(event)
    run.card = card
    return kept_of(run, "2026-01-02T03:04:05+00:00")


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_run_is_of_its_card_and_of_no_other_one_of_its_name(
    with_cuda: Engines, ready_studio: Studio
) -> None:
    board = ready_studio.board
    name = kept_name(kept(CARD.identity), board, NAME)
    assert name == kept_name(kept(""), board, NAME) == NAME, "an older version kept no card"
    assert kept_name(kept("GPU-of-another"), board, NAME) == f"{NAME}, not in this PC now"


@pytest.mark.parametrize("inventory", [twins()])
def test_twins_have_their_numbers(with_cuda: Engines, ready_studio: Studio) -> None:
    names = [kept_name(kept(card.identity), ready_studio.board, NAME) for card in twins().cards]
    assert names == ["GT 1030 (cuda:0)", "GT 1030 (cuda:1)"]


def test_the_identity_stays_with_the_run_and_in_the_pc() -> None:
    assert b"GPU-own" in encode_kept(kept("GPU-own"))
    assert b"GPU-own" not in encode_kept(without_card(kept("GPU-own")))


# ── kept runs ────────────────────────────────────────────────────────────────────────────────────


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
