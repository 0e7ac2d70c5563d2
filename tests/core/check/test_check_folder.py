import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_studio.core.check.check_folder import CheckFolder, is_same_boot
from gpu_studio.core.check.check_record import CheckRecord, Interruption
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from tests.fakes.check_answers import check_until

KEEPS_AND_WAITS = """
import sys, pathlib, msgspec
from gpu_studio.core.check.check_folder import CheckFolder
from gpu_studio.core.check.check_record import CheckRecord
folder = CheckFolder(pathlib.Path(sys.argv[1]), "boot one")
assert folder.claim()
record = msgspec.json.decode(sys.stdin.buffer.readline(), type=CheckRecord)
folder.keep_progress("one", record, "card one")
print("kept", flush=True)
sys.stdin.read()
"""


def conclude(folder: CheckFolder, run: CheckRun) -> None:
    folder.conclude(run.check_id, run.record(), run.fingerprint)


def keep(folder: CheckFolder, day: int, fingerprint: str, **plan: Any) -> CheckRecord:
    run = check_until("memory", **plan)
    run.started_at, run.fingerprint = f"2026-11-{day}T14:40:00.000+01:00", fingerprint
    conclude(folder, run)
    return run.record()


@pytest.mark.parametrize("boot", ["boot one", "boot two"])
def test_a_check_that_was_killed_becomes_a_result_and_one_that_runs_does_not(
    tmp_path: Path, boot: str
) -> None:
    record = check_until("memory").record()
    child = subprocess.Popen(
        [sys.executable, "-c", KEEPS_AND_WAITS, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    folder = CheckFolder(tmp_path, boot)
    with child:
        child.stdin.write(msgspec.json.encode(record) + b"\n")
        child.stdin.flush()
        assert child.stdout.readline().strip() == b"kept"
        assert folder.conclude_cut_off() is None
        assert folder.records() == ()
        child.kill()
        child.wait()

    stop = Interruption(after_s=record.seconds, is_restart=boot == "boot two")
    ended = msgspec.structs.replace(record, interruptions=(stop,))
    assert folder.conclude_cut_off() == ended == folder.earlier("card one")
    assert (ended.verdict, ended.rounds) == ("inconclusive", 0)
    assert folder.conclude_cut_off() is None, "it is told once"
    assert len(folder.records()) == 1
    assert folder.claim()
    folder.release()


def test_the_last_record_of_the_same_card_is_the_earlier_one(tmp_path: Path) -> None:
    folder = CheckFolder(tmp_path)
    keep(folder, 22, "card one")
    last = keep(folder, 23, "card one")
    keep(folder, 24, "card one", plant="bit")
    keep(folder, 25, "card two")
    untested = CheckRun(CheckPlan(device="cuda:0", minutes=6), "2026-11-26", fingerprint="card one")
    conclude(folder, untested)

    assert folder.earlier("card one") == last
    assert folder.earlier("card three") is None
    assert folder.earlier("") is None
    assert [one.started_at[8:10] for one in folder.records()] == ["25", "23", "22"]


def test_what_is_no_check_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "one.running").write_text("{")
    (tmp_path / "two.json").write_bytes(b"\xff")
    (tmp_path / "three.json").mkdir()
    folder = CheckFolder(tmp_path)

    assert folder.conclude_cut_off() is None
    assert folder.records() == ()
    assert not list(tmp_path.glob("*.running"))


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
    folder.keep_progress("one", run.record(), "card one")
    keep(folder, 22, "card one")
    for ending in (".running", ".json"):
        (path,) = tmp_path.glob(f"*{ending}")
        assert path.stat().st_mode & 0o077 == 0
