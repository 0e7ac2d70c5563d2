"""What a device's sensors said at one time, for the window, runs, checks, logs and records."""

from __future__ import annotations

import enum
from typing import Final

import msgspec


class ClockReason(enum.IntFlag):
    """Why a card runs at its present clocks; several reasons can apply at once.

    The numbers are part of saved checks.
    """

    IDLE = 0x001
    APPLICATION = 0x002
    POWER_LIMIT = 0x004
    HARDWARE_SLOWDOWN = 0x008
    OTHER_CARDS = 0x010
    DRIVER_HEAT = 0x020
    HARDWARE_HEAT = 0x040
    POWER_BRAKE = 0x080
    DISPLAY = 0x100


HARDWARE_BRAKES = (
    ClockReason.HARDWARE_SLOWDOWN | ClockReason.HARDWARE_HEAT | ClockReason.POWER_BRAKE
)
_BRAKES = HARDWARE_BRAKES | ClockReason.DRIVER_HEAT
# Everything that slows a card down. The power limit is among it, although that one is normal.
HELD_BACK = ClockReason.POWER_LIMIT | _BRAKES
_WORDS = {
    ClockReason.IDLE: "idle", ClockReason.APPLICATION: "set by an application",
    ClockReason.POWER_LIMIT: "at the power limit",
    ClockReason.HARDWARE_SLOWDOWN: "hardware slowdown",
    ClockReason.OTHER_CARDS: "in sync with other cards", ClockReason.DRIVER_HEAT: "hot (driver)",
    ClockReason.HARDWARE_HEAT: "hot (hardware)", ClockReason.POWER_BRAKE: "power brake",
    ClockReason.DISPLAY: "set by the display",
}  # fmt: skip
_LOWEST_CLOCK_SHARE = 0.75


def clock_reason_words(reasons: ClockReason | None) -> str | None:
    """Return the reasons for the current clocks, in words; None if the card reports none."""
    if reasons is None:
        return None
    return _words(reasons) or "not held back"


def held_back_words(reasons: ClockReason) -> str:
    """Return the reasons that hold a card back, in words; empty if there are none."""
    return _words(reasons & HELD_BACK)


def is_throttled(
    reasons: ClockReason | None, sm_clock_mhz: float | None, base_clock_mhz: float | None
) -> bool | None:
    """Return whether a card is slowing itself down; None if it reports neither reason nor clock.

    Heat and a hardware slowdown count, and so does a clock under 75 % of the base clock. The
    highest boost clock is no standard, because laptops and old cards always stay below it. The
    power limit alone does not count either: a busy card is meant to reach it (`is_power_capped`).

    Args:
        reasons: what sets the clocks.
        sm_clock_mhz: the clock under load.
        base_clock_mhz: the base clock the card is sold with; None if unknown.
    """
    signs = []
    if reasons is not None:
        signs.append(bool(reasons & _BRAKES))
    if sm_clock_mhz is not None and base_clock_mhz:
        signs.append(sm_clock_mhz < _LOWEST_CLOCK_SHARE * base_clock_mhz)
    return any(signs) if signs else None


def is_power_capped(reasons: ClockReason | None) -> bool | None:
    """Return whether the power limit sets a card's clock; None if the card does not report it."""
    return None if reasons is None else bool(reasons & ClockReason.POWER_LIMIT)


def _words(reasons: ClockReason) -> str:
    return ", ".join(word for reason, word in _WORDS.items() if reasons & reason)


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
