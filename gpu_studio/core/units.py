"""Numbers with their units, and times, as the program shows them."""

from __future__ import annotations

import math
from datetime import datetime, timezone

_THIN = "\u202f"  # narrow no-break space: a number and its unit stay on one line
_LEAST_GROUPED = 10_000
_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_SI_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_MOST_DECIMALS = 12


def three_digits(value: float) -> str:
    """Return a number with three significant digits, or its whole part if that is longer.

    There is no exponent: 0.273, 27.3, 273, 2734.
    """
    return _significant(value, 3)


def format_duration(seconds: float) -> str:
    """Return a duration in the most suitable unit: ``273 µs``, ``12.0 ms``."""
    if not math.isfinite(seconds):
        return "n/a"
    if not seconds:
        return f"0{_THIN}s"
    for step, unit in _TIME_STEPS:
        # 999.96 µs would be rounded to 1000 µs; 1.00 ms is right.
        if abs(seconds) >= 0.9995 * step:
            return f"{three_digits(seconds / step)}{_THIN}{unit}"
    return f"{three_digits(seconds / 1e-9)}{_THIN}ns"


def about_time(seconds: float) -> str:
    """Return an expected time in words: ``about 12 s``, ``about 2 min`` from a minute on."""
    if seconds < 60:
        return f"about {max(math.ceil(seconds), 1)}{_THIN}s"
    return f"about {math.ceil(seconds / 60)}{_THIN}min"


def clock_text(seconds: float) -> str:
    """Return a time as a clock shows it: ``3:11``, ``1:02:03``."""
    hours, rest = divmod(round(seconds), 3600)
    minutes, whole = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"


def format_bytes(size_bytes: float) -> str:
    """Return a memory size in binary units: ``256 MiB``, ``1.95 GiB``."""
    for step, unit in _BYTE_STEPS:
        if abs(size_bytes) >= step:
            value = size_bytes / step
            digits = f"{value:.0f}" if value == int(value) else three_digits(value)
            return f"{digits}{_THIN}{unit}"
    return f"{size_bytes:.0f}{_THIN}bytes"


def format_gib(size_bytes: float, decimals: int = 2) -> str:
    """Return a memory size in GiB, whatever it is, so that sizes can be compared: ``0.41 GiB``."""
    return f"{size_bytes / (1 << 30):.{decimals}f}{_THIN}GiB"


def format_rate(per_second: float, unit: str) -> str:
    """Return a rate in decimal units: ``format_rate(48e9, "B/s")`` is ``48.0 GB/s``."""
    step, prefix = si_step(per_second)
    return f"{three_digits(per_second / step)}{_THIN}{prefix}{unit}"


def si_step(per_second: float) -> tuple[float, str]:
    """Return the decimal step that suits a rate, and its prefix: ``(1e9, "G")``."""
    for step, prefix in _SI_STEPS:
        if abs(per_second) >= 0.9995 * step:
            return step, prefix
    return 1.0, ""


def format_ratio(ratio: float) -> str:
    """Return a speedup with two significant digits, three from ten on: ``1.8 ×``, ``12.3 ×``."""
    if not math.isfinite(ratio) or ratio <= 0:
        return "n/a"
    return f"{_significant(ratio, 3 if ratio >= 10 else 2)}{_THIN}×"


def format_about(ratio: float) -> str:
    """Return an uncertain ratio with one significant digit: ``20 ×``, ``0.05 ×``."""
    if not math.isfinite(ratio) or ratio <= 0:
        return "n/a"
    digit = 10.0 ** math.floor(math.log10(ratio))
    return f"{_significant(round(ratio / digit) * digit, 1)}{_THIN}×"


def format_percent(share: float) -> str:
    """Return a fraction as a percentage: ``74 %``, ``1.2 %``."""
    if not math.isfinite(share):
        return "n/a"
    percent = 100 * share
    return f"{percent:.0f}{_THIN}%" if abs(percent) >= 9.95 else f"{percent:.1f}{_THIN}%"


def format_count(number: int) -> str:
    """Return a whole number with commas between its thousands: ``86,528``."""
    return f"{number:,}"


def format_size(size: int, text: str = "{size} × {size}") -> str:
    """Return a size in its workload's format: ``512 × 512``, ``100,000 bodies``.

    Args:
        size: the number.
        text: a workload's `size_text`, in which ``{size}`` stands for the number.
    """
    number = format_count(size) if size >= _LEAST_GROUPED else str(size)
    return text.replace("{size}", number).replace(" ", _THIN)


def _significant(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "n/a"
    rounded = value
    for _ in range(2):  # 9.996 became 10.00, which has one digit too many
        if rounded == 0:
            return "0"
        decimals = digits - 1 - math.floor(math.log10(abs(rounded)))
        decimals = min(max(decimals, 0), _MOST_DECIMALS)
        rounded = round(value, decimals)
    return f"{rounded:.{decimals}f}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural if needed: ``1 block``, ``1,200 blocks``."""
    return f"{format_count(count)} {noun}" + ("" if count == 1 else "s")


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def local_now() -> str:
    """Return the time by this PC's clock in ISO 8601, to the second, with its zone."""
    return datetime.now(timezone.utc).astimezone().isoformat(timespec="seconds")


def moment_order(kept_at: str) -> tuple[float, str]:
    """Return the sort key of a time in any time zone: seconds since 1970 in UTC, then the text.

    A time without a zone counts as UTC; a text that is not a time comes before all times.
    """
    moment = _moment(kept_at)
    return (-math.inf if moment is None else (moment - _EPOCH).total_seconds()), kept_at


def shown_moment(kept_at: str) -> str:
    """Return a time by this PC's clock, to the minute; a text that is not a time unchanged."""
    moment = _moment(kept_at)
    if moment is not None:
        try:
            return moment.astimezone().isoformat(" ")[:16]
        except (OverflowError, OSError, ValueError):
            pass  # no local time at the ends of the calendar
    return kept_at[:16].replace("T", " ")


def written_moment(kept_at: str, *, with_zone: bool = False) -> str:
    """Return a time as the clock of its own PC showed it: ``November 22, 2026, 14:40``.

    A text that is not a time is returned unchanged. With its zone, it ends with ``(UTC+01:00)``.
    """
    moment = _parsed(kept_at)
    if moment is None:
        return kept_at[:16].replace("T", " ")
    zone = f" (UTC{moment.isoformat()[-6:]})" if with_zone and moment.tzinfo else ""
    return f"{_MONTHS[moment.month - 1]} {moment.day}, {moment.year}, {moment:%H:%M}{zone}"


def is_moment(kept_at: str) -> bool:
    """Return whether a text is a time that there is."""
    return _parsed(kept_at) is not None


def _moment(kept_at: str) -> datetime | None:
    moment = _parsed(kept_at)
    if moment is None:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _parsed(kept_at: str) -> datetime | None:
    try:
        # Python 3.10 does not read the Z for UTC.
        return datetime.fromisoformat(kept_at.removesuffix("Z") + "+00:00" * kept_at.endswith("Z"))
    except ValueError:
        return None
