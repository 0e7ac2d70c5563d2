"""Heat and brakes, judged at the end of every stage from the sensors' readings.

The fan's percentage is what the driver asks for, not what the fan does. So a fan that stands still
shows as heat, and as a temperature that goes on rising.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from gpu_studio.core.check.heat import (
    HOT_MEMORY_C,
    WIDE_GAP_C,
    brakes_of,
    change_in_last_minute_c,
    gap_sentence,
    hottest,
    is_low,
    largest_steady_gap_c,
    memory_sentence,
    seconds_of,
)
from gpu_studio.core.check.thresholds import (
    BRAKED_SHARE,
    COOLING_C,
    COOLING_FROM_C,
    COOLING_PAUSE_S,
    DRIVER_HEAT_FROM_S,
    FAN_TURNS_FROM_C,
    FROZEN_FROM_S,
    HARDWARE_BRAKES_FROM_S,
    HEAT_LOST_FROM_S,
    HIGHEST_UNKNOWN_C,
    LOW_CLOCK_SHARE,
    OWN_CLOCK_SHARE,
)
from gpu_studio.core.clock_reasons import (
    HARDWARE_BRAKES,
    ClockReason,
    clock_reason_words,
    held_back_words,
)
from gpu_studio.core.devices.facts import celsius_text
from gpu_studio.core.messages.check_messages import StageHeat
from gpu_studio.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.messages.check_messages import FindingKind, Severity
    from gpu_studio.engine.check.stage import StageBench

_FEWEST_READINGS = 2
_SETTLED_S, _OWN_CLOCK_UNTIL_S = 3.0, 10.0
_LOADED = ("load", "memory")
_POWER_SHARE = 0.5
_HEAT = HARDWARE_BRAKES | ClockReason.DRIVER_HEAT

Log = list[Telemetry]


class HeatWatch:
    """Follows the readings of a round from stage to stage."""

    def __init__(self) -> None:
        self._earlier: Log = []
        self._own_clock_mhz: float | None = None
        self._noted: set[FindingKind] = set()

    def end_stage(self, bench: StageBench) -> StageHeat | None:
        """Report what the readings of a stage say; return them in short, None if there are none."""
        log = bench.readings
        self._report_hot_spot(bench)
        if bench.stage == "load":
            self._own_clock_mhz = _clock_at_first(log)
        if not _report_brakes(bench, log):
            _report_overheating(bench, log)
            self._report_clock(bench, log)
        _report_fan(bench, log)
        self._report_lost(bench, log)
        if bench.pause is not None:
            self._report_pause(bench, log, bench.pause)
        self._earlier += [one.at(bench.offset_s + one.at_s) for one in log]
        return _heat_of(bench, log)

    def _report_clock(self, bench: StageBench, log: Log) -> None:
        """Report a low clock under load, with the card's reason if it names one."""
        base_mhz, own_mhz = bench.base_clock_mhz, self._own_clock_mhz
        if bench.stage not in _LOADED:
            return
        log = [one for one in log if not _is_at_rest(bench, one.at_s)]
        limit_mhz = LOW_CLOCK_SHARE * base_mhz if base_mhz else OWN_CLOCK_SHARE * (own_mhz or 0.0)
        low = [one for one in log if is_low(one, limit_mhz)]
        if not _counts(low, log, HARDWARE_BRAKES_FROM_S):
            return
        lowest = min(one.sm_clock_mhz or 0.0 for one in low)
        standard = (
            f"its base clock is {base_mhz:.0f} MHz" if base_mhz else
            f"it was {own_mhz or 0.0:.0f} MHz at first"
        )  # fmt: skip
        reasons = _reasons_of(low)
        why = f"The reason: {clock_reason_words(reasons)}" if reasons else "No reason was named"
        is_known = bench.is_card or base_mhz
        severity: Severity = "note" if reasons or not is_known else "doubt"
        bench.report(
            "low_clock", severity,
            f"The clock fell to {lowest:.0f} MHz under load; {standard}. {why}. "
            f"{_begin_words(bench, low)}",
        )  # fmt: skip

    def _report_lost(self, bench: StageBench, log: Log) -> None:
        """Report a temperature that was there and went away."""
        had_one = any(one.temperature_c is not None for one in (*self._earlier, *log))
        last_s = max((one.at_s for one in log if one.temperature_c is not None), default=0.0)
        without = [one.at_s for one in log if one.temperature_c is None and one.at_s > last_s]
        without += [at_s for at_s in bench.unread if at_s > last_s]
        is_long = len(without) >= _FEWEST_READINGS and bench.elapsed_s - last_s >= HEAT_LOST_FROM_S
        if had_one and is_long:
            self._report_once(
                bench, "heat_unknown",
                f"The {_subject(bench)} reported no temperature any more from second "
                f"{last_s:.0f} of this stage on, so its heat is not known after that.",
            )  # fmt: skip

    def _report_pause(self, bench: StageBench, log: Log, pause: tuple[float, float]) -> None:
        """Report a temperature that does not fall while the device rests."""
        begun_s, ended_s = pause
        resting = [
            one.temperature_c for one in log if begun_s <= one.at_s <= ended_s and one.temperature_c
        ]
        here = (one.at(bench.offset_s + one.at_s) for one in log if one.at_s < begun_s)
        from_s = bench.offset_s + begun_s - FROZEN_FROM_S
        before = [one for one in (*self._earlier, *here) if one.at_s >= from_s]
        worked = [one.temperature_c for one in before if one.temperature_c]
        if ended_s - begun_s < COOLING_PAUSE_S or len(resting) < _FEWEST_READINGS or not worked:
            return
        is_long = before[-1].at_s - before[0].at_s >= FROZEN_FROM_S / 2
        if is_long and len({*worked, *resting}) == 1:
            self._report_once(
                bench, "heat_unknown",
                f"The temperature stayed at exactly {celsius_text(resting[0])} under load and in "
                "the pause after it: the sensor may be stuck, so the heat is not known.",
            )  # fmt: skip
        elif max(worked) >= COOLING_FROM_C and min(resting) > worked[-1] - COOLING_C:
            self._report_once(
                bench, "not_cooling",
                f"The temperature was {celsius_text(worked[-1])} under load and did not fall in a "
                f"pause of {ended_s - begun_s:.0f} s: another program uses the "
                f"{_subject(bench)}, or its cooler does not work.",
            )  # fmt: skip

    def _report_hot_spot(self, bench: StageBench) -> None:
        """Note a wide gap of the hot spot, and hot memory; neither ever fails a check."""
        gap_c = largest_steady_gap_c(bench.readings)
        if gap_c is not None and gap_c > WIDE_GAP_C:
            self._report_once(bench, "hotspot_gap", gap_sentence(gap_c), "note")
        degrees = (one.memory_temperature_c for one in bench.readings)
        memory_c = max((one for one in degrees if one is not None), default=None)
        if memory_c is not None and memory_c >= HOT_MEMORY_C:
            self._report_once(bench, "hot_memory", memory_sentence(memory_c), "note")

    def _report_once(
        self,
        bench: StageBench,
        kind: FindingKind,
        sentence: str,
        severity: Severity | None = None,
    ) -> None:
        if kind not in self._noted:
            self._noted.add(kind)
            bench.report(kind, severity or ("doubt" if bench.is_card else "note"), sentence)


def _heat_of(bench: StageBench, log: Log) -> StageHeat | None:
    if not log:
        return None
    top = hottest(log)
    return StageHeat(
        hottest_c=top.temperature_c if top else None,
        hottest_at_s=bench.offset_s + top.at_s if top else None,
        brakes=brakes_of(log),
        is_steady=bench.is_steady,
        change_c=change_in_last_minute_c(log),
    )


def _report_brakes(bench: StageBench, log: Log) -> bool:
    """Report what slowed the device down; return whether heat or hardware did for long."""
    hardware = _with(log, lambda one: _has(one, HARDWARE_BRAKES))
    heat = _with(log, lambda one: _has(one, ClockReason.DRIVER_HEAT))
    for found, from_s in ((hardware, HARDWARE_BRAKES_FROM_S), (heat, DRIVER_HEAT_FROM_S)):
        if _counts(found, log, from_s):
            is_usual = bench.is_laptops_cpu
            _report_throttling(bench, found, "note" if is_usual else "doubt", is_usual=is_usual)
            return True
    if len(hardware) >= _FEWEST_READINGS:
        _report_throttling(bench, hardware, "note")
    limit_w = bench.facts.power_limit_w if bench.facts else None
    odd = _with(log, lambda one: _is_capped_at_rest(one, limit_w))
    if limit_w and _counts(odd, log, HARDWARE_BRAKES_FROM_S):
        watts = max(one.power_w or 0.0 for one in odd)
        bench.report(
            "throttled", "note",
            f"The card says that its power limit holds it back at {watts:.0f} W of "
            f"{limit_w:.0f} W. {_begin_words(bench, odd)}",
        )  # fmt: skip
    return False


def _report_throttling(
    bench: StageBench, found: Log, severity: Severity, *, is_usual: bool = False
) -> None:
    fans = [one.fan_percent for one in found if one.fan_percent is not None]
    fan = f", with the fan asked for {max(fans):.0f} %" if fans else ""
    usual = " That is usual for a laptop." if is_usual else ""
    bench.report(
        "throttled", severity,
        f"The {_subject(bench)} slowed itself down for about {seconds_of(found):.0f} s"
        f"{_hottest_words(found)}{fan}: {held_back_words(_reasons_of(found) & _HEAT)}. "
        f"{_begin_words(bench, found)}{usual}",
    )  # fmt: skip


def _report_overheating(bench: StageBench, log: Log) -> None:
    """Report a temperature at a limit, whether or not the device names a reason."""
    limit_c, whose = _limit(bench)
    found = _with(log, lambda one: (one.temperature_c or 0.0) >= limit_c)
    if len(found) >= _FEWEST_READINGS:
        bench.report(
            "overheated", "note" if bench.is_laptops_cpu else "doubt",
            f"The {_subject(bench)} was at up to {_degrees(found)} for about "
            f"{seconds_of(found):.0f} s. {whose} {_begin_words(bench, found)}",
        )  # fmt: skip


def _limit(bench: StageBench) -> tuple[float, str]:
    """Return the lowest limit of a device in °C, and its source in words."""
    facts = bench.facts
    known = [
        (degrees, words)
        for degrees, words in (
            (_above(facts.operating_max_c if facts else None), "Hotter than it may work is from"),
            (facts.slowdown_c if facts else None, "It slows itself down at"),
            (facts.shutdown_c if facts else None, "It switches itself off at"),
        )
        if degrees is not None
    ]
    if known:
        degrees, words = min(known)
        return degrees, f"{words} {celsius_text(degrees)}."
    return HIGHEST_UNKNOWN_C, (
        f"It reports no limit of its own; {celsius_text(HIGHEST_UNKNOWN_C)} is over that of most."
    )


def _above(degrees: float | None) -> float | None:
    """Return the first whole degree over the highest one that is allowed."""
    return None if degrees is None else degrees + 1


def _report_fan(bench: StageBench, log: Log) -> None:
    still = _with(log, _has_still_fan)
    if _counts(still, log, HARDWARE_BRAKES_FROM_S):
        bench.report(
            "fan_stopped", "doubt",
            f"The card asked its fan to stand still for about {seconds_of(still):.0f} s"
            f"{_hottest_words(still)}. {_begin_words(bench, still)}",
        )  # fmt: skip


def _clock_at_first(log: Log) -> float | None:
    """Return the clock in the first seconds of a load; None if it is not reported."""
    clocks = sorted(
        one.sm_clock_mhz
        for one in log
        if one.sm_clock_mhz is not None and _SETTLED_S <= one.at_s <= _OWN_CLOCK_UNTIL_S
    )
    return clocks[len(clocks) // 2] if clocks else None


def _is_at_rest(bench: StageBench, at_s: float) -> bool:
    """Return whether a device had no full load at a time of the stage."""
    spans = (bench.pause, bench.part_load)
    return any(span is not None and span[0] <= at_s <= span[1] for span in spans)


def _subject(bench: StageBench) -> str:
    return "card" if bench.is_card else "CPU"


def _degrees(found: Log) -> str | None:
    return celsius_text(max(one.temperature_c or 0.0 for one in found))


def _hottest_words(found: Log) -> str:
    return f" at {_degrees(found)}" if any(one.temperature_c for one in found) else ""


def _begin_words(bench: StageBench, found: Log) -> str:
    what = "load" if bench.stage == "load" else "stage"
    return f"It began {found[0].at_s:.0f} s after the start of the {what}."


def _with(log: Log, has: Callable[[Telemetry], bool]) -> Log:
    return [one for one in log if has(one)]


def _reasons_of(found: Log) -> ClockReason:
    """Return every reason that one of the readings names."""
    named = (one.clock_event_reasons or ClockReason(0) for one in found)
    return functools.reduce(operator.or_, named, ClockReason(0))


def _has(now: Telemetry, reasons: ClockReason) -> bool:
    return bool(now.clock_event_reasons and now.clock_event_reasons & reasons)


def _is_capped_at_rest(now: Telemetry, limit_w: float | None) -> bool:
    if not limit_w or now.power_w is None:
        return False
    return _has(now, ClockReason.POWER_LIMIT) and now.power_w < _POWER_SHARE * limit_w


def _has_still_fan(now: Telemetry) -> bool:
    return now.fan_percent == 0 and (now.temperature_c or 0.0) >= FAN_TURNS_FROM_C


def _counts(found: Sequence[Telemetry], log: Log, from_s: float) -> bool:
    if len(found) < _FEWEST_READINGS:
        return False
    seconds = seconds_of(found)
    return seconds >= from_s or seconds >= BRAKED_SHARE * seconds_of(log)
