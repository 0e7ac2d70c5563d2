"""What a device's sensors said at one time, for the window, runs, checks, logs and records."""

from __future__ import annotations

from typing import Final

import msgspec

from gpu_studio.core.clock_reasons import ClockReason  # noqa: TC001  # msgspec reads it

_LARGEST_NUMBER = 1e100  # the difference of two of them is still a number, which a plot needs


class Telemetry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reading of a device's sensors; None means "not reported", or not asked for.

    ``hotspot_c`` is the hottest place of a card's chip, ``temperature_c`` the chip's own average.
    ``sm_clock_mhz`` of a CPU is the clock of its fastest core. ``at_s`` is the time since the
    beginning of the log that has the reading; 0 outside of one.
    """

    at_s: float = 0.0
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    hotspot_c: float | None = None
    memory_temperature_c: float | None = None
    fan_percent: float | None = None
    fan_rpm: float | None = None
    utilization_percent: float | None = None
    memory_utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    pstate: int | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    clock_event_reasons: ClockReason | None = None
    # Counters, which only a check reads.
    pcie_replays: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    remapped_rows: int | None = None
    has_pending_remap: bool | None = None

    @property
    def is_possible(self) -> bool:
        """Whether no number is negative or endless; one that a stranger wrote may be."""
        numbers = (number for number in msgspec.structs.astuple(self) if number is not None)
        return all(0 <= number <= _LARGEST_NUMBER for number in numbers)

    def at(self, seconds: float) -> Telemetry:
        """Return the same reading with its time in a log."""
        return msgspec.structs.replace(self, at_s=seconds)


COUNTERS: Final = (
    "pcie_replays", "ecc_corrected", "ecc_uncorrected", "remapped_rows", "has_pending_remap",
)  # fmt: skip
SENSORS: Final = tuple(
    name for name in Telemetry.__struct_fields__ if name not in ("at_s", *COUNTERS)
)
"""The fields that are read once a second, and the columns of a log."""
HEAT: Final = (
    "temperature_c", "hotspot_c", "memory_temperature_c", "sm_clock_mhz", "memory_clock_mhz",
    "power_w", "fan_percent", "utilization_percent", "clock_event_reasons",
)  # fmt: skip
"""What is read once a second during a load. The traffic of the PCIe bus takes 40 ms to read."""
CHECKED: Final = (*HEAT, "pcie_generation", "pcie_width", "power_limit_w", *COUNTERS)
"""What a check reads once a second."""
