from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.benchmark.export import to_csv, to_json
from gpu_studio.core.benchmark.history import History
from gpu_studio.core.benchmark.kept_run import LARGEST_FILE_BYTES, encode_kept, run_of
from gpu_studio.core.benchmark.result_import import import_results
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import RecordingHeader
from gpu_studio.core.messages.run_messages import RunStopped
from gpu_studio.core.protocol import encode_all
from tests.core.benchmark.kept_runs import KEPT_AT, finished_run, kept_run
from tests.core.benchmark.test_kept_run import HOSTILE
from tests.fakes.run_answers import run_events

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_of_a_history(tmp_path: Path) -> None:
    path = tmp_path / "other pc.json"
    path.write_bytes(encode_kept(kept_run()))
    (kept,) = import_results(path, KEPT_AT)
    assert kept.result.recording == "imported from other pc.json"
    assert len(kept.samples_s) == 40
    history = History(tmp_path / "history")
    assert history.load(history.add(kept)) == kept


def test_an_export_with_its_stopped_runs_left_out(tmp_path: Path) -> None:
    first, second = finished_run(64), finished_run(128, "cuda:0", transfers=True, cache="cold")
    stopped = Run(first.request)
    stopped.apply(RunStopped(run_id=first.request.run_id))
    path = tmp_path / "export.json"
    path.write_text(to_json([first, stopped, second], None, KEPT_AT), encoding="utf-8")
    imported = import_results(path, KEPT_AT)
    assert [kept.result.size for kept in imported] == [64, 128]
    assert run_of(imported[1]).series.values.tolist() == second.series.values.tolist()
    assert imported[1].result.cache == "cold"
    assert imported[1].kept_at == KEPT_AT


def test_what_the_terminal_printed(tmp_path: Path) -> None:
    first, second = finished_run(64).request, finished_run(128).request
    path = tmp_path / "bench.jsonl"
    path.write_bytes(encode_all([*run_events(first), *run_events(second)]))
    imported = import_results(path, KEPT_AT)
    assert [(kept.result.size, len(kept.samples_s)) for kept in imported] == [(64, 40), (128, 40)]


def test_a_recording_keeps_its_own_label(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(encode_kept(kept_run(recording="A GT 1030 in 2025")))
    assert import_results(path, KEPT_AT)[0].result.recording == "A GT 1030 in 2025"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile.json"
    path.write_bytes(HOSTILE[name][0])
    with pytest.raises(StudioError) as caught:
        import_results(path, KEPT_AT)
    assert caught.value.kind is FailureKind.FILE_REFUSED


def test_one_bad_run_refuses_the_whole_file(tmp_path: Path) -> None:
    good, bad = finished_run(64), finished_run(128)
    bad.series.append([1.0, 1.0])  # more samples than its result has
    path = tmp_path / "export.json"
    path.write_text(to_json([good, bad], None, KEPT_AT), encoding="utf-8")
    with pytest.raises(StudioError, match="42 samples instead of 40"):
        import_results(path, KEPT_AT)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"runs": []}', "damaged"),
        (b"{}", "no GPU Studio results"),
        (encode_all(run_events(finished_run().request)) + b"junk\n", "its line 8 is damaged"),
        (encode_all([RunStopped(run_id="1"), RunStopped(run_id="2")]), "did not begin"),
    ],
)
def test_a_file_without_results_says_so(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(StudioError, match=reason):
        import_results(path, KEPT_AT)


def test_a_recording_brings_its_label_and_its_date(tmp_path: Path) -> None:
    header = RecordingHeader(
        title="NVIDIA GeForce GT 1030, 2020-01-02", device_name="NVIDIA GeForce GT 1030",
        driver_version=None, torch_version="2.13.0", recorded_at="2020-01-02T03:04:05+00:00",
        source="elsewhere",
    )  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_bytes(encode_all([header, *run_events(finished_run().request)]))
    (kept,) = import_results(path, KEPT_AT)
    assert kept.kept_at == "2020-01-02T03:04:05+00:00"
    assert kept.result.recording == "NVIDIA GeForce GT 1030, 2020-01-02"
    assert len(kept.samples_s) == 40


def test_files_that_are_none(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(StudioError):
            import_results(path, KEPT_AT)
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    with pytest.raises(StudioError, match="larger than"):
        import_results(huge, KEPT_AT)
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(StudioError, match="ordinary"):
            import_results(tmp_path / "pipe", KEPT_AT)


def test_a_file_name_cannot_write_over_a_screen(tmp_path: Path) -> None:
    path = tmp_path / "<b>\x1b[2Jname.json"
    try:
        path.write_bytes(encode_kept(kept_run()))
    except OSError:
        pytest.skip("this file system takes no such name")
    label = import_results(path, KEPT_AT)[0].result.recording or ""
    assert "\x1b" not in label
    assert "<b>" in label


def test_an_imported_formula_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(encode_kept(kept_run(device_name="=cmd()", verification="@SUM(A1)")))
    (kept,) = import_results(path, KEPT_AT)
    line = to_csv([run_of(kept)]).splitlines()[1]
    assert "'=cmd()" in line
    assert "'@SUM(A1)" in line
    assert ",=cmd" not in line
