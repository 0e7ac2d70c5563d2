"""The messages between window and engine about the check of a card.

A check has rounds, and `RunCheck` asks for one: a short check has one round, an overnight check
many. The answer is a `CheckStarted`, then for each stage a `CheckStageBegan`, any number of
`CheckProgressed`, `CheckVitalsRead` and `CheckFindingMade`, and a `CheckStageFinished`. A
`CheckRoundFinished` is the last event. If the card ends the engine, `RequestFailed` or
`EngineEnded` comes instead, and `core.check.check_run` turns it into the result of the stage.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.message import (
    Amount,
    Bytes,
    Event,
    LastEvent,
    Message,
    PositiveCount,
    Request,
    Seconds,
)
from gpu_studio.core.telemetry import Telemetry  # noqa: TC001  # msgspec reads it
from gpu_studio.core.units import counted

StageName = Literal["load", "steps", "compute", "layouts", "memory", "link", "cool"]
"""Older records have ``steps`` and ``cool``: today they are parts of ``load`` and ``memory``."""
STAGE_NAMES: tuple[StageName, ...] = ("load", "compute", "layouts", "memory", "link")
"""In the order in which they run: heat first, so that a weak card is tested hot."""
MOST_STAGES = len(get_args(StageName))
"""Of a record, an older one included."""

CheckVerdict = Literal["passed", "failed", "inconclusive", "partial", "skipped"]
"""Passed: no error in all that was to be tested. Failed: at least one error. Inconclusive: no
error, but something makes the result doubtful. Partial: no error, but not everything was tested.
Skipped: nothing was tested. Only a stage can be skipped, never a whole check."""

PlantKind = Literal[
    "bit", "stuck", "swap", "drop", "slow", "throttle", "hot", "late_heat", "edge", "slow_memory"
]
"""The faults that a check can make on purpose, and ``slow`` of older records."""

FindingKind = Literal[
    "wrong_result",  # differs from the exact result
    "unstable_result",  # of older records: differs from the card's own earlier result
    "wrong_order",  # an indexed access reached the wrong place
    "disagreement",  # PyTorch and the card disagree about an operation
    "wrong_bits",  # the memory returned other bits than were written
    "wrong_copy",  # a copy over the link arrived changed
    "card_lost",  # the card or its driver ended or blocked the engine
    "not_repeatable",  # of older records: the card's results always differ
    "blind",  # the detector does not see an error that was put there on purpose
    "throttled",  # heat or power slows the card down
    "overheated",  # at or over a limit of the card
    "heat_unknown",  # the temperature went away, or stayed the same where it cannot
    "not_cooling",  # the temperature does not fall while the card rests
    "low_clock",  # under 75 % of the base clock, or half of the card's own clock before
    "slow_memory",  # the memory is slower when hot, at the same clock
    "fan_stopped",  # a fan that stands still on a hot card
    "slow_sample",  # of older records: one step takes much longer, each time
    "slow_link",  # copies are much slower than the link allows
    "link_errors",  # the PCIe replay counter rose
    "memory_spilled",  # "video memory" that is slow as RAM: the driver moved it there
    "ecc_errors",  # the card itself counted memory errors
    "narrow_link",  # fewer lanes or an older generation than the card supports
    "hotspot_gap",  # the hottest place of the chip is far above the chip's average
    "hot_memory",  # the memory is hot
    "could_not_run",  # a part could not run here
    "nothing_right",  # no result of a stage was right: more likely the software than the chip
]
"""What a finding is about."""

Severity = Literal["error", "doubt", "note"]
"""An error fails its stage; a doubt makes it inconclusive; a note changes nothing."""

MOST_FINDINGS = 1000
Fraction = Annotated[float, Meta(ge=0, le=1)]
Text = Annotated[str, Meta(max_length=1000)]
ShortText = Annotated[str, Meta(max_length=100)]


class RunCheck(Request, frozen=True, kw_only=True):
    """Ask for one round of a check.

    ``round_s`` is the time of a whole round with all stages; each stage has its share of it
    (`core.check.stages`), even if ``stages`` names only some. ``plant`` is a fault made on
    purpose; all results of this round are then marked as planted.
    """

    device: str
    stages: tuple[StageName, ...] = STAGE_NAMES
    round_s: Seconds
    round: PositiveCount = 1
    plant: PlantKind | None = None


class CheckedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The device of a check, without anything that identifies this one copy of it.

    ``uuid_tail`` are the last characters of its UUID: enough to see that two records are of
    different copies, too few to identify one.
    ``silicon`` is the chip by its PCI device id (``GP108 (1d01)``), empty if unknown.
    ``contradiction`` says where the card's name and its parts disagree, empty if they agree.
    ``agreement`` says what agrees with the name, empty if nothing could be compared.
    ``ecc`` is a sentence on the memory's own error correction. ``untested`` is a sentence if nobody
    has run this program on such a card. ``is_laptop``: the PC has a battery. ``is_software``: it is
    an adapter that computes on the CPU. None means "not reported".
    """

    address: str
    name: ShortText
    silicon: ShortText = ""
    contradiction: Text = ""
    agreement: Text = ""
    vbios: ShortText | None = None
    driver_version: ShortText | None = None
    torch_version: ShortText = ""
    compute_capability: ShortText | None = None
    memory_total_bytes: Bytes | None = None
    shutdown_c: Amount | None = None
    slowdown_c: Amount | None = None
    operating_max_c: Amount | None = None
    base_clock_mhz: Amount | None = None
    power_limit_w: Amount | None = None
    ecc: Text = ""
    uuid_tail: ShortText = ""
    untested: Text = ""
    is_laptop: bool = False
    is_software: bool = False

    @property
    def is_of_cpu(self) -> bool:
        """Whether the CPU does its work, itself or as a software adapter."""
        return self.is_software or is_cpu(self.address)


class MemoryCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much memory a check tested, in bytes.

    ``free_bytes`` were free at the start of the stage, ``reserve_bytes`` of them stay untouched,
    and ``tested_bytes`` were written and read with every pattern.
    """

    tested_bytes: Bytes
    free_bytes: Bytes
    total_bytes: Bytes
    reserve_bytes: Bytes

    def __post_init__(self) -> None:
        """Raise ValueError for more tested memory than there is."""
        if self.tested_bytes > self.total_bytes:
            raise ValueError("more memory was tested than there is")


class CheckFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a check found.

    ``count`` is the number of errors: wrong elements, wrong bits, or 1.
    """

    kind: FindingKind
    severity: Severity
    stage: StageName
    sentence: Text
    count: Bytes = 0


class CheckStarted(Event, frozen=True, kw_only=True):
    """A round began.

    ``fingerprint`` tells this copy of the card from another one, and cannot be turned back into
    its UUID; it stays on this PC.
    """

    device: CheckedDevice
    fingerprint: str = ""


class CheckStageBegan(Event, frozen=True, kw_only=True):
    """A stage began; it ends after about ``planned_s``.

    If it has not tested everything once by then, it ends up to `stages.OVERTIME_S` later.
    """

    stage: StageName
    planned_s: Seconds


class CheckProgressed(Event, frozen=True, kw_only=True):
    """The stage's present work.

    ``doing`` says what is running now, ``tested`` what was tested so far, both in words.
    ``errors`` are those of the stage so far. ``coverage`` comes from the memory stage.
    """

    stage: StageName
    fraction: Fraction
    doing: Text
    tested: Text
    errors: Bytes = 0
    elapsed_s: Seconds = 0.0
    coverage: MemoryCoverage | None = None


class CheckVitalsRead(Event, frozen=True, kw_only=True):
    """The card's sensors; ``elapsed_s`` is the time since the start of the round."""

    elapsed_s: Seconds
    vitals: Telemetry

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that no device has: the engine may be another PC's."""
        if not self.vitals.is_possible:
            message = "a sensor's number is impossible"
            raise ValueError(message)


class CheckFindingMade(Event, frozen=True, kw_only=True):
    """The check found something."""

    finding: CheckFinding


class CheckStageFinished(Event, frozen=True, kw_only=True):
    """A stage ended: at its end, or because the user stopped it."""

    stage: StageName
    verdict: CheckVerdict
    tested: Text
    errors: Bytes
    seconds: Seconds
    coverage: MemoryCoverage | None = None


class CheckRoundFinished(LastEvent, frozen=True, kw_only=True):
    """The last event of a round; ``is_stopped``: the user ended it early."""

    is_stopped: bool = False


class StageOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One stage at the end of a check, over all rounds."""

    name: StageName
    verdict: CheckVerdict
    tested: Text
    errors: Bytes
    seconds: Seconds

    def __post_init__(self) -> None:
        """Raise ValueError for errors in a stage that did not fail."""
        if self.errors and self.verdict != "failed":
            errors = counted(self.errors, "error")
            message = f"the stage “{self.name}” has {errors}, but says “{self.verdict}”"
            raise ValueError(message)

    @property
    def has_tested(self) -> bool:
        """Whether it tested anything; a stage that could not run is inconclusive or skipped."""
        return bool(self.tested) or self.verdict not in ("inconclusive", "skipped")


class CheckFinished(Message, frozen=True, kw_only=True):
    """The end of a check. ``planted`` is the kind of the fault made on purpose, or null."""

    device: str
    verdict: CheckVerdict
    stages: Annotated[tuple[StageOutcome, ...], Meta(max_length=MOST_STAGES)]
    planted: PlantKind | None
    next_action: Text
