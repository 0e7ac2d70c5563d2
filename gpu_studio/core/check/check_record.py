"""The record of a check: its result, to keep as JSON, to save in a picture, and to open again.

It has nothing that identifies you, your PC, or this copy of the card, beyond the last characters of
its UUID. A record comes back from strangers: only the JSON in their file is read.
"""

from __future__ import annotations

import hashlib
import io
import re
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.check.check_verdict import next_action, result_sentence
from gpu_studio.core.check.stages import round_count
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import known_card, silicon_text
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.devices.facts import resizable_bar_text
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import (
    MOST_FINDINGS,
    MOST_STAGES,
    CheckedDevice,
    CheckFinding,
    CheckVerdict,
    MemoryCoverage,
    MemoryRates,
    PlantKind,
    Severity,
    ShortText,
    StageName,
    StageOutcome,
)
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Amount,
    Count,
    PositiveCount,
    Seconds,
)
from gpu_studio.core.pause import Pauses  # noqa: TC001  # msgspec reads it
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES, decode_record_of
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.units import format_count
from gpu_studio.core.user_file import SilentDriveError, UnusableFileError, read_part, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpu_studio.core.messages.engine_messages import TorchCard

SCHEMA = 1
MOST_INTERRUPTIONS = 1000
MOST_SPANS = 1000
MOST_READINGS = 400
"""A picture has hardly more columns, and a record stays small."""
CHUNK = "gpu-studio-check"
"""The keyword of the picture's text chunk."""
RECORD_ENDINGS = (".png", ".json")
LARGEST_FILE_BYTES = 8 << 20
_HEAD_BYTES = 1 << 16
_FINGERPRINT_DIGITS = 16
_LONGEST_ORIGIN = 100


_RECORDED = (
    "temperature_c", "hotspot_c", "memory_temperature_c", "sm_clock_mhz", "power_w",
)  # fmt: skip
"""What a record has of each reading."""


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
    if the card reports none. ``memory_rates`` is the largest loss of bandwidth of all rounds.
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
    memory_rates: MemoryRates | None = None
    interruptions: Annotated[tuple[Interruption, ...], Meta(max_length=MOST_INTERRUPTIONS)] = ()
    pauses: Pauses = ()
    readings: Annotated[tuple[Telemetry, ...], Meta(max_length=MOST_READINGS)] = ()
    spans: Annotated[tuple[StageSpan, ...], Meta(max_length=MOST_SPANS)] = ()
    program: ShortText = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a contradiction, and for a reading that no device has."""
        verdicts = {stage.name: stage.verdict for stage in self.stages}
        if len(verdicts) < len(self.stages):
            message = "it has a stage twice"
            raise ValueError(message)
        for finding in self.of("error"):
            if verdicts.get(finding.stage) != "failed":
                message = f"it has an error in the stage “{finding.stage}”, which did not fail"
                raise ValueError(message)
        if not all(one.is_possible for one in self.readings):
            message = "a sensor's number is impossible"
            raise ValueError(message)

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

    def of(self, severity: Severity) -> list[CheckFinding]:
        """Return the findings of a severity."""
        return [finding for finding in self.findings if finding.severity == severity]


class _Claim(msgspec.Struct, frozen=True):
    verdict: str = ""


def encode_record(record: CheckRecord) -> bytes:
    """Return a record as JSON, with what follows from it for those who read it elsewhere."""
    follows = {
        "verdict": record.verdict, "sentence": record.sentence, "next_action": record.next_action,
    }  # fmt: skip
    return msgspec.json.encode(msgspec.to_builtins(record) | follows)


def decode_record(text: bytes, name: str = "") -> CheckRecord:
    """Return the record in a JSON text, which may come from a stranger; see `decode_record_of`.

    Its parts are compared with the card's name once more, as a text is easily changed.
    """

    def refused(reason: str) -> StudioError:
        sentence = f"{name or 'This'} is not the record of a check: {reason}."
        return StudioError(FailureKind.FILE_REFUSED, sentence)

    record = decode_record_of(CheckRecord, text, SCHEMA, refused, name)
    claimed = msgspec.json.decode(text, type=_Claim).verdict
    if claimed not in ("", record.verdict):
        reason = f"it says “{plain_text(claimed)[:20]}”, but its stages say “{record.verdict}”"
        raise refused(reason)
    return msgspec.structs.replace(record, device=_identified(record.device))


def _identified(device: CheckedDevice) -> CheckedDevice:
    """Return a device that admits a chip or a compute capability that its name does not have."""
    found = re.fullmatch(r".* \(([0-9a-f]{4})\)", device.silicon)
    card = Device(
        kind="cuda", name=device.name, compute_capability=device.compute_capability,
        pci_device_id=int(found[1], 16) if found else None,
    )  # fmt: skip
    contradiction = identity_of(card, None).contradiction if not is_cpu(device.address) else ""
    if device.contradiction or not contradiction:
        return device
    return msgspec.structs.replace(device, contradiction=contradiction, agreement="")


def read_record(path: Path, is_over: Callable[[], bool] = lambda: False) -> CheckRecord:
    """Return the record in a picture or a JSON file, with its origin.

    Args:
        path: the file.
        is_over: returns whether the record is no longer needed.

    Raises:
        StudioError: the file has none, or it is damaged, too large, or from a newer version.
    """
    name = file_name(path)
    try:
        content = read_user_file(path, LARGEST_FILE_BYTES, is_over)
    except UnusableFileError as error:
        raise _refused(name, str(error)) from error
    text: bytes | None = content
    if content.startswith(PNG_HEAD):
        text = png_text(io.BytesIO(content), CHUNK.encode(), LARGEST_RECORD_BYTES)
    if text is None:
        raise _refused(name, "it has no record of a check inside")
    return msgspec.structs.replace(decode_record(text, name), origin=name[:_LONGEST_ORIGIN])


def has_record(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a picture has the record of a check; reads only its beginning.

    Raises:
        SilentDriveError: as `read_part`; any other file that cannot be read has none.
    """
    try:
        head = read_part(path, lambda file: file.read(_HEAD_BYTES), is_over)
    except SilentDriveError:
        raise
    except UnusableFileError:
        return False
    return head.startswith(PNG_HEAD) and CHUNK.encode() + b"\0" in head


def _refused(name: str, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{name} cannot be opened: {reason}.")


def reading_of(at_s: float, vitals: Telemetry) -> Telemetry | None:
    """Return what a record has of a reading; None if it has nothing of a curve."""
    values = {name: getattr(vitals, name) for name in _RECORDED}
    known = {name: round(value, 1) for name, value in values.items() if value is not None}
    return Telemetry(at_s=round(at_s, 1), **known) if known else None


def thinned(readings: Sequence[Telemetry]) -> tuple[Telemetry, ...]:
    """Return at most `MOST_READINGS` of a check's readings, in their order.

    If there are more, each span of the check keeps two: the hottest, and the one with the lowest
    clock. So no peak and no drop is lost, and no value is a mean that the card never reported.
    """
    if len(readings) <= MOST_READINGS:
        return tuple(readings)
    spans, first_s = MOST_READINGS // 2, readings[0].at_s
    span_s = max(readings[-1].at_s - first_s, 1.0) / (spans - 1)
    kept: list[Telemetry] = []
    for _, group in groupby(readings, lambda one: (one.at_s - first_s) // span_s):
        those = list(group)
        hottest = max(those, key=lambda one: one.temperature_c or 0.0)
        slowest = min(those, key=_clock)
        one_or_two = (hottest,) if hottest is slowest else (hottest, slowest)
        kept += sorted(one_or_two, key=lambda one: one.at_s)
    return tuple(kept)


def _clock(reading: Telemetry) -> float:
    return float("inf") if reading.sm_clock_mhz is None else reading.sm_clock_mhz


def fingerprint_of(uuid: str | None) -> str:
    """Return a name for this copy of a card that cannot be turned back into its UUID.

    Args:
        uuid: PyTorch's name of the card; None for the CPU.
    """
    if uuid is None:
        return CPU
    return hashlib.sha256(uuid.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def checked_card(card: Device, address: str, torch_card: TorchCard | None = None) -> CheckedDevice:
    """Return the facts of a card that the driver and its name have.

    Args:
        card: the card.
        address: PyTorch's name for it.
        torch_card: as for `identity_of`.
    """
    identity, known = identity_of(card, torch_card), known_card(card.name)
    return CheckedDevice(
        address=address,
        name=card.name,
        silicon=silicon_text(card),
        contradiction=identity.contradiction,
        agreement=identity.agreement,
        vbios=card.vbios,
        compute_capability=card.compute_capability,
        memory_total_bytes=card.memory_total_bytes,
        driver_version=card.driver_version,
        power_limit_w=card.telemetry.power_limit_w,
        shutdown_c=card.shutdown_c,
        slowdown_c=card.slowdown_c,
        operating_max_c=card.operating_max_c,
        base_clock_mhz=card.sm_clock_base_mhz or (known.base_clock_mhz if known else None),
        resizable_bar=resizable_bar_text(card) or "",
    )


def ecc_text(card: Device) -> str:
    """Return what one of NVIDIA's cards says of its memory's error correction, as sentences."""
    if card.ecc_enabled is None:
        text = "The card reports no ECC memory. GeForce cards usually have none."
    elif card.ecc_enabled:
        text = "The memory has ECC, and it is on: the card counts and corrects errors itself."
    else:
        text = "The memory has ECC, but it is off."
    rows, is_pending = card.telemetry.remapped_rows, card.telemetry.has_pending_remap
    if rows is None:
        return f"{text} It reports no replaced rows of its memory."
    noun = "row" if rows == 1 else "rows"
    text += f" It has replaced {format_count(rows)} {noun} of its memory so far"
    return f"{text}, and waits for a restart to replace more." if is_pending else f"{text}."
