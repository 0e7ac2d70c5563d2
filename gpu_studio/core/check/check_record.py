"""The record of a check: what was found, and what it may claim from that.

A pass applies to what was tested and to nothing else. A failure first asks for a repetition after a
restart, because a driver in a bad state makes the same errors as a bad card. All of it follows from
the stages and the findings: what a file says of itself is no reason to believe it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.check.stages import (
    GLANCE_MINUTES,
    OVERNIGHT_MINUTES,
    is_enough,
    round_count,
    stage_title,
)
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import UUID_TAIL
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.check_messages import (
    MOST_FINDINGS,
    MOST_STAGES,
    CheckedDevice,
    CheckFinding,
    CheckVerdict,
    FindingKind,
    MemoryCoverage,
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
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.pause import Pauses  # noqa: TC001  # msgspec reads it
from gpu_studio.core.telemetry import Telemetry  # noqa: TC001  # msgspec reads it
from gpu_studio.core.units import counted, format_bytes, format_count, format_percent, is_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpu_studio.core.failure import Failure

SCHEMA = 1
MOST_INTERRUPTIONS = 1000
MOST_SPANS = 1000
MOST_READINGS = 400
"""A picture has hardly more columns, and a record stays small."""
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
_NOTHING_RIGHT = (
    "Restart the PC and run the check again. If nothing is right again, install another version of "
    "the driver or of PyTorch; after that, check the card in another PC."
)
_NOTHING_RIGHT_OF_CPU = "Install another version of PyTorch and run the check again."
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
_CLOSE = f"Close other programs and {_AGAIN}."
_WATCH = f"{_AGAIN}; watch the temperature in another program as well."
_UPDATE = f"Update PyTorch, and {_AGAIN}."
_COOLER = f"Clean the CPU's cooler, see whether it sits firmly, and {_AGAIN}."
# Kinds of doubts, and the next action for a card and for a CPU. The first that applies counts.
_AFTER_DOUBT: tuple[tuple[tuple[FindingKind, ...], str, str], ...] = (
    (("card_lost",), _REPEAT, _REPEAT),
    (("blind", "not_repeatable"), f"Update the driver and PyTorch, and {_AGAIN}.", _UPDATE),
    (("ecc_errors",),
     f"Restart the PC and {_AGAIN}. If the count rises again, replace the card.",
     f"Restart the PC and {_AGAIN}. If the count rises again, replace the RAM."),
    (("memory_spilled",), _MORE_FREE, _CLOSE),
    (("fan_stopped", "throttled", "overheated", "not_cooling"),
     "Clean the card's fan and heat sink, see whether the fan turns and the cooler sits firmly, "
     f"check the PC's air flow, and {_AGAIN}.", _COOLER),
    (("heat_unknown",),
     f"Update the driver, restart the PC and {_WATCH}", f"Restart the PC and {_WATCH}"),
    (("slow_memory",),
     f"Let the card cool, see whether air reaches its memory chips, and {_AGAIN}.", _CLOSE),
    (("low_clock",),
     f"Set the driver's power mode to highest performance, close other programs, and {_AGAIN}.",
     f"Set the system's power mode to highest performance, close other programs, and {_AGAIN}."),
    (("link_errors", "slow_link"),
     "Switch the PC off, reseat the card in the long slot next to the processor, without a riser "
     f"cable, and {_AGAIN}.", _CLOSE),
    (("slow_sample",), _CLOSE, _CLOSE),
    (("could_not_run",),
     f"{_CLOSE} If it stops early again, update the driver and PyTorch.",
     f"{_CLOSE} If it stops early again, update PyTorch."),
)  # fmt: skip


class StageSpan(msgspec.Struct, frozen=True, kw_only=True):
    """When a stage began, in seconds since the start of the check, without interruptions."""

    name: StageName
    round: PositiveCount = 1
    start_s: Seconds


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """A check that ended without its program's consent, found at the next start.

    ``after_s`` is the time since the start of the check, up to a minute too short.
    ``is_restart``: the PC itself started again in between; otherwise only the program ended.
    """

    after_s: Seconds
    is_restart: bool


class CheckRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A whole check: what was checked and found, and what follows from it.

    ``started_at`` is ISO 8601, ``minutes`` the chosen length, ``seconds`` the time really spent.
    ``failed_before``: the check of the same card before this one failed. ``origin`` is the file
    from which a record comes that this PC did not make, empty for its own.
    ``highest_temperature_c`` and ``lowest_clock_mhz`` are those of the load stage and later, None
    if the card reports none.
    ``readings`` are the curves, ``spans`` the times of the stages; an older program wrote none.
    """

    schema: int = SCHEMA
    device: CheckedDevice
    started_at: ShortText
    minutes: PositiveCount
    seconds: Seconds
    rounds: Count
    stages: Annotated[tuple[StageOutcome, ...], Meta(max_length=MOST_STAGES)]
    findings: Annotated[tuple[CheckFinding, ...], Meta(max_length=MOST_FINDINGS)] = ()
    planted: PlantKind | None = None
    is_stopped: bool = False
    failed_before: bool = False
    origin: ShortText = ""
    highest_temperature_c: Amount | None = None
    highest_hotspot_c: Amount | None = None
    highest_memory_temperature_c: Amount | None = None
    lowest_clock_mhz: Amount | None = None
    highest_power_w: Amount | None = None
    coverage: MemoryCoverage | None = None
    interruptions: Annotated[tuple[Interruption, ...], Meta(max_length=MOST_INTERRUPTIONS)] = ()
    pauses: Pauses = ()
    readings: Annotated[tuple[Telemetry, ...], Meta(max_length=MOST_READINGS)] = ()
    spans: Annotated[tuple[StageSpan, ...], Meta(max_length=MOST_SPANS)] = ()
    program: ShortText = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a contradiction, and for what no check and no device has."""
        for contradiction in _contradictions(self):
            raise ValueError(contradiction)

    @property
    def verdict(self) -> CheckVerdict:
        """What the stages say together.

        A restart, an end of the program, and what does not fit the card's name make a check without
        errors inconclusive; without all of its rounds, it is partial.
        """
        verdicts = {stage.verdict for stage in self.stages}
        if "failed" in verdicts:
            return "failed"
        if "inconclusive" in verdicts or self.interruptions or self.device.contradiction:
            return "inconclusive"
        is_complete = self.rounds >= round_count(self.minutes)
        return "passed" if verdicts == {"passed"} and is_complete else "partial"

    @property
    def sentence(self) -> str:
        """The result in a sentence or two; it claims no more than was tested."""
        address = self.device.address
        share = _memory_share(self.coverage, self.device)
        tested = _listed(stage_title(one.name, address) for one in self.stages if one.has_tested)
        if self.verdict == "passed":
            return f"No errors found{share}. Tested: {tested}. Passing cannot rule out every fault."
        if self.verdict == "failed":
            return _failure(self)
        if self.interruptions:
            return interruption_sentence(self.interruptions[-1])
        doubt = next((one.sentence for one in self.of("doubt")), "")
        if not tested:
            return doubt or "Nothing was tested."
        if doubt:
            return f"No errors found, but the result is doubtful. {doubt}"
        if says := self.device.contradiction:
            return f"No errors found, but it is not the card that its name says. {says}"
        return f"No errors found so far{share}, but not everything was tested. Tested: {tested}."

    @property
    def next_action(self) -> str:
        """The one next action."""
        is_of_cpu = self.device.is_of_cpu
        if self.planted is not None:
            return "Run the check again without the fault made on purpose."
        if self.verdict == "failed":
            return _after_failure(self, is_of_cpu=is_of_cpu)
        doubts = self.of("doubt")
        if not self.has_tested and doubts:
            return f"Fix this first: {doubts[0].sentence.rstrip('.')}. Then run the check again."
        if not self.has_tested:
            return "Nothing was tested: run the check again."
        found = {finding.kind for finding in doubts}
        for kinds, for_card, for_cpu in _AFTER_DOUBT:
            if found.intersection(kinds):
                return for_cpu if is_of_cpu else for_card
        if self.interruptions:
            parts = "the CPU's cooler" if is_of_cpu else "the card's power cables"
            if not self.interruptions[-1].is_restart:
                return "If you did not close GPU Studio yourself, run the check again."
            return (
                f"If you did not restart the PC yourself, check the power supply and {parts}. Then "
                "run the check again."
            )
        if self.device.contradiction:
            return _ANOTHER_CARD
        if self.verdict == "passed":
            return _after_pass(self, "PC" if is_of_cpu else "card")
        if self.is_stopped:
            return "Run the check again, and let it finish."
        lacks_memory = self.coverage is not None and not is_enough(self.coverage)
        return _MORE_FREE if lacks_memory and not is_of_cpu else _TOO_SHORT

    @property
    def has_tested(self) -> bool:
        """Whether any stage tested anything."""
        return any(stage.has_tested for stage in self.stages)

    @property
    def errors(self) -> int:
        """The errors of all stages."""
        return sum(stage.errors for stage in self.stages)

    def of(self, severity: Severity) -> list[CheckFinding]:
        """Return the findings of a severity."""
        return [finding for finding in self.findings if finding.severity == severity]


def _contradictions(record: CheckRecord) -> Iterator[str]:
    """Yield why a record cannot be one that this program made."""
    verdicts = {stage.name: stage.verdict for stage in record.stages}
    if len(verdicts) < len(record.stages):
        yield "it has a stage twice"
    for finding in record.of("error"):
        if verdicts.get(finding.stage) != "failed":
            yield f"it has an error in the stage “{finding.stage}”, which did not fail"
    if not all(one.is_possible for one in record.readings):
        yield "a sensor's number is impossible"
    for times in ([one.at_s for one in record.readings], [one.start_s for one in record.spans]):
        if times != sorted(times):
            yield "its times go back"
    if not is_moment(record.started_at):
        yield "it began at a time that there is not"
    if len(record.device.uuid_tail) > UUID_TAIL:
        yield f"it has more of the card's UUID than its last {UUID_TAIL} characters"


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


def worse(first: CheckVerdict | None, second: CheckVerdict) -> CheckVerdict:
    """Return the verdict that counts if a stage ran twice; None has not run before."""
    if first is None:
        return second
    if "skipped" in (first, second) and first != second:
        other = second if first == "skipped" else first
        return "partial" if other == "passed" else other
    return min(first, second, key=_WORST_FIRST.index)


def end_of(result: CheckRecord) -> Notice:
    """Return the largest words of a record, and how good or bad its end is.

    "0 errors", in green, belongs to a pass alone; a pass in a file is neither good nor bad.
    """
    verdict = result.verdict
    if verdict == "failed":
        is_lost = any(one.kind == "card_lost" for one in result.of("error"))
        lost = "Check crashed" if result.device.is_of_cpu else "Card failed"
        is_first = is_lost and result.errors <= 1
        return Notice(lost if is_first else errors_text(result.errors), Tone.FAILURE)
    if not result.has_tested:
        return Notice("Nothing tested", Tone.AMBER)
    if verdict == "passed":
        return Notice(errors_text(0), Tone.PLAIN if result.origin else Tone.GOOD)
    if verdict == "inconclusive":
        return Notice("Interrupted" if result.interruptions else "No clear result", Tone.AMBER)
    return Notice("Stopped early" if result.is_stopped else "Partly tested", Tone.AMBER)


def errors_text(count: int) -> str:
    """Return a number of errors: ``0 errors``, ``1 error``."""
    return f"{format_count(count)}\u202f{'error' if count == 1 else 'errors'}"


# ── sentences ────────────────────────────────────────────────────────────────────────────────────


def _memory_share(coverage: MemoryCoverage | None, device: CheckedDevice) -> str:
    """Return the share of all memory that was tested, in words; empty if none was."""
    if coverage is None or not 0 < coverage.tested_bytes <= coverage.total_bytes:
        return ""
    whole = format_bytes(coverage.total_bytes)
    if device.is_of_cpu:
        return f", with {format_bytes(coverage.tested_bytes)} of {whole} of RAM tested"
    share = format_percent(coverage.tested_bytes / coverage.total_bytes)
    return f", with {share} of all {whole} of video memory tested"


def interruption_sentence(interruption: Interruption) -> str:
    """Return what happened to a check that ended without its program's consent."""
    minutes = int(interruption.after_s // 60)
    when = counted(minutes, "minute") if minutes else "less than a minute"
    what = "The PC restarted" if interruption.is_restart else "The program ended"
    return f"{what} {when} into the check."


def _failure(result: CheckRecord) -> str:
    errors = result.of("error")
    lost = next((one for one in errors if one.kind == "card_lost"), None)
    if lost is not None:
        before = result.errors - lost.count
        were = "error was" if before == 1 else "errors were"
        also = f" Before that, {format_count(before)} {were} found." if before > 0 else ""
        return f"{lost.sentence}{also}"
    if _is_nothing_right(result):
        is_of_cpu = result.device.is_of_cpu
        what, why = ("CPU", "PyTorch") if is_of_cpu else ("card", "the driver or PyTorch")
        return f"Nothing this {what} computed was right: more likely {why} than the {what}."
    first = errors[0].sentence if errors else ""
    if {one.kind for one in errors} == {"disagreement"}:
        return first
    return f"{counted(result.errors, 'error')} found. {first}".strip()


def _is_nothing_right(result: CheckRecord) -> bool:
    return any(one.kind == "nothing_right" and one.stage == "compute" for one in result.findings)


def _listed(titles: Iterable[str]) -> str:
    *before, last = [
        title[0].lower() + title[1:] if title[1:2].islower() else title for title in titles
    ] or [""]
    return f"{', '.join(before)} and {last}" if before else last


# ── the next action ──────────────────────────────────────────────────────────────────────────────


def _after_failure(result: CheckRecord, *, is_of_cpu: bool) -> str:
    if _is_nothing_right(result):
        return _NOTHING_RIGHT_OF_CPU if is_of_cpu else _NOTHING_RIGHT
    if not result.failed_before:
        return _REPEAT
    if is_of_cpu:
        return _SECOND_FAILURE_OF_CPU
    kinds = {finding.kind for finding in result.of("error")}
    return _SECOND_DISAGREEMENT if kinds == {"disagreement"} else _SECOND_FAILURE


def _after_pass(result: CheckRecord, what: str) -> str:
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
    *,
    is_silent: bool = False,
    has_begun: bool = True,
    step: str = "",
    address: str = "cuda:0",
) -> CheckFinding:
    """Return the finding of an engine that ended during a stage, or of a stage that failed in it.

    Args:
        event: its last event.
        stage: the stage that was running, or was to run next.
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
        severity=severity, stage=stage, sentence=sentence[:1000], count=int(is_lost),
    )  # fmt: skip


def _of_failure(failure: Failure, title: str, *, has_begun: bool) -> tuple[Severity, str]:
    cause = failure.cause or failure.message
    if failure.kind is FailureKind.CUDA_ERROR:
        happened = "was lost" if any(sign in cause for sign in _LOST_SIGNS) else "failed"
        return "error", f"The card {happened} during “{title}”. {cause}"
    return "doubt", f"“{title}” stopped early. {cause}" if has_begun else cause


def _of_process(event: EngineEnded, title: str, *, is_card: bool) -> tuple[Severity, str]:
    code = event.exit_code
    signal = 0  # as Python or a shell reports it
    if code is not None:
        signal = -code if code < 0 else code - 128 if 128 < code < 192 else 0
    if (signal and signal not in _CRASHES) or code in _ENDED_BY_WINDOWS:
        return "doubt", (
            f"The system or another program ended the check during “{title}”: the PC may have run "
            "out of memory (RAM), or somebody logged off."
        )
    if code in _OWN_MISTAKES:
        return "doubt", (
            f"The check's own program ended during “{title}” because of a mistake in it."
        )
    subject = "The card's driver or a library" if is_card else "A library"
    written = "" if code is None else f" (exit code {code})"
    return "error", f"{subject} ended the check during “{title}”{written}."
