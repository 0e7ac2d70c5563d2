import contextlib
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_studio.core.check.check_file import (
    CHUNK,
    LARGEST_FILE_BYTES,
    decode_record,
    encode_record,
    has_record,
    read_record,
)
from gpu_studio.core.check.check_folder import CheckFolder, is_same_boot
from gpu_studio.core.check.check_record import MOST_READINGS, CheckRecord, Interruption, end_of
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_words import origin_text
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import CheckVitalsRead, StageOutcome
from gpu_studio.core.notice import Tone
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.check_answers import COVERAGE, GT_1030, check_record, check_until, wrong_bit
from tests.fakes.hostile_files import hostile_records

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def record() -> CheckRecord:
    stage = StageOutcome(name="memory", verdict="failed", tested="1 GiB", errors=1, seconds=9.0)
    return CheckRecord(
        device=GT_1030, started_at="2026-11-22T14:40:00.000+01:00", minutes=1, seconds=9.0,
        rounds=1, stages=(stage,), findings=(wrong_bit(),), coverage=COVERAGE,
    )  # fmt: skip


def test_a_record_opens_again_as_it_was() -> None:
    assert decode_record(encode_record(record())) == record()


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[]", b"[" * 20_000, b'{"schema": 1}', b'{"schema": "1"}',
             b" " * LARGEST_RECORD_BYTES + encode_record(record())],
)  # fmt: skip
def test_what_is_no_record_is_refused_in_words(text: bytes) -> None:
    with pytest.raises(StudioError, match="not the record of a check") as refused:
        decode_record(text)
    assert refused.value.kind is FailureKind.FILE_REFUSED


def test_a_newer_programs_record_asks_for_an_update() -> None:
    newer = encode_record(record()).replace(b'"schema":1', b'"schema":2')
    with pytest.raises(StudioError, match="newer version"):
        decode_record(newer.replace(b'"failed"', b'"crumbled"'))


def changed(record: CheckRecord, **fields: Any) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(encode_record(record)) | fields)


def stage(verdict: str, errors: int, name: str = "memory") -> dict[str, Any]:
    return {"name": name, "verdict": verdict, "tested": "", "errors": errors, "seconds": 9.0}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stages": [stage("passed", 77)], "findings": [], "verdict": "passed"}, "77 errors"),
        ({"stages": [stage("inconclusive", 1)], "findings": []}, "1 error, but says"),
        ({"stages": [stage("passed", 0)]}, "error in the stage “memory”"),
        ({"stages": [stage("failed", 1), stage("passed", 0)]}, "a stage twice"),
        ({"readings": [{"at_s": 9.0, "temperature_c": -300.0}]}, "number is impossible"),
        ({"readings": [{"at_s": 9.0}, {"at_s": 8.0}]}, "times go back"),
        ({"spans": [{"name": "load", "start_s": 9.0}, {"name": "memory", "start_s": 8.0}]},
         "times go back"),
        ({"started_at": "2099-13-45T14:40:00"}, "it began at a time that there is not"),
        ({"device": {"address": "cuda:0", "name": "GT 1030", "uuid_tail": "GPU-" + "1a" * 18}},
         "more of the card's UUID than its last 4 characters"),
        ({"coverage": {"tested_bytes": 2, "free_bytes": 1, "total_bytes": 1, "reserve_bytes": 0}},
         "more memory was tested than there is.$"),
        ({"verdict": "passed"}, "says “passed”, but its stages say “failed”"),
        ({"stages": [stage("skipped", 0)], "findings": [], "verdict": "passed"}, "“partial”"),
        ({"stages": [stage("passed", 0)], "findings": [], "rounds": 0, "verdict": "passed"},
         "“partial”"),
    ],
)  # fmt: skip
def test_a_record_that_contradicts_itself_is_refused_by_name(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(StudioError, match=reason):
        decode_record(changed(record(), **fields))


def test_the_sentences_of_a_file_are_not_believed() -> None:
    lie = changed(record(), sentence="The card is sound.", next_action="Pay now.")
    assert decode_record(lie) == record()


def test_a_card_on_another_chip_does_not_pass() -> None:
    passed = check_record()
    assert decode_record(encode_record(passed)).verdict == "passed"
    device = msgspec.structs.replace(
        passed.device, name="NVIDIA GeForce RTX 4090", silicon="TU117 (1f82)",
        compute_capability="7.5", agreement="The name and chip are those of the RTX 4090.",
    )  # fmt: skip
    forged = decode_record(encode_record(msgspec.structs.replace(passed, device=device)))
    assert forged.verdict == "inconclusive"
    assert end_of(forged).tone is Tone.AMBER
    assert "its chip is TU117" in forged.sentence
    assert forged.device.agreement == ""


def test_a_record_from_a_file_says_so_and_is_never_green(tmp_path: Path) -> None:
    path = tmp_path / "sold.json"
    path.write_bytes(encode_record(check_record()))
    opened = read_record(path)
    assert opened == msgspec.structs.replace(check_record(), origin="sold.json")
    assert "sold.json" in origin_text(opened)
    assert origin_text(check_record()) == ""
    assert "run the check yourself" in opened.next_action
    assert (end_of(opened).tone, end_of(check_record()).tone) == (Tone.PLAIN, Tone.GOOD)
    path.write_bytes(encode_record(opened).replace(b"sold.json", b"a.json"))
    assert read_record(path).origin == "sold.json", "it is the file that was opened"


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def test_a_picture_has_the_record_in_a_plain_or_a_packed_text(tmp_path: Path) -> None:
    record, key = check_record(), CHUNK.encode()
    text = encode_record(record)
    path = tmp_path / "record.png"
    for kind, body in ((b"tEXt", text), (b"zTXt", b"\0" + zlib.compress(text))):
        path.write_bytes(png((b"IHDR", b""), (b"tEXt", b"a\0b"), (kind, key + b"\0" + body)))
        assert has_record(path)
        assert msgspec.structs.replace(read_record(path), origin="") == record


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.png", png((b"IHDR", b"")), "no record"),
        ("a.png", png((b"zTXt", CHUNK.encode() + b"\0\0no")), "not the record"),
        ("a.png", png((b"zTXt", CHUNK.encode() + b"\0\0" + zlib.compress(
            b" " * (LARGEST_RECORD_BYTES + 9)))), "too large"),
        ("a.json", b"{}", "not the record"),
        ("a.json", b" " * (LARGEST_FILE_BYTES + 1), "larger than"),
    ],
)  # fmt: skip
def test_a_file_without_a_record_is_refused_in_words(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudioError, match=reason) as refused:
        read_record(tmp_path / name)
    assert refused.value.kind is FailureKind.FILE_REFUSED


def test_whatever_a_stranger_sends_is_read_once(tmp_path: Path) -> None:
    for name, content in hostile_records():
        (tmp_path / name).write_bytes(content)
        with contextlib.suppress(StudioError):
            read_record(tmp_path / name)


@pytest.fixture(scope="module")
def a_night() -> CheckRecord:
    """The record of a night with a reading each second, two of them unlike all others."""
    run = CheckRun(CheckPlan(device="cuda:0", minutes=480), "2026-11-22T14:40:00.000+01:00")
    usual = Telemetry(temperature_c=60.0, sm_clock_mhz=1500.0, power_w=20.04)
    for second in range(28_800):
        vitals = msgspec.structs.replace(usual, temperature_c=60.0 + second % 3)
        if second == 12_345:
            vitals = msgspec.structs.replace(usual, temperature_c=97.0)
        if second == 23_456:
            vitals = msgspec.structs.replace(usual, sm_clock_mhz=139.0)
        run.apply(CheckVitalsRead(elapsed_s=float(second), vitals=vitals))
    return run.record()


def test_a_night_keeps_its_hottest_and_its_slowest_moment(a_night: CheckRecord) -> None:
    saved = a_night.readings
    assert MOST_READINGS // 2 <= len(saved) <= MOST_READINGS
    assert [one.at_s for one in saved] == sorted(one.at_s for one in saved)
    hottest = Telemetry(at_s=12_345.0, temperature_c=97.0, sm_clock_mhz=1500.0, power_w=20.0)
    assert hottest in saved
    assert min(saved, key=lambda one: one.sm_clock_mhz or 0).at_s == 23_456.0
    assert saved[0].at_s < 200
    assert saved[-1].at_s > 28_600
    assert len(encode_record(a_night)) < 60_000
    assert decode_record(encode_record(a_night)) == a_night


def test_a_strangers_record_with_too_many_readings_is_refused() -> None:
    written = msgspec.json.decode(encode_record(check_record()))
    written["readings"] = [{"at_s": 1.0}] * (MOST_READINGS + 1)
    with pytest.raises(StudioError, match="not the record of a check"):
        decode_record(msgspec.json.encode(written))


KEEPS_AND_WAITS = """
import sys, pathlib, msgspec
from gpu_studio.core.check.check_folder import CheckFolder, is_same_boot
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


CLAIMS = """
import sys, pathlib
from gpu_studio.core.check.check_folder import CheckFolder, is_same_boot
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


@pytest.mark.skipif(sys.platform == "win32", reason="the user's own folder sees to it")
def test_nobody_else_reads_a_check(tmp_path: Path) -> None:
    folder, run = CheckFolder(tmp_path), check_until("memory")
    folder.keep_progress("one", run.record(), "card one")
    keep(folder, 22, "card one")
    for ending in (".running", ".json"):
        (path,) = tmp_path.glob(f"*{ending}")
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [("a-b", "a-b", True), ("a-b", "c-d", False), ("1000", "1090", True), ("1000", "9000", False)],
)
def test_boots_are_told_apart(one: str, other: str, is_same: bool) -> None:
    assert is_same_boot(one, other) is is_same
