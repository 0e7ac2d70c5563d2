import msgspec

from gpu_studio.core.check.check_record import CheckRecord
from gpu_studio.core.check.check_words import (
    record_facts,
    record_parts,
    result_words,
    running_rows,
    running_words,
)
from gpu_studio.core.notice import Notice
from gpu_studio.core.pause import Pause
from tests.fakes.check_answers import hot_card, wrong_bit
from tests.fakes.check_records import check_record, check_until


def record_limits(record: CheckRecord) -> list[str]:
    (part,) = (one for one in record_parts(record) if one.name == "limits")
    return [row.words for row in part.rows]


def facts_of(record: CheckRecord) -> dict[str, str]:
    return {row.title: row.words for row in record_facts(record)}


def test_what_a_record_cannot_rule_out_is_written_for_its_device() -> None:
    of_cpu = record_limits(check_record(device="cpu"))
    assert any(one.startswith("RAM: RAM that other") for one in of_cpu)
    assert any("a quarter of what is free" in one for one in of_cpu)
    assert any("596" in one and "other programs" in one for one in record_limits(check_record()))
    stopped = record_limits(check_record(stop_in="memory"))
    assert "did not run: PCIe link." in stopped[0]


def test_untested_memory_is_a_limit_only_if_some_was_left_out() -> None:
    def left_out(record: CheckRecord) -> list[str]:
        return [one for one in record_limits(record) if one.startswith("Faults in ")]

    record = check_record()
    assert record.coverage is not None
    assert len(left_out(record)) == 1
    whole = msgspec.structs.replace(record.coverage, tested_bytes=record.coverage.total_bytes)
    assert not left_out(msgspec.structs.replace(record, coverage=whole))
    assert not left_out(msgspec.structs.replace(record, coverage=None))


def test_the_facts_of_a_card_have_its_heat_and_clock_with_their_limits() -> None:
    facts = facts_of(check_record())
    assert facts["Chip"] == "GP108 (1d01)"
    assert facts["Highest temperature"].startswith("63")
    assert "94" in facts["Highest temperature"]
    assert "1227" in facts["Lowest clock under load"]
    of_cpu = facts_of(check_record(device="cpu"))
    assert not {"VBIOS", "Card"} & set(of_cpu)
    assert of_cpu["Highest temperature"] == of_cpu["Lowest clock under load"]
    assert of_cpu["Lowest clock under load"] == "not reported by this PC"
    assert of_cpu["Memory tested"].endswith("GiB free (74\u202f%), in this program's own RAM")


def test_a_record_has_its_pauses() -> None:
    slept = (Pause(after_s=30.0, paused_s=80.0),)
    facts = facts_of(msgspec.structs.replace(check_record(), pauses=slept))
    words = "The PC slept for 1:20, or the program was stopped, 0:30 into the check"
    assert facts["Interruption"] == words


def test_the_time_left_is_said_in_tens_of_seconds_and_no_time_after_the_plan() -> None:
    run = check_until("memory", device="cpu", minutes=1)
    assert running_words(run, "").chip.sentence == "Running, about 20 s left"
    present = run.present
    assert present is not None
    present.fraction = 1.0
    assert running_words(run, "").chip.sentence == "Running, longer than planned"
    run.elapsed_s += 99.0
    assert running_rows(run)[3][2] == "1:47 of 0:17"


def test_a_result_says_its_worst_finding_and_how_many_more_there_are() -> None:
    words = result_words(check_record({"load": (hot_card(),), "memory": (wrong_bit(),)}))
    assert words.doing.endswith(f"{wrong_bit().sentence} 1 more finding in Details.")


def test_what_tested_nothing_has_no_verdict_beside_its_words() -> None:
    words = result_words(msgspec.structs.replace(check_record(), stages=()))
    assert (words.errors.sentence, words.chip) == ("Nothing tested", Notice())
