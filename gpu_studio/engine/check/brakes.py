"""What held a card back during a stage: heat, power, a fan that stands still, or a low clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.check.thresholds import (
    BRAKED_SHARE,
    DRIVER_HEAT_FROM_S,
    FAN_TURNS_FROM_C,
    HARDWARE_BRAKES_FROM_S,
    LOW_CLOCK_SHARE,
)
from gpu_studio.core.clock_reasons import HARDWARE_BRAKES, ClockReason, held_back_words
from gpu_studio.core.devices.facts import celsius_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.messages.check_messages import Vitals
    from gpu_studio.engine.check.stage import StageBench

_FEWEST_READINGS = 2


def report_brakes(bench: StageBench, base_clock_mhz: float | None = None) -> None:
    """Report what held the card back while it was loaded.

    Args:
        bench: with the readings of the stage.
        base_clock_mhz: the clock that the card is sold with; None if unknown.
    """
    readings = bench.readings
    hardware = _readings_with(readings, lambda one: _has(one, HARDWARE_BRAKES))
    heat = _readings_with(readings, lambda one: _has(one, ClockReason.DRIVER_HEAT))
    slow = _readings_with(readings, lambda one: _is_low(one, base_clock_mhz))
    still = _readings_with(readings, _has_still_fan)
    if _counts(still, readings, HARDWARE_BRAKES_FROM_S):
        _report_fan(bench, still)
    for found, from_s in ((hardware, HARDWARE_BRAKES_FROM_S), (heat, DRIVER_HEAT_FROM_S)):
        if _counts(found, readings, from_s):
            _report_throttling(bench, found)
            return
    if _counts(slow, readings, HARDWARE_BRAKES_FROM_S) and base_clock_mhz:
        lowest = min(one.sm_clock_mhz or 0.0 for _, one in slow)
        bench.report(
            "low_clock", "doubt",
            f"The clock fell to {lowest:.0f} MHz under load, and the card named no reason. Its "
            f"base clock is {base_clock_mhz:.0f} MHz. {_begin_words(slow)}",
        )  # fmt: skip


def _report_throttling(bench: StageBench, found: Sequence[tuple[float, Vitals]]) -> None:
    reasons = ClockReason(0)
    for _, one in found:
        reasons |= one.clock_event_reasons or ClockReason(0)
    subject = "card" if bench.is_card else "CPU"
    fans = [one.fan_percent for _, one in found if one.fan_percent is not None]
    fan = f", with the fan at {max(fans):.0f} %" if fans else ""
    bench.report(
        "throttled", "doubt",
        f"The {subject} slowed itself down for about {_seconds(found)} s"
        f"{_hottest_words(found)}{fan}: "
        f"{held_back_words(reasons)}. {_begin_words(found)}",
    )  # fmt: skip


def _report_fan(bench: StageBench, found: Sequence[tuple[float, Vitals]]) -> None:
    bench.report(
        "fan_stopped", "doubt",
        f"The card reports a fan that stands still for about {_seconds(found)} s"
        f"{_hottest_words(found)}. {_begin_words(found)}",
    )  # fmt: skip


def _hottest_words(found: Sequence[tuple[float, Vitals]]) -> str:
    hottest = max((one.temperature_c or 0.0 for _, one in found), default=0.0)
    return f" at {celsius_text(hottest)}" if hottest else ""


def _begin_words(found: Sequence[tuple[float, Vitals]]) -> str:
    return f"It began {found[0][0]:.0f} s after the start of the load."


def _readings_with(
    readings: Sequence[tuple[float, Vitals]], has: Callable[[Vitals], bool]
) -> list[tuple[float, Vitals]]:
    return [reading for reading in readings if has(reading[1])]


def _has(vitals: Vitals, reasons: ClockReason) -> bool:
    return bool(vitals.clock_event_reasons and vitals.clock_event_reasons & reasons)


def _has_still_fan(vitals: Vitals) -> bool:
    return vitals.fan_percent == 0 and (vitals.temperature_c or 0.0) >= FAN_TURNS_FROM_C


def _is_low(vitals: Vitals, base_clock_mhz: float | None) -> bool:
    if not base_clock_mhz or vitals.sm_clock_mhz is None:
        return False
    return vitals.sm_clock_mhz < LOW_CLOCK_SHARE * base_clock_mhz


def _counts(
    found: Sequence[tuple[float, Vitals]], readings: Sequence[tuple[float, Vitals]], from_s: float
) -> bool:
    if len(found) < _FEWEST_READINGS:
        return False
    return _seconds(found) >= from_s or len(found) >= BRAKED_SHARE * len(readings)


def _seconds(found: Sequence[tuple[float, Vitals]]) -> int:
    """Return about how long the readings lasted: there is one a second."""
    return len(found)
