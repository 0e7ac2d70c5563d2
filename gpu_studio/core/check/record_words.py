"""The record of a check in words: the same facts in the window, in a picture and on a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check.check_chart import mark_text
from gpu_studio.core.check.check_verdict import errors_text
from gpu_studio.core.check.heat import USUAL_GAP
from gpu_studio.core.check.plants import PLANTED_MARK, planted_fault
from gpu_studio.core.check.stages import OVERNIGHT_MINUTES, stage_words
from gpu_studio.core.clock_reasons import held_back_words
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.messages.check_messages import STAGE_NAMES
from gpu_studio.core.moments import written_moment
from gpu_studio.core.notice import Tone
from gpu_studio.core.units import (
    clock_text,
    format_bytes,
    format_count,
    format_percent,
    format_rate,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.messages.check_messages import (
        CheckedDevice,
        CheckFinding,
        CheckVerdict,
        MemoryCoverage,
        Severity,
    )

TITLE = "Record of a check"
LIMITS_TITLE = "What this record cannot rule out"
TRUST_TITLE = "Can you rely on this record?"
PROMISE = "It says what was tested on that day. Passing cannot rule out every fault."
VERDICT_WORDS: dict[CheckVerdict, str] = {
    "passed": "Passed",
    "failed": "Failed",
    "inconclusive": "Inconclusive",
    "partial": "Partial",
    "skipped": "Skipped",
}
_NOT_REPORTED = "not reported by this card"
_NOT_REPORTED_BY_PC = "not reported by this PC"
_LONGEST_WRITTEN, _FASTEST = 1e7, 1e15
_LONG_WORD = re.compile(r"\S{32}(?=\S)")


_LISTED_NOWHERE_ELSE = (
    "Its looks, its connectors, its outputs and its fan's noise: look at it and listen to it while "
    "a game runs."
)
_FORGED = (
    "A record can be forged: it is a file that anyone can edit, and GPU Studio does not sign it. "
    "So do not pay because of a file alone."
)
_FRESH = (
    "Ask for a fresh one: the seller starts GPU Studio, opens the Check tab and runs the 6-minute "
    "check while you watch, at the handover or in a video call. Better, run it yourself: the "
    "program is free."
)


FINDING_TONES: dict[Severity, Tone] = {
    "error": Tone.FAILURE, "doubt": Tone.AMBER, "note": Tone.PLAIN,
}  # fmt: skip


class RecordFact(NamedTuple):
    """A line of a record."""

    title: str
    value: str


def breakable(text: str) -> str:
    """Return a text whose longest words can be wrapped: a record may come from a stranger."""
    return _LONG_WORD.sub("\\g<0>\u200b", text)


def length_text(minutes: int) -> str:
    """Return the chosen length of a check: ``6 minutes``."""
    if minutes == OVERNIGHT_MINUTES:
        return "Overnight (8 hours)"
    return f"{minutes} minute{'s' * (minutes != 1)}"


def started_text(record: CheckRecord) -> str:
    """Return the day and the time at which a check began, by the clock of its PC."""
    return record.started_at[:16].replace("T", " ")


def device_line(device: CheckedDevice) -> str:
    """Return a device with its memory: ``GeForce GT 1030, 1.95 GiB``."""
    is_card = not is_cpu(device.address)
    name = device.name.removeprefix("NVIDIA ") if is_card else short_name(device.name)
    if device.memory_total_bytes is None:
        return name
    kind = "" if is_card else " of RAM"
    return f"{name}, {format_bytes(device.memory_total_bytes)}{kind}"


def when_line(record: CheckRecord) -> str:
    """Return when a check began and how long it was: ``November 22, 2026, 14:40 · 6:00 of 6:00``.

    The check may end before its time, if the card is steady soon, or be stopped.
    """
    planned = clock_text(60.0 * record.minutes)
    return f"{written_moment(record.started_at)} · ran {clock_text(record.seconds)} of {planned}"


def record_limits(record: CheckRecord) -> tuple[str, ...]:
    """Return what a record cannot rule out, the most important first."""
    return tuple(_limits(record))


def record_trust(record: CheckRecord) -> tuple[str, ...]:
    """Return how far a record itself can be trusted, and how to get a better one."""
    tail = record.device.uuid_tail
    which = (
        f"The UUID of the checked card ends in {tail}: compare that with what the seller's PC "
        "shows in GPU Studio (Devices, All facts) or prints after “nvidia-smi -L”."
        if tail
        else "It does not say which copy of the card was checked: it has no part of a UUID."
    )
    return (_FORGED, *(() if is_cpu(record.device.address) else (which,)), _FRESH)


def _continued(text: str) -> str:
    """Return a sentence as it reads after a colon; names in capitals keep them."""
    return f"{text[0].lower()}{text[1:]}" if text[1:2].islower() else text


def _limits(record: CheckRecord) -> Iterator[str]:
    address, coverage = record.device.address, record.coverage
    ran = [stage.name for stage in record.stages if stage.has_tested]
    missing = [stage_words(name, address).title for name in STAGE_NAMES if name not in ran]
    if missing:
        yield f"Faults that these stages find, which did not run: {', '.join(missing)}."
    if coverage is not None and coverage.total_bytes > coverage.tested_bytes:
        rest = coverage.total_bytes - coverage.tested_bytes
        kind, why = "memory", "the system and other programs used it, or the check kept it free"
        if is_cpu(address):
            kind, why = (
                "RAM",
                "a check takes a quarter of what is free, or as much as it has time for",
            )
        whole = format_bytes(coverage.total_bytes)
        yield f"Faults in {format_bytes(rest)} of the {whole} of {kind}: {why}."
    if is_cpu(address):
        yield "Everything about the PC's graphics cards: this was a check of its CPU and RAM."
    elif record.highest_hotspot_c is None and record.has_tested:
        yield "Old thermal paste under the chip: this card reported no hot spot."
    for name in ran:
        words = stage_words(name, address)
        yield f"{words.title}: {_continued(words.misses)}"
    if not is_cpu(address):
        yield _LISTED_NOWHERE_ELSE


def coverage_text(coverage: MemoryCoverage) -> str:
    """Return how much memory was tested: ``1.37 GiB of 1.86 GiB free``."""
    return f"{format_bytes(coverage.tested_bytes)} of {format_bytes(coverage.free_bytes)} free"


def coverage_share(coverage: MemoryCoverage) -> float:
    """Return the tested share of the memory that was free, 0 to 1."""
    return min(coverage.tested_bytes / coverage.free_bytes, 1.0) if coverage.free_bytes else 0.0


def origin_text(record: CheckRecord) -> str:
    """Return the mark of a record from a file; empty for one of this PC."""
    if not record.origin:
        return ""
    return f"From the file {record.origin}: GPU Studio cannot know whether it is true."


def planted_text(record: CheckRecord) -> str:
    """Return the mark of a record with a fault made on purpose; empty for any other."""
    if record.planted is None:
        return ""
    return f"{PLANTED_MARK} The fault: {planted_fault(record.planted).does}"


def record_facts(record: CheckRecord) -> tuple[RecordFact, ...]:
    """Return the facts of a record, the device first."""
    return (*device_facts(record.device), *_own_numbers(record), *_check_facts(record))


def identity_text(device: CheckedDevice) -> str:
    """Return whether a card is the one that its name claims, as sentences."""
    unknown = "Not known: this program does not know what a card of this name has."
    return device.contradiction or device.agreement or unknown


def device_facts(device: CheckedDevice) -> Iterator[RecordFact]:
    """Yield what a buyer compares with the card in the hand: name, memory, driver, limits."""
    is_card = not is_cpu(device.address)
    yield RecordFact("Card" if is_card else "Processor", device.name)
    if is_card:
        yield RecordFact("Chip", device.silicon or "unknown")
        yield RecordFact("Is it that card?", identity_text(device))
        yield RecordFact("VBIOS", device.vbios or _NOT_REPORTED)
        yield RecordFact("Driver", device.driver_version or _NOT_REPORTED)
        if device.uuid_tail:
            yield RecordFact("This copy", f"its UUID ends in {device.uuid_tail}")
    if device.memory_total_bytes is not None:
        title = "Video memory" if is_card else "RAM"
        yield RecordFact(title, format_bytes(device.memory_total_bytes))
    if device.resizable_bar:
        yield RecordFact("Resizable BAR", device.resizable_bar)
    if device.ecc:
        yield RecordFact("Error correction", device.ecc)
    yield RecordFact("PyTorch", device.torch_version or "unknown")
    if device.untested:
        yield RecordFact("This check", device.untested)


def _own_numbers(record: CheckRecord) -> Iterator[RecordFact]:
    if record.uuid is not None:
        yield RecordFact("UUID", record.uuid)
    if record.serial is not None:
        yield RecordFact("Serial number", record.serial)


def _check_facts(record: CheckRecord) -> Iterator[RecordFact]:
    yield RecordFact("Started", written_moment(record.started_at, with_zone=True))
    rounds = f", {record.rounds} rounds" if record.rounds > 1 else ""
    yield RecordFact(
        "Length", f"{length_text(record.minutes)}; ran for {clock_text(record.seconds)}{rounds}"
    )
    if record.coverage is not None:
        text = coverage_text(record.coverage)
        share = format_percent(coverage_share(record.coverage))
        own = ", in this program's own RAM" if is_cpu(record.device.address) else ""
        yield RecordFact("Memory tested", f"{text} ({share}){own}")
    elif not record.has_tested:
        yield RecordFact("Tested", "nothing")
    if record.has_tested:
        yield from _sensor_facts(record)
        yield RecordFact("Errors", errors_text(record.errors))
    for stop in record.interruptions:
        what = "The PC restarted" if stop.is_restart else "The program ended"
        yield RecordFact("Interruption", f"{what} after {clock_text(stop.after_s)}")
    for pause in record.pauses:
        yield RecordFact("Interruption", mark_text(pause))


def _sensor_facts(record: CheckRecord) -> Iterator[RecordFact]:
    device = record.device
    missing = _NOT_REPORTED_BY_PC if is_cpu(device.address) else _NOT_REPORTED
    highest = _amount(record.highest_temperature_c, "°C", missing)
    if device.slowdown_c is not None and record.highest_temperature_c is not None:
        highest += f" (slows down at {_amount(device.slowdown_c, '°C')})"
    yield RecordFact("Highest temperature", highest)
    if not is_cpu(device.address):
        yield from _hot_spot_facts(record)
    lowest = _amount(record.lowest_clock_mhz, "MHz", missing)
    if device.base_clock_mhz is not None and record.lowest_clock_mhz is not None:
        lowest += f" (base clock {_amount(device.base_clock_mhz, 'MHz')})"
    yield RecordFact("Lowest clock under load", lowest)
    if record.highest_power_w is not None:
        yield RecordFact("Highest power", _amount(record.highest_power_w, "W"))
    yield from _heat_facts(record)


def _heat_facts(record: CheckRecord) -> Iterator[RecordFact]:
    """Yield what the stages said of steady heat, of brakes, and of the memory's speed."""
    heats = [
        (stage_words(stage.name, record.device.address).title, stage.heat)
        for stage in record.stages
        if stage.heat is not None
    ]
    known = [(title, one) for title, one in heats if one.hottest_c is not None]
    if known:
        title, top = max(known, key=lambda one: one[1].hottest_c or 0.0)
        yield RecordFact("Hottest", f"after {clock_text(top.hottest_at_s or 0.0)}, in “{title}”")
    if heats and not is_cpu(record.device.address):
        yield RecordFact("Fan", "not measured: drivers report the speed that they ask for")
        if record.device.base_clock_mhz is None:
            yield RecordFact("Base clock", "not known: compared with the clock at the beginning")
    for title, heat in heats:
        if heat.is_steady is not None:
            change = f"{heat.change_c:+.1f}\u202f°C" if heat.change_c is not None else ""
            steady = "yes, under 1\u202f°C in a minute" if heat.is_steady else f"not yet: {change}"
            yield RecordFact("Temperature steady", steady.rstrip(": "))
        if heat.brakes:
            brakes = (
                f"{held_back_words(one.reason)} for {clock_text(one.seconds)}"
                for one in heat.brakes
            )
            yield RecordFact(f"Held back, {title}", "; ".join(brakes))
    rates = record.memory_rates
    if rates is not None:
        first, hot = (
            format_rate(min(one.median_bytes_per_s, _FASTEST), "B/s")
            for one in (rates.first, rates.hot)
        )
        yield RecordFact("Speed of the memory", f"{first} first, {hot} when hot")


def _hot_spot_facts(record: CheckRecord) -> Iterator[RecordFact]:
    yield RecordFact("Highest hot spot", _amount(record.highest_hotspot_c, "°C"))
    if record.highest_hotspot_c is not None:
        never = "the temperature was never steady for 10 seconds"
        gap = _amount(record.largest_hotspot_gap_c, "°C", never)
        yield RecordFact("Hot spot over the chip", f"{gap} ({USUAL_GAP})")
    yield RecordFact(
        "Highest memory temperature", _amount(record.highest_memory_temperature_c, "°C")
    )


def _amount(value: float | None, unit: str, missing: str = _NOT_REPORTED) -> str:
    if value is None:
        return missing
    # A record may come from a stranger: no number is longer than a line.
    return f"{value:.0f}\u202f{unit}" if value < _LONGEST_WRITTEN else f"{value:.0e}\u202f{unit}"


class GroupedFinding(NamedTuple):
    """Findings of one kind in one stage; ``details`` are their sentences, each once."""

    severity: Severity
    sentence: str
    times: int
    details: tuple[str, ...]


def finding_lines(
    findings: Iterable[CheckFinding], quoted: CheckFinding | None = None
) -> tuple[GroupedFinding, ...]:
    """Return findings as lines.

    Args:
        findings: all of a check.
        quoted: the one whose sentence stands elsewhere; a line of its own would repeat it.
    """
    groups: dict[tuple[str, str, str], list[CheckFinding]] = {}
    for one in findings:
        groups.setdefault((one.severity, one.kind, one.stage), []).append(one)
    lines = [_line(group) for group in groups.values() if len(group) > 1 or group[0] is not quoted]
    return tuple(sorted(lines, key=lambda line: list(FINDING_TONES).index(line.severity)))


def _line(group: list[CheckFinding]) -> GroupedFinding:
    first = group[0]
    details = tuple(dict.fromkeys(one.sentence for one in group))
    sentence = first.sentence
    if len(details) > 1:
        sentence += f" And {format_count(len(group) - 1)} more like it."
    elif len(group) > 1:
        sentence += f" ({format_count(len(group))} times)"
    return GroupedFinding(first.severity, sentence, len(group), details)
