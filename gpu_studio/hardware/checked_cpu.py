"""Read the CPU for a check."""

from __future__ import annotations

from gpu_studio.core.messages.check_messages import Vitals
from gpu_studio.hardware.cpu import clock_mhz, temperature_c


def read_cpu_vitals() -> Vitals | None:
    """Return one reading of the CPU; None if the system reports neither heat nor clock."""
    degrees, clock = temperature_c(), clock_mhz()
    if degrees is None and clock is None:
        return None
    return Vitals(temperature_c=degrees, sm_clock_mhz=clock)
