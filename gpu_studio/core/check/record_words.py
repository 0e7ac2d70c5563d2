"""The record of a check in words: the same facts in the window, in a picture and on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check.hot_spot import USUAL_GAP
from gpu_studio.core.check.plants import PLANTED_MARK, planted_fault
from gpu_studio.core.check.stages import OVERNIGHT_MINUTES
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_bytes, format_count, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.messages.check_messages import CheckVerdict, MemoryCoverage

TITLE = "Record of a check"
VERDICT_WORDS: dict[CheckVerdict, str] = {
    "passed": "Passed",
    "failed": "Failed",
    "inconclusive": "Inconclusive",
    "partial": "Partial",
    "skipped": "Skipped",
}
_NOT_REPORTED = "not reported by this card"
_NOT_REPORTED_BY_PC = "not reported by this PC"


class RecordFact(NamedTuple):
    """A line of a record."""

    title: str
    value: str


def errors_text(count: int) -> str:
    """Return a number of errors: ``0 errors``, ``1 error``."""
    return f"{format_count(count)}\u202f{'error' if count == 1 else 'errors'}"


def length_text(minutes: int) -> str:
    """Return the chosen length of a check: ``6 minutes``."""
    if minutes == OVERNIGHT_MINUTES:
        return "Overnight (8 hours)"
    return f"{minutes} minute{'s' * (minutes != 1)}"


def clock_text(seconds: float) -> str:
    """Return a time as a clock shows it: ``3:11``, ``1:02:03``."""
    hours, rest = divmod(round(seconds), 3600)
    minutes, whole = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"


def started_text(record: CheckRecord) -> str:
    """Return the day and the time at which a check began, by the clock of its PC."""
    return record.started_at[:16].replace("T", " ")


def coverage_text(coverage: MemoryCoverage) -> str:
    """Return how much memory was tested: ``1.37 GiB of 1.86 GiB free``."""
    return f"{format_bytes(coverage.tested_bytes)} of {format_bytes(coverage.free_bytes)} free"


def coverage_share(coverage: MemoryCoverage) -> float:
    """Return the tested share of the memory that was free, 0 to 1."""
    return min(coverage.tested_bytes / coverage.free_bytes, 1.0) if coverage.free_bytes else 0.0


def planted_text(record: CheckRecord) -> str:
    """Return the mark of a record with a fault made on purpose; empty for any other."""
    if record.planted is None:
        return ""
    return f"{PLANTED_MARK} The fault: {planted_fault(record.planted).does}"


def record_facts(record: CheckRecord) -> tuple[RecordFact, ...]:
    """Return the facts of a record, the device first."""
    return (*_device_facts(record), *_check_facts(record))


def _device_facts(record: CheckRecord) -> Iterator[RecordFact]:
    device = record.device
    is_card = not is_cpu(device.address)
    yield RecordFact("Card" if is_card else "Processor", device.name)
    if is_card:
        yield RecordFact("Chip", device.silicon or "unknown")
        agrees = "they agree" if device.silicon else "not compared: the chip is unknown"
        yield RecordFact("Name and chip", device.contradiction or agrees)
        yield RecordFact("VBIOS", device.vbios or _NOT_REPORTED)
        yield RecordFact("Driver", device.driver_version or _NOT_REPORTED)
    if device.memory_total_bytes is not None:
        title = "Video memory" if is_card else "RAM"
        yield RecordFact(title, format_bytes(device.memory_total_bytes))
    if device.ecc:
        yield RecordFact("Error correction", device.ecc)
    yield RecordFact("PyTorch", device.torch_version)
    if record.uuid is not None:
        yield RecordFact("UUID", record.uuid)
    if record.serial is not None:
        yield RecordFact("Serial number", record.serial)


def _check_facts(record: CheckRecord) -> Iterator[RecordFact]:
    yield RecordFact("Started", started_text(record))
    rounds = f", {record.rounds} rounds" if record.rounds > 1 else ""
    yield RecordFact(
        "Length", f"{length_text(record.minutes)}; ran for {clock_text(record.seconds)}{rounds}"
    )
    if record.coverage is not None and is_cpu(record.device.address):
        tested = format_bytes(record.coverage.tested_bytes)
        yield RecordFact("Memory tested", f"{tested} of this program's own RAM")
    elif record.coverage is not None:
        share = format_percent(coverage_share(record.coverage))
        yield RecordFact("Memory tested", f"{coverage_text(record.coverage)} ({share})")
    yield from _sensor_facts(record)
    yield RecordFact("Errors", errors_text(record.errors))
    for stop in record.interruptions:
        what = "The PC restarted" if stop.is_restart else "The program ended"
        yield RecordFact("Interruption", f"{what} after {clock_text(stop.after_s)}")


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
    return missing if value is None else f"{value:.0f}\u202f{unit}"
