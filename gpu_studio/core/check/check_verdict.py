"""What a check may claim: the verdict of a stage and of the whole check, and the next action.

A pass applies to what was tested and to nothing else. A failure first asks for a repetition after a
restart, because a driver in a bad state makes the same errors as a bad card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.check.stages import GLANCE_MINUTES, OVERNIGHT_MINUTES, stage_title
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_bytes, format_count, format_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.check.check_record import CheckRecord, Interruption
    from gpu_studio.core.messages.check_messages import (
        CheckFinding,
        CheckVerdict,
        FindingKind,
        MemoryCoverage,
        StageOutcome,
    )

_WORST_FIRST: tuple[CheckVerdict, ...] = (
    "failed", "inconclusive", "partial", "passed", "skipped",
)  # fmt: skip
_REPEAT = "Restart the PC and run the check again. Both results are kept."
_SECOND_FAILURE = (
    "This card failed twice. Undo any overclocking, check its power cables and its fan, and check "
    "the card in another PC. If it fails there as well, return or replace it."
)
_SECOND_DISAGREEMENT = (
    "The difference came back after a repetition. Install another version of PyTorch or of the "
    "driver, and run the check again. If the difference stays, check the card in another PC."
)
_WITHOUT_PLANT = "Run the check again without the fault made on purpose."
_TO_THE_END = "Run the check again, and let it finish."
_MORE_FREE = (
    "Close programs that use video memory, such as browsers and games, and run the check again."
)
_TOO_SHORT = (
    "The time was too short to test everything once. Close other programs and run the check again, "
    "or run a longer one."
)
_ANOTHER_CARD = (
    "Compare the print on the card and on its chip with its name before you buy, sell or keep it. "
    "Its BIOS may be that of another card."
)
_SKIPPED = "Nothing was tested: run the check again."
_UNEXPECTED_RESTART = (
    "If you did not restart the PC yourself, check the power supply and the card's power cables. "
    "Then run the check again."
)
_PROGRAM_ENDED = "If you did not close GPU Studio yourself, run the check again."
# By the kind of a doubt; the first one that applies is the next action.
_AFTER_DOUBT: tuple[tuple[FindingKind, str], ...] = (
    ("card_lost", _REPEAT),
    ("blind", "Update the driver and PyTorch, and run the check again."),
    ("ecc_errors", "Restart the PC and run the check again. If the count rises again, replace the "
                   "card."),
    ("memory_spilled", _MORE_FREE),
    ("fan_stopped", "See whether the card's fan turns and whether its cable is plugged in, and run "
                    "the check again."),
    ("throttled", "Clean the card's fan and heat sink, check the PC's air flow, and run the check "
                  "again."),
    ("overheated", "Clean the card's fan and heat sink, see whether the fan turns, check the PC's "
                   "air flow, and run the check again."),
    ("not_cooling", "Close other programs, see whether the cooler sits firmly on the chip, and run "
                    "the check again."),
    ("heat_unknown", "Update the driver, restart the PC and run the check again; watch the "
                     "temperature in another program as well."),
    ("slow_memory", "Let the card cool, see whether air reaches its memory chips, and run the "
                    "check again."),
    ("low_clock", "Set the driver's power mode to highest performance, close other programs, and "
                  "run the check again."),
    ("link_errors", "Switch the PC off, reseat the card, leave out any riser cable, and run the "
                    "check again."),
    ("slow_link", "Switch the PC off, reseat the card in the long slot next to the processor, and "
                  "run the check again."),
    ("slow_sample", "Close other programs and run the check again."),
    ("not_repeatable", "Update the driver and PyTorch, and run the check again."),
    ("could_not_run", "Close other programs and run the check again. If it stops early again, "
                      "update the driver and PyTorch."),
)  # fmt: skip


def stage_verdict(
    findings: Sequence[CheckFinding], *, has_tested: bool, is_complete: bool
) -> CheckVerdict:
    """Return the verdict of a stage.

    Args:
        findings: those of the stage.
        has_tested: whether anything was tested.
        is_complete: whether everything that the stage plans was tested.
    """
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "failed"
    if "doubt" in severities:
        return "inconclusive"
    if not has_tested:
        return "skipped"
    return "passed" if is_complete else "partial"


def worse(first: CheckVerdict, second: CheckVerdict) -> CheckVerdict:
    """Return the verdict that counts if a stage ran twice."""
    if "skipped" in (first, second) and first != second:
        other = second if first == "skipped" else first
        return "partial" if other == "passed" else other
    return min(first, second, key=_WORST_FIRST.index)


def whole_verdict(
    stages: Sequence[StageOutcome],
    interruptions: Sequence[Interruption] = (),
    *,
    is_complete: bool = True,
    contradiction: str = "",
) -> CheckVerdict:
    """Return the verdict of a check from its stages.

    Args:
        stages: the chosen ones.
        interruptions: a restart or an end of the program makes a check inconclusive.
        is_complete: whether all rounds are done.
        contradiction: what does not fit the card's name; without errors, it makes a check
            inconclusive.
    """
    verdicts = {stage.verdict for stage in stages}
    if "failed" in verdicts:
        return "failed"
    if "inconclusive" in verdicts or interruptions or contradiction:
        return "inconclusive"
    return "passed" if verdicts == {"passed"} and is_complete else "partial"


def result_sentence(
    verdict: CheckVerdict,
    stages: Sequence[StageOutcome],
    findings: Sequence[CheckFinding],
    interruptions: Sequence[Interruption] = (),
    *,
    address: str = "cuda:0",
    contradiction: str = "",
    coverage: MemoryCoverage | None = None,
) -> str:
    """Return the result of a check in a sentence or two; it claims no more than was tested.

    Args:
        verdict: of the whole check.
        stages: the chosen ones.
        findings: all of them.
        interruptions: restarts and ends of the program.
        address: PyTorch's name for the device.
        contradiction: what does not fit the card's name; empty if everything does.
        coverage: how much of the memory was tested; None if nothing was.
    """
    share = _memory_share(coverage, address)
    titles = [stage_title(stage.name, address) for stage in stages if stage.has_tested]
    if verdict == "passed":
        tested = f"Tested: {_listed(titles)}. Passing cannot rule out every fault."
        return f"No errors found{share}. {tested}"
    if verdict == "failed":
        return _failure(stages, findings)
    if interruptions:
        return interruption_sentence(interruptions[-1])
    doubt = sentence_finding(verdict, findings)
    if not any(stage.has_tested for stage in stages):
        return "Nothing was tested." if doubt is None else doubt.sentence
    if doubt is not None:
        return f"No errors found, but the result is doubtful. {doubt.sentence}"
    if contradiction:
        return f"No errors found, but it is not the card that its name says. {contradiction}"
    return (
        f"No errors found so far{share}, but not everything was tested. Tested: {_listed(titles)}."
    )


def _memory_share(coverage: MemoryCoverage | None, address: str) -> str:
    """Return the share of all memory that was tested, in words; empty if none was."""
    if coverage is None or not 0 < coverage.tested_bytes <= coverage.total_bytes:
        return ""
    if is_cpu(address):
        tested, whole = format_bytes(coverage.tested_bytes), format_bytes(coverage.total_bytes)
        return f", with {tested} of {whole} of RAM tested"
    share = format_percent(coverage.tested_bytes / coverage.total_bytes)
    return f", with {share} of all {format_bytes(coverage.total_bytes)} of video memory tested"


def sentence_finding(
    verdict: CheckVerdict,
    findings: Sequence[CheckFinding],
    interruptions: Sequence[Interruption] = (),
) -> CheckFinding | None:
    """Return the finding whose sentence is part of the `result_sentence`; None if there is none."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if verdict == "failed":
        lost = next((finding for finding in errors if finding.kind == "card_lost"), None)
        return lost or next(iter(errors), None)
    if verdict == "passed" or interruptions:
        return None
    return next((finding for finding in findings if finding.severity == "doubt"), None)


def interruption_sentence(interruption: Interruption) -> str:
    """Return what happened to a check that ended without its program's consent."""
    minutes = int(interruption.after_s // 60)
    when = "less than a minute" if not minutes else f"{minutes} minute{'s' * (minutes != 1)}"
    if interruption.is_restart:
        return f"The PC restarted {when} into the check."
    return f"The program ended {when} into the check."


def next_action(
    verdict: CheckVerdict,
    findings: Sequence[CheckFinding],
    *,
    minutes: int,
    is_planted: bool = False,
    is_stopped: bool = False,
    stages: Sequence[StageOutcome] = (),
    interruptions: Sequence[Interruption] = (),
    earlier: CheckRecord | None = None,
    lacks_memory: bool = False,
    contradiction: str = "",
) -> str:
    """Return the one next action after a check.

    Args:
        verdict: of the whole check.
        findings: all of them.
        minutes: the chosen length.
        is_planted: whether a fault was made on purpose.
        is_stopped: whether the user ended the check.
        stages: the chosen ones.
        interruptions: restarts and ends of the program.
        earlier: the last check of the same card, None if there is none.
        lacks_memory: whether too little video memory was free to test most of it.
        contradiction: what does not fit the card's name; empty if everything does.
    """
    if is_planted:
        return _WITHOUT_PLANT
    if verdict == "failed":
        return _after_failure(findings, earlier)
    kinds = {finding.kind for finding in findings if finding.severity == "doubt"}
    if stages and not any(stage.has_tested for stage in stages):
        reason = next((finding for finding in findings if finding.severity == "doubt"), None)
        return _after_nothing(reason.sentence) if reason is not None else _SKIPPED
    action = next((action for kind, action in _AFTER_DOUBT if kind in kinds), None)
    if action is not None:
        return action
    if interruptions:
        return _UNEXPECTED_RESTART if interruptions[-1].is_restart else _PROGRAM_ENDED
    if contradiction:
        return _ANOTHER_CARD
    if verdict == "passed":
        return _after_pass(minutes, earlier)
    if is_stopped:
        return _TO_THE_END
    return _MORE_FREE if lacks_memory else _TOO_SHORT


def _after_failure(findings: Sequence[CheckFinding], earlier: CheckRecord | None) -> str:
    if earlier is None or earlier.verdict != "failed":
        return _REPEAT
    kinds = {finding.kind for finding in findings if finding.severity == "error"}
    return _SECOND_DISAGREEMENT if kinds == {"disagreement"} else _SECOND_FAILURE


def _after_pass(minutes: int, earlier: CheckRecord | None) -> str:
    if earlier is not None and earlier.verdict == "failed":
        return (
            "The last check of this card failed and this one passed, so the error comes and goes: "
            "run the overnight check."
        )
    if minutes <= GLANCE_MINUTES:
        return "This was a glance: run the 6-minute check."
    if minutes < OVERNIGHT_MINUTES:
        return "Nothing to do. If errors are rare, only the overnight check finds them."
    return "Nothing to do. Save the record if you sell or keep the card."


def _after_nothing(reason: str) -> str:
    return f"Fix this first: {reason.rstrip('.')}. Then run the check again."


def _failure(stages: Sequence[StageOutcome], findings: Sequence[CheckFinding]) -> str:
    kinds = {finding.kind for finding in findings if finding.severity == "error"}
    worst = sentence_finding("failed", findings)
    count = sum(stage.errors for stage in stages)
    if worst is not None and kinds == {"disagreement"}:
        return worst.sentence
    if worst is not None and worst.kind == "card_lost":
        return f"{worst.sentence}{_before_the_loss(count - worst.count)}"
    noun = "error" if count == 1 else "errors"
    first = f" {worst.sentence}" if worst is not None else ""
    return f"{format_count(count)} {noun} found.{first}"


def _before_the_loss(count: int) -> str:
    if count <= 0:
        return ""
    noun = "error was" if count == 1 else "errors were"
    return f" Before that, {format_count(count)} {noun} found."


def _listed(titles: Sequence[str]) -> str:
    lower = [title[0].lower() + title[1:] if title[1:2].islower() else title for title in titles]
    if len(lower) < 2:
        return "".join(lower)
    return f"{', '.join(lower[:-1])} and {lower[-1]}"
