"""What a check may claim: verdict, largest words, sentence and next action, from what it found.

A pass applies to what was tested and to nothing else. A failure first asks for a repetition after a
restart, because a driver in a bad state makes the same errors as a bad card. All of it follows from
the stages and the findings: what a file says of itself is no reason to believe it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.check.stages import (
    GLANCE_MINUTES,
    OVERNIGHT_MINUTES,
    round_count,
    stage_title,
)
from gpu_studio.core.check.thresholds import is_enough
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.check_messages import (
    MOST_FINDINGS,
    MOST_STAGES,
    CheckedDevice,
    CheckFinding,
    CheckVerdict,
    FindingKind,
    LoadSteps,
    MemoryCoverage,
    MemoryRates,
    PlantKind,
    Severity,
    ShortText,
    StageName,
    StageOutcome,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Amount,
    Count,
    PositiveCount,
    Seconds,
)
from gpu_studio.core.notice import Tone
from gpu_studio.core.pause import Pauses  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.units import format_bytes, format_count, format_percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.failure import Failure

MOST_INTERRUPTIONS = 1000
_WORST_FIRST: tuple[CheckVerdict, ...] = (
    "failed", "inconclusive", "partial", "passed", "skipped",
)  # fmt: skip
_AGAIN = "run the check again"
_REPEAT = "Restart the PC and run the check again. Both results are kept."
_SECOND_FAILURE = (
    "This card failed twice. Undo any overclocking, check its power cables and its fan, and check "
    "the card in another PC. If it fails there as well, return or replace it."
)
_SECOND_FAILURE_OF_CPU = (
    "This PC failed twice. Undo any overclocking of its CPU and its RAM, check the CPU's cooler, "
    "and test the RAM with a program that starts instead of the system, such as MemTest86+."
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
    "If you did not restart the PC yourself, check {parts}. Then run the check again."
)
_PROGRAM_ENDED = "If you did not close GPU Studio yourself, run the check again."
_UPDATE = f"Update the driver and PyTorch, and {_AGAIN}."
_CLOSE = f"Close other programs and {_AGAIN}."
# By the kind of a doubt; the first one that applies is the next action.
_AFTER_DOUBT: dict[FindingKind, str] = {
    "card_lost": _REPEAT,
    "blind": _UPDATE,
    "ecc_errors": f"Restart the PC and {_AGAIN}. If the count rises again, replace the card.",
    "memory_spilled": _MORE_FREE,
    "fan_stopped": "See whether the card's fan turns and whether its cable is plugged in, and "
    f"{_AGAIN}.",
    "throttled": f"Clean the card's fan and heat sink, check the PC's air flow, and {_AGAIN}.",
    "overheated": "Clean the card's fan and heat sink, see whether the fan turns, check the PC's "
    f"air flow, and {_AGAIN}.",
    "not_cooling": "Close other programs, see whether the cooler sits firmly on the chip, and "
    f"{_AGAIN}.",
    "heat_unknown": f"Update the driver, restart the PC and {_AGAIN}; watch the temperature in "
    "another program as well.",
    "slow_memory": f"Let the card cool, see whether air reaches its memory chips, and {_AGAIN}.",
    "low_clock": "Set the driver's power mode to highest performance, close other programs, and "
    f"{_AGAIN}.",
    "link_errors": f"Switch the PC off, reseat the card, leave out any riser cable, and {_AGAIN}.",
    "slow_link": "Switch the PC off, reseat the card in the long slot next to the processor, and "
    f"{_AGAIN}.",
    "slow_sample": _CLOSE,
    "not_repeatable": _UPDATE,
    "could_not_run": f"{_CLOSE} If it stops early again, update the driver and PyTorch.",
}
_COOLER = f"Clean the CPU's cooler, check the PC's air flow, and {_AGAIN}."
_AFTER_DOUBT_OF_CPU: dict[FindingKind, str] = _AFTER_DOUBT | {
    "blind": f"Update PyTorch, and {_AGAIN}.",
    "ecc_errors": f"Restart the PC and {_AGAIN}. If the count rises again, replace the RAM.",
    "memory_spilled": _CLOSE,
    "fan_stopped": _COOLER,
    "throttled": _COOLER,
    "overheated": _COOLER,
    "not_cooling": f"Close other programs, see whether the CPU's cooler sits firmly, and {_AGAIN}.",
    "heat_unknown": f"Restart the PC and {_AGAIN}; watch the temperature in another program as "
    "well.",
    "slow_memory": _CLOSE,
    "low_clock": "Set the system's power mode to highest performance, close other programs, and "
    f"{_AGAIN}.",
    "link_errors": _CLOSE,
    "slow_link": _CLOSE,
    "not_repeatable": f"Update PyTorch, and {_AGAIN}.",
    "could_not_run": f"{_CLOSE} If it stops early again, update PyTorch.",
}


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """A check that ended without its program's consent, found at the next start.

    ``after_s`` is the time since the start of the check, up to a minute too short.
    ``is_restart``: the PC itself started again in between; otherwise only the program ended.
    """

    after_s: Seconds
    is_restart: bool


class CheckFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a check measured so far; a record and an interrupted check have it alike."""

    highest_temperature_c: Amount | None = None
    highest_hotspot_c: Amount | None = None
    largest_hotspot_gap_c: Amount | None = None
    highest_memory_temperature_c: Amount | None = None
    lowest_clock_mhz: Amount | None = None
    highest_power_w: Amount | None = None
    coverage: MemoryCoverage | None = None
    load_steps: LoadSteps = ()
    memory_rates: MemoryRates | None = None
    interruptions: Annotated[tuple[Interruption, ...], Meta(max_length=MOST_INTERRUPTIONS)] = ()
    pauses: Pauses = ()


class CheckResult(CheckFigures, frozen=True, kw_only=True):
    """What was checked and found, and what follows from it.

    ``minutes`` is the chosen length. ``highest_temperature_c`` and ``lowest_clock_mhz`` are those
    of the load stage and later, None if the card reports none. ``largest_hotspot_gap_c`` is that of
    `hot_spot.steady_gap_c`. ``load_steps`` is the table of the load in steps over all rounds,
    ``memory_rates`` the largest loss of bandwidth of all rounds. ``failed_before``: the check of
    the same card before this one failed. ``origin`` is the file from which a result comes that this
    PC did not make, empty for its own.
    """

    device: CheckedDevice
    minutes: PositiveCount
    rounds: Count
    stages: Annotated[tuple[StageOutcome, ...], Meta(max_length=MOST_STAGES)]
    findings: Annotated[tuple[CheckFinding, ...], Meta(max_length=MOST_FINDINGS)] = ()
    planted: PlantKind | None = None
    is_stopped: bool = False
    failed_before: bool = False
    origin: ShortText = ""

    def __post_init__(self) -> None:
        """Raise ValueError for stages and findings that contradict each other."""
        verdicts = {stage.name: stage.verdict for stage in self.stages}
        if len(verdicts) < len(self.stages):
            message = "it has a stage twice"
            raise ValueError(message)
        for finding in self.findings:
            if finding.severity == "error" and verdicts.get(finding.stage) != "failed":
                message = f"it has an error in the stage “{finding.stage}”, which did not fail"
                raise ValueError(message)

    @property
    def verdict(self) -> CheckVerdict:
        """What the stages say together."""
        return whole_verdict(self)

    @property
    def sentence(self) -> str:
        """The result in a sentence or two."""
        return result_sentence(self)

    @property
    def next_action(self) -> str:
        """The one next action."""
        return next_action(self)

    @property
    def has_tested(self) -> bool:
        """Whether any stage tested anything."""
        return any(stage.has_tested for stage in self.stages)

    @property
    def errors(self) -> int:
        """The errors of all stages."""
        return sum(stage.errors for stage in self.stages)


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────


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


def whole_verdict(result: CheckResult) -> CheckVerdict:
    """Return the verdict of a check.

    A restart, an end of the program, and what does not fit the card's name make a check without
    errors inconclusive; without all of its rounds, it is partial.
    """
    verdicts = {stage.verdict for stage in result.stages}
    if "failed" in verdicts:
        return "failed"
    if "inconclusive" in verdicts or result.interruptions or result.device.contradiction:
        return "inconclusive"
    is_complete = result.rounds >= round_count(result.minutes)
    return "passed" if verdicts == {"passed"} and is_complete else "partial"


class CheckEnd(Enum):
    """How a check ended, which decides what its largest words may say."""

    PASSED = "passed"
    ERRORS = "errors"  # errors were counted
    LOST = "lost"  # the device or its driver ended the check, before any other error
    DOUBTFUL = "doubtful"  # no error, and a reason not to rely on that
    INTERRUPTED = "interrupted"  # the PC restarted, or the program ended
    NOTHING_TESTED = "nothing_tested"
    STOPPED = "stopped"  # by the user, in the middle
    PARTIAL = "partial"


_TONES = {
    CheckEnd.PASSED: Tone.GOOD,
    CheckEnd.ERRORS: Tone.FAILURE,
    CheckEnd.LOST: Tone.FAILURE,
}
_WORDS = {
    CheckEnd.DOUBTFUL: "No clear result",
    CheckEnd.INTERRUPTED: "Interrupted",
    CheckEnd.NOTHING_TESTED: "Nothing tested",
    CheckEnd.STOPPED: "Stopped early",
    CheckEnd.PARTIAL: "Partly tested",
}


def end_of(result: CheckResult) -> CheckEnd:
    """Return how the check of a record ended."""
    if result.verdict == "failed":
        errors = (one for one in result.findings if one.severity == "error")
        is_lost = result.errors <= 1 and any(one.kind == "card_lost" for one in errors)
        return CheckEnd.LOST if is_lost else CheckEnd.ERRORS
    if not result.has_tested:
        return CheckEnd.NOTHING_TESTED
    if result.verdict == "inconclusive":
        return CheckEnd.INTERRUPTED if result.interruptions else CheckEnd.DOUBTFUL
    if result.verdict == "passed":
        return CheckEnd.PASSED
    return CheckEnd.STOPPED if result.is_stopped else CheckEnd.PARTIAL


def end_words(result: CheckResult) -> str:
    """Return the largest words of a record: a number of errors, or why there is none.

    "0 errors" belongs to a pass alone.
    """
    end = end_of(result)
    if end is CheckEnd.LOST:
        return "Check crashed" if is_cpu(result.device.address) else "Card failed"
    return _WORDS.get(end) or errors_text(result.errors)


def end_tone(result: CheckResult) -> Tone:
    """Return how good or bad the end is; only a pass is good, and one in a file is neither."""
    tone = _TONES.get(end_of(result), Tone.AMBER)
    return Tone.PLAIN if result.origin and tone is Tone.GOOD else tone


def errors_text(count: int) -> str:
    """Return a number of errors: ``0 errors``, ``1 error``."""
    return f"{format_count(count)}\u202f{'error' if count == 1 else 'errors'}"


# ── sentences ────────────────────────────────────────────────────────────────────────────────────


def result_sentence(result: CheckResult) -> str:
    """Return the result of a check in a sentence or two; it claims no more than was tested."""
    address = result.device.address
    share = _memory_share(result.coverage, address)
    titles = [stage_title(stage.name, address) for stage in result.stages if stage.has_tested]
    if result.verdict == "passed":
        tested = f"Tested: {_listed(titles)}. Passing cannot rule out every fault."
        return f"No errors found{share}. {tested}"
    if result.verdict == "failed":
        return _failure(result)
    if result.interruptions:
        return interruption_sentence(result.interruptions[-1])
    doubt = sentence_finding(result)
    if not titles:
        return "Nothing was tested." if doubt is None else doubt.sentence
    if doubt is not None:
        return f"No errors found, but the result is doubtful. {doubt.sentence}"
    if says := result.device.contradiction:
        return f"No errors found, but it is not the card that its name says. {says}"
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


def sentence_finding(result: CheckResult) -> CheckFinding | None:
    """Return the finding whose sentence is part of the `result_sentence`; None if there is none."""
    errors = [finding for finding in result.findings if finding.severity == "error"]
    if result.verdict == "failed":
        lost = next((finding for finding in errors if finding.kind == "card_lost"), None)
        return lost or next(iter(errors), None)
    if result.verdict == "passed" or result.interruptions:
        return None
    return next((finding for finding in result.findings if finding.severity == "doubt"), None)


def interruption_sentence(interruption: Interruption) -> str:
    """Return what happened to a check that ended without its program's consent."""
    minutes = int(interruption.after_s // 60)
    when = "less than a minute" if not minutes else f"{minutes} minute{'s' * (minutes != 1)}"
    if interruption.is_restart:
        return f"The PC restarted {when} into the check."
    return f"The program ended {when} into the check."


def _failure(result: CheckResult) -> str:
    kinds = {finding.kind for finding in result.findings if finding.severity == "error"}
    worst, count = sentence_finding(result), result.errors
    if worst is not None and kinds == {"disagreement"}:
        return worst.sentence
    if worst is not None and worst.kind == "card_lost":
        return f"{worst.sentence}{_before_the_loss(count - worst.count)}"
    first = f" {worst.sentence}" if worst is not None else ""
    return f"{format_count(count)} {'error' if count == 1 else 'errors'} found.{first}"


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


# ── the next action ──────────────────────────────────────────────────────────────────────────────


def next_action(result: CheckResult) -> str:
    """Return the one next action after a check."""
    is_of_cpu = is_cpu(result.device.address)
    if result.planted is not None:
        return _WITHOUT_PLANT
    if result.verdict == "failed":
        return _after_failure(result, is_of_cpu=is_of_cpu)
    doubts = [finding for finding in result.findings if finding.severity == "doubt"]
    if not result.has_tested:
        return _after_nothing(doubts[0].sentence) if doubts else _SKIPPED
    kinds = {finding.kind for finding in doubts}
    actions = _AFTER_DOUBT_OF_CPU if is_of_cpu else _AFTER_DOUBT
    action = next((action for kind, action in actions.items() if kind in kinds), None)
    if action is not None:
        return action
    if result.interruptions:
        if not result.interruptions[-1].is_restart:
            return _PROGRAM_ENDED
        cables = "the CPU's cooler" if is_of_cpu else "the card's power cables"
        return _UNEXPECTED_RESTART.format(parts=f"the power supply and {cables}")
    if result.device.contradiction:
        return _ANOTHER_CARD
    if result.verdict == "passed":
        return _after_pass(result, is_of_cpu=is_of_cpu)
    if result.is_stopped:
        return _TO_THE_END
    lacks_memory = result.coverage is not None and not is_enough(result.coverage)
    return _MORE_FREE if lacks_memory and not is_of_cpu else _TOO_SHORT


def _after_failure(result: CheckResult, *, is_of_cpu: bool) -> str:
    if not result.failed_before:
        return _REPEAT
    if is_of_cpu:
        return _SECOND_FAILURE_OF_CPU
    kinds = {finding.kind for finding in result.findings if finding.severity == "error"}
    return _SECOND_DISAGREEMENT if kinds == {"disagreement"} else _SECOND_FAILURE


def _after_pass(result: CheckResult, *, is_of_cpu: bool) -> str:
    what = "PC" if is_of_cpu else "card"
    if result.origin:
        return (
            f"Do not pay for a {what} because of a file: run the check yourself, or watch it run."
        )
    if result.failed_before:
        return (
            f"The last check of this {what} failed and this one passed, so the error comes and "
            "goes: run the overnight check."
        )
    if result.minutes <= GLANCE_MINUTES:
        return "This was a glance: run the 6-minute check."
    if result.minutes < OVERNIGHT_MINUTES:
        return "Nothing to do. If errors are rare, only the overnight check finds them."
    return f"Nothing to do. Save the record if you sell or keep the {what}."


def _after_nothing(reason: str) -> str:
    return f"Fix this first: {reason.rstrip('.')}. Then run the check again."


# ── an engine that ended ─────────────────────────────────────────────────────────────────────────

# Python itself ends with these: a mistake in this program, and no fault of the device.
_OWN_MISTAKES = (1, 2)
# What a process gets for what it did itself; anybody may send it any other signal. Linux' numbers,
# since the engine may be on another PC: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
_CRASHES = frozenset((4, 5, 6, 7, 8, 11, 31))
# Windows: Ctrl-C or a closed terminal, and a log-off.
_ENDED_BY_WINDOWS = (0xC000013A, 0x40010004)
_LOST_SIGNS = ("GPU is lost", "fallen off the bus", "no CUDA-capable device", "device unavailable")


def loss_finding(
    event: RequestFailed | EngineEnded,
    stage: StageName,
    at_s: float,
    *,
    is_silent: bool,
    has_begun: bool = True,
    step: str = "",
    address: str = "cuda:0",
) -> CheckFinding:
    """Return the finding of an engine that ended during a stage.

    Args:
        event: its last event.
        stage: the stage that was running, or was to run next.
        at_s: seconds since the start of the check.
        is_silent: whether the engine was abandoned because it did not answer.
        has_begun: whether any stage has begun.
        step: what was running, in words; empty if unknown.
        address: PyTorch's name for the device.
    """
    title, is_card = stage_title(stage, address), not is_cpu(address)
    severity: Severity
    if is_silent:
        subject = "card" if is_card else "CPU's check"
        severity, sentence = "error", f"The {subject} stopped answering during “{title}”."
    elif isinstance(event, EngineEnded):
        severity, sentence = _of_process(event, title, is_card=is_card)
    else:
        severity, sentence = _of_failure(event.failure, title, has_begun=has_begun)
    if step:
        sentence = f"{sentence} It was at: {step}."
    is_lost = severity == "error"
    return CheckFinding(
        kind="card_lost" if is_lost else "could_not_run",
        severity=severity, stage=stage, sentence=sentence[:1000], count=int(is_lost), at_s=at_s,
    )  # fmt: skip


def failure_finding(failure: Failure, stage: StageName, at_s: float, address: str) -> CheckFinding:
    """Return the finding of a stage that failed while the engine goes on; see `loss_finding`."""
    event = RequestFailed(failure=failure)
    return loss_finding(event, stage, at_s, is_silent=False, address=address)


def _of_failure(failure: Failure, title: str, *, has_begun: bool) -> tuple[Severity, str]:
    cause = failure.cause or failure.message
    if failure.kind is FailureKind.CUDA_ERROR:
        happened = "was lost" if any(sign in cause for sign in _LOST_SIGNS) else "failed"
        return "error", f"The card {happened} during “{title}”. {cause}"
    return "doubt", f"“{title}” stopped early. {cause}" if has_begun else cause


def _of_process(event: EngineEnded, title: str, *, is_card: bool) -> tuple[Severity, str]:
    code = event.exit_code
    number = _signal_in(code)
    if number == 9:  # SIGKILL, which Windows lacks
        return "doubt", (
            f"The system ended the check during “{title}”, usually because the PC ran out of "
            "memory (RAM)."
        )
    if (number and number not in _CRASHES) or code in _ENDED_BY_WINDOWS:
        return "doubt", (
            f"The system or another program ended the check during “{title}”: somebody may have "
            "logged off, or the PC was short of memory (RAM)."
        )
    if code in _OWN_MISTAKES:
        return "doubt", (
            f"The check's own program ended during “{title}” because of a mistake in it."
        )
    subject = "The card's driver or a library" if is_card else "A library"
    written = "" if code is None else f" (exit code {code})"
    return "error", f"{subject} ended the check during “{title}”{written}."


def _signal_in(exit_code: int | None) -> int:
    """Return the signal that ended a process, as Python or a shell reports it; 0 for none."""
    if exit_code is None:
        return 0
    return -exit_code if exit_code < 0 else exit_code - 128 if 128 < exit_code < 192 else 0
