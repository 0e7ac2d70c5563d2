from typing import Any, get_args

import msgspec
import pytest

from gpu_studio.core.check.check_record import (
    CheckRecord,
    Interruption,
    end_of,
    stage_verdict,
    worse,
)
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_words import (
    record_facts,
    record_parts,
    result_words,
    running_rows,
    running_words,
)
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import (
    STAGE_NAMES,
    CheckFinding,
    CheckVerdict,
    FindingKind,
    MemoryCoverage,
    Severity,
    StageName,
    StageOutcome,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.notice import Notice, Tone
from tests.core.check.test_check_file import record
from tests.fakes.check_answers import (
    STARTED_AT,
    check_record,
    check_round,
    check_until,
    hot_card,
    wrong_bit,
)


def found(severity: Severity, kind: FindingKind = "wrong_result") -> CheckFinding:
    sentence = f"A {kind.replace('_', ' ')}."
    return CheckFinding(kind=kind, severity=severity, stage="load", sentence=sentence, count=1)


def outcome(verdict: CheckVerdict, name: StageName = "memory") -> StageOutcome:
    errors = int(verdict == "failed")
    return StageOutcome(name=name, verdict=verdict, tested="", errors=errors, seconds=1.0)


def of(*verdicts: CheckVerdict, **changes: Any) -> CheckRecord:
    """Return a record of stages with these verdicts, and without findings."""
    stages = [outcome(one, name) for one, name in zip(verdicts, STAGE_NAMES, strict=False)]
    whole = {"minutes": 6, "rounds": 1, "findings": (), "coverage": None} | changes
    return msgspec.structs.replace(record(), stages=tuple(stages), **whole)


def of_cpu(*verdicts: CheckVerdict, **changes: Any) -> CheckRecord:
    device = msgspec.structs.replace(record().device, address="cpu")
    return of(*verdicts, device=device, **changes)


@pytest.mark.parametrize(
    ("severities", "tested", "complete", "verdict"),
    [
        ([], True, True, "passed"),
        ([], True, False, "partial"),
        ([], False, False, "skipped"),
        (["doubt"], True, True, "inconclusive"),
        (["note", "doubt", "error"], True, True, "failed"),
    ],
)
def test_the_verdict_of_a_stage(
    severities: list[Severity], tested: bool, complete: bool, verdict: CheckVerdict
) -> None:
    findings = [found(one) for one in severities]
    assert stage_verdict(findings, has_tested=tested, is_complete=complete) == verdict


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("passed", "passed", "passed"),
        ("passed", "partial", "partial"),
        ("passed", "skipped", "partial"),
        ("skipped", "inconclusive", "inconclusive"),
        ("failed", "inconclusive", "failed"),
    ],
)
def test_the_worse_of_two_rounds_counts(
    first: CheckVerdict, second: CheckVerdict, verdict: CheckVerdict
) -> None:
    assert worse(first, second) == worse(second, first) == verdict


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (["passed", "passed"], "passed"),
        (["passed", "skipped"], "partial"),
        (["passed", "partial"], "partial"),
        (["partial", "inconclusive"], "inconclusive"),
        (["inconclusive", "failed", "passed"], "failed"),
    ],
)
def test_the_verdict_of_a_check(verdicts: list[CheckVerdict], whole: CheckVerdict) -> None:
    assert of(*verdicts).verdict == whole


def test_a_card_that_is_not_the_one_of_its_name_does_not_pass() -> None:
    says = "This card says GTX 1060, but its chip is GF106."
    device = msgspec.structs.replace(record().device, contradiction=says)
    doubtful = of("passed", device=device)
    assert doubtful.verdict == "inconclusive"
    assert says in doubtful.sentence
    assert "chip" in doubtful.next_action
    assert of("failed", device=device).verdict == "failed"


DOUBTS = (
    "card_lost", "blind", "ecc_errors", "memory_spilled", "fan_stopped", "throttled", "overheated",
    "heat_unknown", "not_cooling", "low_clock", "slow_memory",
    "link_errors", "slow_link", "slow_sample", "not_repeatable", "could_not_run",
)  # fmt: skip


@pytest.mark.parametrize("kind", DOUBTS)
def test_every_doubt_has_its_own_next_action(kind: FindingKind) -> None:
    doubts = (found("doubt", kind),)
    action = of("inconclusive", "passed", findings=doubts).next_action
    assert action != of("inconclusive", "passed").next_action
    assert action.endswith(".")
    on_cpu = of_cpu("inconclusive", "passed", findings=doubts).next_action
    assert on_cpu.endswith(".")
    assert not [word for word in ("card", "riser", "driver") if word in on_cpu]


def test_no_kind_of_finding_is_left_without_an_action() -> None:
    errors = {
        "wrong_result", "unstable_result", "wrong_order", "disagreement", "wrong_bits", "wrong_copy"
    }  # fmt: skip
    notes = {"narrow_link", "hotspot_gap", "hot_memory", "nothing_right"}
    assert {*DOUBTS, *errors, *notes} == set(get_args(FindingKind))


def test_a_failure_asks_for_a_repetition_first_and_for_more_the_second_time() -> None:
    def action(kind: FindingKind, *, failed_before: bool = True) -> str:
        errors = (found("error", kind),)
        return of("failed", findings=errors, failed_before=failed_before).next_action

    again = "Restart the PC and run the check again. Both results are kept."
    assert action("wrong_bits", failed_before=False) == again
    assert "failed twice" in action("wrong_bits")
    assert "another version of PyTorch" in action("disagreement")
    on_cpu = of_cpu("failed", failed_before=True).next_action
    assert "failed twice" in on_cpu
    assert "MemTest86+" in on_cpu
    assert "power cables" not in on_cpu


def test_where_nothing_was_right_the_software_is_more_likely_than_the_card() -> None:
    note = msgspec.structs.replace(found("note", "nothing_right"), stage="compute")
    findings = (found("error"), note)
    wrong = of("failed", "failed", findings=findings, failed_before=True)
    assert wrong.sentence == (
        "Nothing this card computed was right: more likely the driver or PyTorch than the card."
    )
    assert "another version of the driver or of PyTorch" in wrong.next_action
    assert "more likely PyTorch" in of_cpu("failed", "failed", findings=findings).sentence


RESTARTED = {"interruptions": (Interruption(after_s=2499.0, is_restart=True),)}
LITTLE = {
    "coverage": MemoryCoverage(tested_bytes=1, free_bytes=9, total_bytes=9, reserve_bytes=0)
}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (of("passed", **RESTARTED), "card's power cables"),
        (of_cpu("passed", **RESTARTED), "CPU's cooler"),
        (of("passed", failed_before=True), "comes and goes"),
        (of("passed", minutes=1), "6-minute"),
        (of("passed"), "overnight"),
        (of("passed", minutes=480, rounds=16), "Save the record"),
        (of("failed", planted="bit", failed_before=True), "without the fault made on purpose"),
        (of("partial", **LITTLE), "video memory"),
        (of("partial"), "too short"),
        (of_cpu("partial", **LITTLE), "too short"),
        (of("partial", is_stopped=True, **LITTLE), "let it finish"),
        (of("skipped"), "Nothing was tested"),
    ],
)
def test_each_end_has_its_next_action(record: CheckRecord, words: str) -> None:
    assert words in record.next_action


def test_the_first_line_has_the_share_of_all_video_memory() -> None:
    gib = 1 << 30
    coverage = MemoryCoverage(
        tested_bytes=gib, free_bytes=gib, total_bytes=2 * gib, reserve_bytes=0
    )
    sentence = of("passed", coverage=coverage).sentence
    assert sentence.startswith("No errors found, with 50\u202f% of all 2\u202fGiB")
    on_cpu = of_cpu("passed", coverage=coverage).sentence
    assert on_cpu.startswith("No errors found, with 1\u202fGiB of 2\u202fGiB of RAM tested. ")


LOST = RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "the GPU is lost", fatal=True))
REFUSED = RequestFailed(failure=Failure(FailureKind.NO_KERNEL, "It has no code for this card."))


def ended(
    end: RequestFailed | EngineEnded, *, end_in: str | None, device: str = "cuda:0"
) -> CheckRecord:
    """Return the record of a check whose engine ended in a stage, or before the first."""
    run = CheckRun(CheckPlan(device=device, minutes=6), STARTED_AT)
    request = run.next_request()
    assert request is not None
    events = check_round(request, end_in=end_in or "load")
    for event in events if end_in else [next(events)]:
        run.apply(event)  # type: ignore[arg-type]  # no pause
    run.apply(end)
    return run.record()


def interrupted() -> CheckRecord:
    gap = (Interruption(after_s=70.0, is_restart=True),)
    return msgspec.structs.replace(check_record(), interruptions=gap)


@pytest.mark.parametrize(
    ("record", "tone", "words"),
    [
        (check_record(), Tone.GOOD, "0 errors"),
        (check_record({"memory": (wrong_bit(),) * 3}), Tone.FAILURE, "3 errors"),
        (ended(LOST, end_in="compute"), Tone.FAILURE, "Card failed"),
        (ended(EngineEnded(exit_code=-11), end_in="compute", device="cpu"), Tone.FAILURE,
         "Check crashed"),
        (ended(EngineEnded(exit_code=-9), end_in="compute"), Tone.AMBER, "No clear result"),
        (check_record({"load": (hot_card(),)}), Tone.AMBER, "No clear result"),
        (ended(REFUSED, end_in=None), Tone.AMBER, "Nothing tested"),
        (interrupted(), Tone.AMBER, "Interrupted"),
        (check_record(stop_in="memory"), Tone.AMBER, "Stopped early"),
        (msgspec.structs.replace(check_record(), rounds=0), Tone.AMBER,
         "Partly tested"),
    ],
)  # fmt: skip
def test_an_end_has_its_words_and_only_a_pass_is_green(
    record: CheckRecord, tone: Tone, words: str
) -> None:
    end = end_of(record)
    assert (end.sentence.replace("\u202f", " "), end.tone) == (words, tone)


def test_a_card_without_code_is_named_with_its_driver_and_says_why() -> None:
    record = ended(REFUSED, end_in=None)
    assert record.sentence == "It has no code for this card."
    assert record.device.driver_version
    assert record.device.silicon
    assert record.sentence.rstrip(".") in record.next_action


# ── an engine that ended ─────────────────────────────────────────────────────────────────────────


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
