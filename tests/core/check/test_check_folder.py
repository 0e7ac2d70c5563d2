import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_studio.core.check.check_folder import CheckFolder, is_same_boot
from gpu_studio.core.check.check_record import CheckRecord
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from tests.fakes.check_records import check_until

KEEPS_AND_WAITS = """
import sys, pathlib, msgspec
from gpu_studio.core.check.check_folder import CheckFolder
from gpu_studio.core.check.check_run import CheckState
folder = CheckFolder(pathlib.Path(sys.argv[1]), "boot one")
assert folder.claim()
folder.keep_state(msgspec.json.decode(sys.stdin.buffer.readline(), type=CheckState))
print("kept", flush=True)
sys.stdin.read()
"""


def keep(folder: CheckFolder, day: int, fingerprint: str, **plan: Any) -> CheckRecord:
    run = check_until("memory", **plan)
    run.started_at, run.fingerprint = f"2026-11-{day}T14:40:00.000+01:00", fingerprint
    folder.conclude(run)
    return run.record()


def test_a_check_that_was_killed_is_found_and_one_that_runs_is_not(tmp_path: Path) -> None:
    run = check_until("memory")
    child = subprocess.Popen(
        [sys.executable, "-c", KEEPS_AND_WAITS, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdin.write(msgspec.json.encode(run.state()) + b"\n")
        child.stdin.flush()
        assert child.stdout.readline().strip() == b"kept"
        assert CheckFolder(tmp_path, "boot one").cut_off() == ()
        child.kill()
        child.wait()

    (found,) = CheckFolder(tmp_path, "boot one").cut_off()
    assert found.state == run.state()
    assert found.interruption.after_s == run.elapsed_s > 0
    assert not found.interruption.is_restart
    (found,) = CheckFolder(tmp_path, "boot two").cut_off()
    assert found.interruption.is_restart


@pytest.mark.parametrize(("hours", "can_continue"), [(0, True), (23, True), (25, False)])
def test_only_a_recent_check_can_continue(tmp_path: Path, hours: float, can_continue: bool) -> None:
    folder = CheckFolder(tmp_path)
    folder.keep_state(check_until("memory").state())
    (path,) = tmp_path.glob("*.running")
    ended_at = time.time() - 3600 * hours
    os.utime(path, (ended_at, ended_at))
    assert [one.can_continue for one in folder.cut_off()] == [can_continue]


def test_the_last_record_of_the_same_card_is_the_earlier_one(tmp_path: Path) -> None:
    folder = CheckFolder(tmp_path)
    keep(folder, 22, "card one")
    last = keep(folder, 23, "card one")
    keep(folder, 24, "card one", plant="bit")
    keep(folder, 25, "card two")
    untested = CheckRun(CheckPlan(device="cuda:0", minutes=6), "2026-11-26", fingerprint="card one")
    folder.conclude(untested)

    assert folder.earlier("card one") == last
    assert folder.earlier("card three") is None
    assert folder.earlier("") is None
    assert [one.started_at[8:10] for one in folder.records()] == ["25", "23", "22"]


def test_what_is_no_check_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "one.running").write_text("{")
    (tmp_path / "two.json").write_bytes(b"\xff")
    (tmp_path / "three.json").mkdir()
    folder = CheckFolder(tmp_path)

    assert folder.cut_off() == ()
    assert folder.records() == ()


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [("a-b", "a-b", True), ("a-b", "c-d", False), ("1000", "1090", True), ("1000", "9000", False)],
)
def test_boots_are_told_apart(one: str, other: str, is_same: bool) -> None:
    assert is_same_boot(one, other) is is_same


CLAIMS = """
import sys, pathlib
from gpu_studio.core.check.check_folder import CheckFolder
folder = CheckFolder(pathlib.Path(sys.argv[1]))
sys.stdin.readline()
print(folder.claim(), flush=True)
sys.stdin.read()
"""


def test_of_programs_that_begin_at_once_one_may_check(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMS, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    for child in children:
        child.stdin.write("\n")  # type: ignore[union-attr]
        child.stdin.flush()  # type: ignore[union-attr]
    answers = [child.stdout.readline().strip() for child in children]  # type: ignore[union-attr]
    assert sorted(answers) == ["False", "False", "True"]
    folder = CheckFolder(tmp_path)
    assert not folder.claim()
    for child in children:
        child.kill()
        child.communicate()
    assert folder.claim(), "the turn ends with its program"
    folder.release()


def test_a_turn_that_was_given_back_is_free(tmp_path: Path) -> None:
    one, other = CheckFolder(tmp_path), CheckFolder(tmp_path)
    assert one.claim()
    assert one.claim(), "it has it already"
    assert not other.claim()
    one.release()
    assert other.claim()
    other.release()


@pytest.mark.skipif(sys.platform == "win32", reason="the user's own folder sees to it")
def test_nobody_else_reads_a_check(tmp_path: Path) -> None:
    folder, run = CheckFolder(tmp_path), check_until("memory")
    folder.keep_state(run.state())
    keep(folder, 22, "card one")
    for ending in (".running", ".json"):
        (path,) = tmp_path.glob(f"*{ending}")
        assert path.stat().st_mode & 0o077 == 0
