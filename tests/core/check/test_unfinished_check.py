"""The check that was running when its program or the PC ended."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.unfinished_check import FILE_NAME, UnfinishedCheck, UnfinishedFile
from gpu_studio.core.failure import FailureKind, StudioError
from tests.fakes.check_answers import check_round

if TYPE_CHECKING:
    from pathlib import Path

SAVED_AT = "2026-11-22T03:10:00.000+01:00"
SAVED_AT_S = datetime(2026, 11, 22, 2, 10, tzinfo=timezone.utc).timestamp()


def unfinished(minutes: int = 480) -> UnfinishedCheck:
    run = CheckRun(CheckPlan(device="cuda:0", minutes=minutes), "2026-11-22T02:29:00+01:00")
    request = run.next_request()
    assert request is not None
    for event in check_round(request, end_in="memory"):
        run.apply(event)
    return UnfinishedCheck(saved_at=SAVED_AT, pid=4321, state=run.state())


def nothing_runs(_pid: int, _before_s: float) -> bool:
    return False


def test_what_is_saved_is_found(tmp_path: Path) -> None:
    file = UnfinishedFile(tmp_path / "new" / "checks")
    file.save(unfinished())
    assert file.found(nothing_runs) == unfinished_like(file.read())
    assert [path.name for path in (tmp_path / "new" / "checks").iterdir()] == [FILE_NAME]
    file.remove()
    assert file.found(nothing_runs) is None
    file.remove()


def unfinished_like(found: UnfinishedCheck | None) -> UnfinishedCheck:
    assert found is not None
    assert found.state.finished == ("load", "compute", "layouts")
    assert found.pid == 4321
    return found


def test_a_check_that_still_runs_is_busy_and_not_found(tmp_path: Path) -> None:
    file, asked = UnfinishedFile(tmp_path), []

    def runs(pid: int, before_s: float) -> bool:
        asked.append((pid, before_s))
        return True

    assert not file.is_busy(runs)
    file.save(unfinished())
    assert file.is_busy(runs)
    assert file.found(runs) is None
    assert set(asked) == {(4321, SAVED_AT_S)}
    assert not file.is_busy(nothing_runs)


def test_a_pc_that_started_after_the_last_minute_has_restarted() -> None:
    one = unfinished()
    after_s = one.state.elapsed_s
    assert after_s > 600
    assert one.interruption(SAVED_AT_S + 60).is_restart
    assert not one.interruption(SAVED_AT_S - 3600).is_restart
    assert one.interruption(SAVED_AT_S).after_s == after_s


@pytest.mark.parametrize(("minutes", "can"), [(1, False), (6, False), (480, True)])
def test_only_an_overnight_check_can_continue(minutes: int, can: bool) -> None:
    assert unfinished(minutes).can_continue == can


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"\xff\xfe", b"[" * 9999, b'{"schema": 1, "saved_at": "x"}']
)
def test_a_broken_file_is_no_check(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert UnfinishedFile(tmp_path).found(nothing_runs) is None


@pytest.mark.parametrize(("old", "new"), [(b'"schema":1', b'"schema":2'),
                                          (SAVED_AT.encode(), b"yesterday")])  # fmt: skip
def test_a_file_of_another_kind_is_no_check(tmp_path: Path, old: bytes, new: bytes) -> None:
    file = UnfinishedFile(tmp_path)
    file.save(unfinished())
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    assert file.found(nothing_runs) is None


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "checks").write_text("a file where the folder should be")
    with pytest.raises(StudioError, match="cannot be saved") as refused:
        UnfinishedFile(tmp_path / "checks").save(unfinished())
    assert refused.value.kind is FailureKind.NOT_SAVED
