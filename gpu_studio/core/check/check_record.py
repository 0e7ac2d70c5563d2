"""The record of a check: its result as JSON, to keep, to save as a picture, and to open again.

It has nothing that identifies you, your PC, or this copy of the card, unless you ask for it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.check.readings import MOST_READINGS, RecordedReading
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import (
    MOST_FINDINGS,
    MOST_STAGES,
    CheckedDevice,
    CheckFinding,
    CheckVerdict,
    LoadSteps,
    MemoryCoverage,
    MemoryRates,
    PlantKind,
    ShortText,
    StageName,
    StageOutcome,
    Text,
)
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Amount,
    Count,
    PositiveCount,
    Seconds,
)
from gpu_studio.core.pause import Pauses  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.record_json import decode_record_of

SCHEMA = 1
MOST_SPANS = 1000
MOST_INTERRUPTIONS = 1000


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """A check that ended without its program's consent, found at the next start.

    ``after_s`` is the time since the start of the check, up to a minute too short.
    ``is_restart``: the PC itself started again in between; otherwise only the program ended.
    """

    after_s: Seconds
    is_restart: bool


class StageSpan(msgspec.Struct, frozen=True, kw_only=True):
    """When a stage ran, in seconds since the start of the check, without interruptions."""

    name: StageName
    round: PositiveCount = 1
    start_s: Seconds
    end_s: Seconds


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


class CheckRecord(CheckFigures, frozen=True, kw_only=True):
    """A whole check.

    ``started_at`` is ISO 8601, ``minutes`` the chosen length, ``seconds`` the time really spent.
    ``highest_temperature_c`` and ``lowest_clock_mhz`` are those of the load stage and later, None
    if the card reports none. ``largest_hotspot_gap_c`` is the largest gap of the hot spot over the
    chip's temperature while that was steady, see `hot_spot.steady_gap_c`. ``readings`` are the
    curves of the check, ``spans`` the times of its stages; an older program wrote none.
    ``load_steps`` is the table of the load in steps over all rounds, ``memory_rates`` the largest
    loss of bandwidth of all rounds.
    ``uuid`` and ``serial`` are only there if you asked for them.
    """

    schema: int = SCHEMA
    device: CheckedDevice
    started_at: ShortText
    minutes: PositiveCount
    seconds: Seconds
    rounds: Count
    stages: Annotated[tuple[StageOutcome, ...], Meta(max_length=MOST_STAGES)]
    findings: Annotated[tuple[CheckFinding, ...], Meta(max_length=MOST_FINDINGS)] = ()
    verdict: CheckVerdict
    sentence: Text
    next_action: Text
    planted: PlantKind | None = None
    is_stopped: bool = False
    readings: Annotated[tuple[RecordedReading, ...], Meta(max_length=MOST_READINGS)] = ()
    spans: Annotated[tuple[StageSpan, ...], Meta(max_length=MOST_SPANS)] = ()
    program: ShortText = ""
    uuid: ShortText | None = None
    serial: ShortText | None = None

    @property
    def has_tested(self) -> bool:
        """Whether any stage tested anything."""
        return any(stage.has_tested for stage in self.stages)

    @property
    def errors(self) -> int:
        """The errors of all stages."""
        return sum(stage.errors for stage in self.stages)


def encode_record(record: CheckRecord) -> bytes:
    """Return a record as JSON."""
    return msgspec.json.encode(record)


def decode_record(text: bytes, name: str = "") -> CheckRecord:
    """Return the record in a JSON text, which may come from a stranger; see `decode_record_of`."""

    def refused(reason: str) -> StudioError:
        sentence = f"{name or 'This'} is not the record of a check: {reason}."
        return StudioError(FailureKind.FILE_REFUSED, sentence)

    return decode_record_of(CheckRecord, text, SCHEMA, refused, name)
