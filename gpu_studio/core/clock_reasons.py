"""What sets a card's clocks, and when that counts as throttling; the same for every maker."""

from __future__ import annotations

import enum


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
