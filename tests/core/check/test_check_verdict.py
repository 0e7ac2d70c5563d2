"""Verdicts and next actions, by table."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from gpu_studio.core.check.check_record import CheckRecord, Interruption
from gpu_studio.core.check.check_verdict import (
    interruption_sentence,
    next_action,
    result_sentence,
    stage_verdict,
    whole_verdict,
    worse,
)
from gpu_studio.core.messages.check_messages import (
    CheckFinding,
    CheckVerdict,
    FindingKind,
    MemoryCoverage,
    Severity,
    StageOutcome,
)
from tests.core.check.test_check_record import record
from tests.fakes.check_answers import wrong_bit


def found(severity: Severity, kind: FindingKind = "wrong_result") -> CheckFinding:
    sentence = f"A {kind.replace('_', ' ')}."
    return CheckFinding(kind=kind, severity=severity, stage="load", sentence=sentence, count=1)


def outcome(verdict: CheckVerdict) -> StageOutcome:
    return StageOutcome(name="memory", verdict=verdict, tested="", errors=0, seconds=1.0)


@pytest.mark.parametrize(
    ("severities", "tested", "complete", "verdict"),
    [
        ([], True, True, "passed"),
        (["note"], True, True, "passed"),
        ([], True, False, "partial"),
        ([], False, False, "skipped"),
        (["doubt"], True, True, "inconclusive"),
        (["doubt"], False, False, "inconclusive"),
        (["note", "doubt", "error"], True, True, "failed"),
        (["error"], True, False, "failed"),
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
        ("skipped", "skipped", "skipped"),
        ("skipped", "inconclusive", "inconclusive"),
        ("inconclusive", "partial", "inconclusive"),
        ("failed", "inconclusive", "failed"),
        ("failed", "skipped", "failed"),
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
        (["skipped", "skipped"], "partial"),
        (["passed", "partial"], "partial"),
        (["partial", "inconclusive"], "inconclusive"),
        (["inconclusive", "failed", "passed"], "failed"),
    ],
)
def test_the_verdict_of_a_check(verdicts: list[CheckVerdict], whole: CheckVerdict) -> None:
    assert whole_verdict([outcome(one) for one in verdicts]) == whole


def test_an_interruption_is_no_pass() -> None:
    gap = (Interruption(after_s=70.0, is_restart=False),)
    assert whole_verdict([outcome("passed")], gap) == "inconclusive"
    assert whole_verdict([outcome("failed")], gap) == "failed"


def test_an_interruption_in_words() -> None:
    def sentence(after_s: float, *, is_restart: bool) -> str:
        return interruption_sentence(Interruption(after_s=after_s, is_restart=is_restart))

    assert sentence(2499, is_restart=True) == "The PC restarted 41 minutes into the check."
    assert sentence(61, is_restart=False) == "The program ended 1 minute into the check."
    assert sentence(59, is_restart=True) == "The PC restarted less than a minute into the check."


def test_a_card_that_is_not_the_one_of_its_name_does_not_pass() -> None:
    stages = [outcome("passed")]
    says = "This card says GTX 1060, but its chip is GF106."
    assert whole_verdict(stages) == "passed"
    assert whole_verdict(stages, contradiction=says) == "inconclusive"
    assert says in result_sentence("inconclusive", stages, (), contradiction=says)
    action = next_action("inconclusive", (), minutes=6, stages=stages, contradiction=says)
    assert "chip" in action
    assert whole_verdict([outcome("failed")], contradiction=says) == "failed"


DOUBTS = (
    "card_lost", "blind", "ecc_errors", "memory_spilled", "fan_stopped", "throttled", "overheated",
    "heat_unknown", "not_cooling", "low_clock", "slow_memory",
    "link_errors", "slow_link", "slow_sample", "not_repeatable", "could_not_run",
)  # fmt: skip


@pytest.mark.parametrize("kind", DOUBTS)
def test_every_doubt_has_its_own_next_action(kind: FindingKind) -> None:
    action = next_action("inconclusive", [found("doubt", kind)], minutes=6)
    unknown = next_action("inconclusive", [], minutes=6, stages=[outcome("inconclusive")])
    assert action != unknown
    assert action.endswith(".")


def test_no_kind_of_finding_is_left_without_an_action() -> None:
    errors = {
        "wrong_result", "unstable_result", "wrong_order", "disagreement", "wrong_bits", "wrong_copy"
    }  # fmt: skip
    notes = {"narrow_link", "hotspot_gap", "hot_memory"}
    assert {*DOUBTS, *errors, *notes} == set(get_args(FindingKind))


def test_a_failure_asks_for_a_repetition_first_and_for_more_the_second_time() -> None:
    def action(kind: FindingKind, earlier: CheckRecord | None) -> str:
        return next_action("failed", [found("error", kind)], minutes=6, earlier=earlier)

    passed = msgspec.structs.replace(record(), verdict="passed")
    again = "Restart the PC and run the check again. Both results are kept."
    assert action("wrong_bits", None) == action("wrong_bits", passed) == again
    assert "failed twice" in action("wrong_bits", record())
    assert "another version of PyTorch" in action("disagreement", record())


def test_a_pass_after_a_failure_is_no_end() -> None:
    assert "overnight" in next_action("passed", [], minutes=6, earlier=record())


def test_the_next_action_after_a_pass_is_the_longer_check() -> None:
    assert "6-minute" in next_action("passed", [], minutes=1)
    assert "overnight" in next_action("passed", [], minutes=6)
    assert "record" in next_action("passed", [], minutes=480)


def test_a_planted_fault_is_only_undone() -> None:
    action = next_action("failed", [wrong_bit()], minutes=6, is_planted=True, earlier=record())
    assert action == "Run the check again without the fault made on purpose."


def test_untested_memory_asks_for_free_memory_and_a_stop_for_patience() -> None:
    stages = [outcome("partial")]
    lacking = next_action("partial", [], minutes=6, stages=stages, lacks_memory=True)
    assert "video memory" in lacking
    assert "too short" in next_action("partial", [], minutes=6, stages=stages)
    stopped = next_action(
        "partial", [], minutes=6, stages=stages, lacks_memory=True, is_stopped=True
    )
    assert "finish" in stopped
    nothing = [outcome("skipped")]
    assert "Nothing was tested" in next_action("partial", [], minutes=6, stages=nothing)


def test_a_disagreement_does_not_call_the_card_broken() -> None:
    finding = CheckFinding(
        kind="disagreement", severity="error", stage="layouts", count=3,
        sentence="PyTorch and this card disagree on addcmul_ with a transposed tensor.",
    )  # fmt: skip
    sentence = result_sentence("failed", [outcome("failed")], [finding])
    assert sentence == finding.sentence


def test_a_partial_check_says_what_was_tested() -> None:
    stages = [outcome("partial"), StageOutcome(
        name="link", verdict="skipped", tested="", errors=0, seconds=0.0)]  # fmt: skip
    assert result_sentence("partial", stages, []) == (
        "No errors found so far, but not everything was tested. Tested: video memory."
    )
    assert result_sentence("partial", stages[1:], []) == "Nothing was tested."


def test_the_first_line_has_the_share_of_all_video_memory() -> None:
    gib = 1 << 30
    coverage = MemoryCoverage(
        tested_bytes=gib, free_bytes=gib, total_bytes=2 * gib, reserve_bytes=0
    )
    sentence = result_sentence("passed", [outcome("passed")], [], coverage=coverage)
    assert sentence.startswith("No errors found, with 50\u202f% of all 2\u202fGiB")
    on_cpu = result_sentence("passed", [outcome("passed")], [], address="cpu", coverage=coverage)
    assert on_cpu.startswith("No errors found, with 1\u202fGiB of 2\u202fGiB of RAM tested. ")
