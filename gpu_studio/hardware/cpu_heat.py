"""The CPU's sensors for a check: heat, clock, and whether it slows itself down."""

from __future__ import annotations

from pathlib import Path

import psutil

from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.messages.check_messages import CheckedDevice, Vitals
from gpu_studio.hardware.cpu import clock_mhz, critical_c, temperature_c

_CPUS = Path("/sys/devices/system/cpu")
# Intel's count of how often the hardware lowered the clock because of heat, for each core and for
# the whole chip (Linux, drivers of the kernel).
_COUNTERS = "cpu[0-9]*/thermal_throttle/*_throttle_count"


class CpuHeat:
    """Reads the CPU; a counter that rose since the last reading is a brake."""

    def __init__(self, cpus: Path = _CPUS) -> None:
        self._cpus = cpus
        self._last: int | None = None

    def read(self) -> Vitals | None:
        """Return one reading; None if the system reports neither heat nor clock nor brakes."""
        degrees, clock, reasons = temperature_c(), clock_mhz(), self._reasons()
        if degrees is None and clock is None and reasons is None:
            return None
        return Vitals(temperature_c=degrees, sm_clock_mhz=clock, clock_event_reasons=reasons)

    def _reasons(self) -> ClockReason | None:
        counts = [_count(path) for path in self._cpus.glob(_COUNTERS)]
        known = [count for count in counts if count is not None]
        if not known:
            return None
        before, self._last = self._last, sum(known)
        has_risen = before is not None and self._last > before
        return ClockReason.HARDWARE_HEAT if has_risen else ClockReason(0)


def checked_cpu(address: str) -> CheckedDevice:
    """Return what the system says of the CPU, for the record; its name is left to others."""
    return CheckedDevice(
        address=address, name=address, slowdown_c=critical_c(), is_laptop=_has_battery()
    )


def _has_battery() -> bool:
    try:
        return psutil.sensors_battery() is not None
    except (AttributeError, OSError, RuntimeError):
        return False  # not on every system


def _count(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
