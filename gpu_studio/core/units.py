"""Numbers as people read them: one place decides every unit on the screen and in the terminal."""

from __future__ import annotations

import math

_THIN = "\u202f"  # narrow no-break space: a number and its unit stay on one line
_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_SI_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def three_digits(value: float) -> str:
    """Return a number with three significant digits and no exponent: 0.273, 27.3, 273, 2730."""
    if not math.isfinite(value):
        return "n/a"
    if value == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    return f"{rounded:.{min(max(decimals, 0), 12)}f}"


def format_duration(seconds: float) -> str:
    """Return a duration with the unit that fits: ``0.273 ms`` or ``12.0 µs``."""
    if not math.isfinite(seconds):
        return "n/a"
    for step, unit in _TIME_STEPS:
        if abs(seconds) >= step:
            return f"{three_digits(seconds / step)}{_THIN}{unit}"
    return f"{three_digits(seconds / 1e-9)}{_THIN}ns" if seconds else f"0{_THIN}s"


def format_bytes(size_bytes: float) -> str:
    """Return a memory size in binary units: ``256 MiB``, ``1.95 GiB``."""
    for step, unit in _BYTE_STEPS:
        if abs(size_bytes) >= step:
            value = size_bytes / step
            digits = f"{value:.0f}" if value == int(value) else three_digits(value)
            return f"{digits}{_THIN}{unit}"
    return f"{size_bytes:.0f}{_THIN}bytes"


def format_rate(per_second: float, unit: str) -> str:
    """Return a rate in decimal units: ``format_rate(48e9, "B/s")`` is ``48.0 GB/s``."""
    for step, prefix in _SI_STEPS:
        if abs(per_second) >= step:
            return f"{three_digits(per_second / step)}{_THIN}{prefix}{unit}"
    return f"{three_digits(per_second)}{_THIN}{unit}"


def format_ratio(ratio: float) -> str:
    """Return a speed-up: ``1.8 ×``, two digits below ten and none of false precision above."""
    if not math.isfinite(ratio) or ratio <= 0:
        return "n/a"
    if ratio >= 100:
        digits = f"{ratio:.0f}"
    elif ratio >= 10:
        digits = f"{ratio:.1f}"
    else:
        digits = f"{ratio:.2g}" if ratio < 1 else f"{ratio:.1f}"
    return f"{digits}{_THIN}×"


def format_percent(share: float) -> str:
    """Return a share of one as a percentage: ``74 %``, ``1.2 %``."""
    if not math.isfinite(share):
        return "n/a"
    percent = 100 * share
    return f"{percent:.0f}{_THIN}%" if abs(percent) >= 10 else f"{percent:.1f}{_THIN}%"


def format_size(size: int) -> str:
    """Return the size of a square workload: ``512 × 512``."""
    return f"{size}{_THIN}×{_THIN}{size}"
