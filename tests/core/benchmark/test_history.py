import errno
from pathlib import Path

import pytest

from gpu_studio.core.benchmark import history as history_module
from gpu_studio.core.benchmark.export import to_json
from gpu_studio.core.benchmark.history import History
from gpu_studio.core.benchmark.kept_run import encode_kept
from gpu_studio.core.benchmark.result_import import import_results
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import RecordingHeader
from gpu_studio.core.messages.run_messages import RunStopped
from gpu_studio.core.protocol import encode_all
from gpu_studio.core.units import moment_order
from tests.core.benchmark.kept_runs import KEPT_AT, finished_run, kept_run
from tests.core.benchmark.test_kept_run import HOSTILE
from tests.fakes.run_answers import run_events


@pytest.fixture
def kept(tmp_path: Path) -> History:
    return History(tmp_path / "history")


def test_runs_come_back_the_newest_first(kept: History) -> None:
    assert kept.contents().entries == ()
    keys = [kept.keep(finished_run(size), f"2026-03-0{size // 64}T00:00:00") for size in (64, 128)]
    again = History(kept.folder)
    assert [entry.key for entry in again.contents().entries] == keys[::-1]
    assert again.load(keys[1]).result.size == 128
    assert again.contents().refused == ()


def test_only_what_is_shown_is_read(kept: History, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [kept.keep(finished_run(), f"2026-03-{day:02}T00:00:00") for day in range(1, 21)]
    read: list[str] = []
    real = history_module.read_capped

    def noted(path: Path) -> bytes:
        read.append(path.stem)
        return real(path)

    monkeypatch.setattr(history_module, "read_capped", noted)
    contents = History(kept.folder).contents(3)
    assert [entry.key for entry in contents.entries] == read == keys[:-4:-1]
    assert contents.unread_count == 17
    assert History(kept.folder).contents(30).unread_count == 0
    read.clear()
    assert History(kept.folder).contents(is_over=lambda: len(read) == 2).entries
    assert read == keys[:-3:-1]


def test_a_run_can_be_named_and_deleted(kept: History) -> None:
    key = kept.keep(finished_run(), KEPT_AT)
    kept.rename(key, "before\nthe update")
    (entry,) = History(kept.folder).contents().entries
    assert (entry.key, entry.header.name) == (key, "before the update")
    assert len(kept.load(key).samples) == 8 * 40
    kept.delete(key)
    assert kept.contents().entries == ()
    assert kept.folder is not None
    assert list(kept.folder.iterdir()) == []
    kept.delete(key)  # twice does no harm


@pytest.mark.parametrize("key", ["../secret", "a/b", "", "x" * 65, "..", "key\n"])
def test_a_key_names_no_file_outside(kept: History, tmp_path: Path, key: str) -> None:
    secret = tmp_path / "secret.json"
    secret.write_bytes(encode_kept(kept_run()))
    kept.keep(finished_run(), KEPT_AT)
    for call in (kept.load, kept.delete, lambda key: kept.rename(key, "mine")):
        with pytest.raises(StudioError, match="no such run"):
            call(key)
    assert secret.read_bytes() == encode_kept(kept_run())


def test_no_hostile_file_touches_the_rest(kept: History) -> None:
    key = kept.keep(finished_run(), KEPT_AT)
    assert kept.folder is not None
    for number, (content, _) in enumerate(HOSTILE.values()):
        (kept.folder / f"hostile-{number}.json").write_bytes(content)
    (kept.folder / "strange name.json").write_bytes(encode_kept(kept_run()))
    (kept.folder / "note.txt").write_text("not ours")
    (kept.folder / "folder.json").mkdir()
    before = {path.name for path in kept.folder.iterdir()}
    contents = kept.contents()
    reasons = {refused.file_name: refused.reason for refused in contents.refused}
    assert "strange name.json" not in reasons
    assert "not an ordinary file" in reasons["folder.json"]
    # What is wrong with samples alone is told when they are asked for.
    shown = {entry.key for entry in contents.entries}
    assert key in shown
    assert len(shown) + len(reasons) == 1 + len(HOSTILE) + 1
    for number, name in enumerate(HOSTILE):
        if f"hostile-{number}" in shown:
            assert "sample" in name.lower()
            with pytest.raises(StudioError, match="refused"):
                kept.load(f"hostile-{number}")
    assert {path.name for path in kept.folder.iterdir()} == before
    assert len(kept.load(key).samples) == 8 * 40


def test_a_full_disk_is_reported_and_leaves_the_old_file(
    kept: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    key = kept.keep(finished_run(), KEPT_AT)
    monkeypatch.setattr(history_module.os, "fsync", fail)
    for change in (lambda: kept.rename(key, "new"), lambda: kept.keep(finished_run(), KEPT_AT)):
        with pytest.raises(StudioError, match="No space left") as caught:
            change()
        assert caught.value.kind is FailureKind.NOT_SAVED
    assert History(kept.folder).load(key).name == ""
    assert kept.folder is not None
    assert [path.name for path in kept.folder.iterdir()] == [f"{key}.json"]


def test_the_newest_run_comes_first_whatever_the_clock_on_the_wall_said(
    tmp_path: Path,
) -> None:
    in_order = [
        "no time at all",
        "2026-03-01T11:00:00+02:00",  # 09:00 UTC
        "2026-03-01T09:30:00Z",
        "2026-03-01T09:45:00",
        "2026-03-01T05:00:00-05:00",  # 10:00 UTC
    ]
    assert sorted(in_order, key=moment_order) == in_order
    history = History(tmp_path)
    for size, moment in enumerate(reversed(in_order), 1):
        history.keep(finished_run(64 * size), moment)
    shown = [entry.header.kept_at for entry in history.contents().entries]
    assert shown == in_order[::-1]


def test_an_export_with_its_stopped_runs_left_out(tmp_path: Path) -> None:
    first, second = finished_run(64), finished_run(128, "cuda:0", transfers=True, cache="cold")
    stopped = Run(first.request)
    stopped.apply(RunStopped(run_id=first.request.run_id))
    path = tmp_path / "export.json"
    path.write_text(to_json([first, stopped, second], None, KEPT_AT), encoding="utf-8")
    imported = import_results(path, KEPT_AT)
    assert [kept.result.size for kept in imported] == [64, 128]
    assert imported[1].samples == second.series.values.tobytes()
    assert imported[1].result.cache == "cold"
    assert imported[1].kept_at == KEPT_AT


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
        (encode_all(run_events(finished_run().request)), "damaged"),
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
    assert len(kept.samples) == 8 * 40
