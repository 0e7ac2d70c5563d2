"""Heat and brakes, judged at the end of every stage from the sensors' readings.

The fan's percentage is what the driver asks for, not what the fan does. So a fan that stands still
shows as heat, and as a temperature that goes on rising.

NVIDIA publishes no limits for the gap of the hot spot over the chip, or for the memory. The figures
here are the common guidance of people who repair cards, so what they lead to is a note with its
source, never an error or a doubt.
"""

from __future__ import annotations

import functools
import math
import operator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.check import stages as limits
from gpu_studio.core.devices.facts import celsius_text
from gpu_studio.core.telemetry import (
    HARDWARE_BRAKES,
    ClockReason,
    clock_reason_words,
    held_back_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.check_messages import FindingKind, Severity
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.engine.check.stage_run import StageRun

    Log = list[Telemetry]

_FEWEST_READINGS = 2
_SETTLED_S, _OWN_CLOCK_UNTIL_S = 3.0, 10.0
_LOADED = ("load", "memory")
_HEAT = HARDWARE_BRAKES | ClockReason.DRIVER_HEAT
_BETWEEN_READINGS_S, _LONGEST_GAP_S = 1.0, 5.0
_WIDE_GAP_C = 25.0
"""From this gap on, repairers look at the paste and at the seat of the cooler."""
_HOT_MEMORY_C = 100.0
"""From this temperature on, repairers look at the pads. GDDR6X slows itself down from 110 °C on."""
_GAP_READINGS = 20


class _Sign(NamedTuple):
    """What readings may show for some seconds: the finding, its sentence, and which readings."""

    kind: FindingKind
    what: str
    has: Callable[[Telemetry], bool]
    from_s: float


class HeatWatch:
    """Follows the readings of a round from stage to stage."""

    def __init__(self) -> None:
        self._had_heat = False
        self._own_clock_mhz: float | None = None
        self._noted: set[FindingKind] = set()

    def end_stage(self, run: StageRun) -> None:
        """Report what the readings of a stage say."""
        if run.stage == "load":
            self._own_clock_mhz = _clock_at_first(run.readings)
        if not _report_signs(run):
            self._report_clock(run)
        self._report_hot_spot(run)
        self._report_lost(run)

    def _report_clock(self, run: StageRun) -> None:
        """Report a low clock under load, with the card's reason if it names one."""
        base_mhz, own_mhz = run.facts.base_clock_mhz if run.facts else None, self._own_clock_mhz
        begun_s, ended_s = run.rested or (math.inf, -math.inf)
        log = [one for one in run.readings if not begun_s <= one.at_s <= ended_s]
        limit_mhz = limits.OWN_CLOCK_SHARE * (own_mhz or 0.0)
        if base_mhz:
            limit_mhz = limits.LOW_CLOCK_SHARE * base_mhz
        low = [one for one in log if _is_low(one, limit_mhz)]
        if run.stage not in _LOADED or not _is_long(low, log, limits.HARDWARE_BRAKES_FROM_S):
            return
        lowest = min(one.sm_clock_mhz or 0.0 for one in low)
        usual = f"its base clock is {base_mhz:.0f}" if base_mhz else f"it was {own_mhz or 0:.0f}"
        reasons = _reasons_of(low)
        why = f"The reason: {clock_reason_words(reasons)}" if reasons else "No reason was named"
        is_known = run.is_card or base_mhz
        run.report(
            "low_clock", "note" if reasons or not is_known else "doubt",
            f"The clock fell to {lowest:.0f} MHz under load; {usual} MHz"
            f"{'' if base_mhz else ' at first'}. {why}. {_begin_words(run, low)}",
        )  # fmt: skip

    def _report_lost(self, run: StageRun) -> None:
        """Report a temperature that was there and went away."""
        known = [one.at_s for one in run.readings if one.temperature_c is not None]
        self._had_heat |= bool(known)
        last_s = max(known, default=0.0)
        without = [one.at_s for one in run.readings if one.temperature_c is None]
        later = [at_s for at_s in (*without, *run.unread) if at_s > last_s]
        is_long = run.elapsed_s - last_s >= limits.HEAT_LOST_FROM_S
        if self._had_heat and is_long and len(later) >= _FEWEST_READINGS:
            self._report_once(
                run, "heat_unknown", "doubt" if run.is_card else "note",
                f"The {run.subject} reported no temperature any more from second {last_s:.0f} of "
                "this stage on, so its heat is not known after that.",
            )  # fmt: skip

    def _report_hot_spot(self, run: StageRun) -> None:
        """Note a wide gap of the hot spot, and hot memory; neither ever fails a check."""
        gap_c = lasting_gap_c(run.readings)
        if gap_c > _WIDE_GAP_C:
            self._report_once(
                run, "hotspot_gap", "note",
                f"The hot spot was {gap_c:.0f} °C above the chip's temperature. 10 to 20 °C is "
                f"usual, and over {_WIDE_GAP_C:.0f} °C can mean old thermal paste or a loose "
                "cooler: guidance of repairers, not a limit of NVIDIA's.",
            )  # fmt: skip
        memory_c = max((one.memory_temperature_c or 0.0 for one in run.readings), default=0.0)
        if memory_c >= _HOT_MEMORY_C:
            self._report_once(
                run, "hot_memory", "note",
                f"The memory reached {memory_c:.0f} °C. From {_HOT_MEMORY_C:.0f} °C on, repairers "
                "look at the thermal pads; GDDR6X slows itself down from 110 °C on. NVIDIA "
                "publishes no limit.",
            )  # fmt: skip

    def _report_once(
        self, run: StageRun, kind: FindingKind, severity: Severity, sentence: str
    ) -> None:
        if kind not in self._noted:
            self._noted.add(kind)
            run.report(kind, severity, sentence)


def _report_signs(run: StageRun) -> bool:
    """Report what lasted for long; return whether heat or hardware slowed the device down."""
    limit_c, words = _limit(run)
    signs = (
        _Sign("throttled", "slowed itself down", lambda now: _has(now, HARDWARE_BRAKES),
              limits.HARDWARE_BRAKES_FROM_S),
        _Sign("throttled", "slowed itself down", lambda now: _has(now, ClockReason.DRIVER_HEAT),
              limits.DRIVER_HEAT_FROM_S),
        _Sign("overheated", "was hot", lambda now: (now.temperature_c or 0.0) >= limit_c, 0.0),
        _Sign("fan_stopped", "asked its fan to stand still", _has_still_fan,
              limits.HARDWARE_BRAKES_FROM_S),
    )  # fmt: skip
    told: set[FindingKind] = set()
    for sign in signs:
        found = [one for one in run.readings if sign.has(one)]
        is_again = "throttled" in told and sign.kind != "fan_stopped"
        if is_again or not _is_long(found, run.readings, sign.from_s):
            continue
        told.add(sign.kind)
        degrees = [one.temperature_c for one in found if one.temperature_c]
        at = f", at up to {celsius_text(max(degrees))}" if degrees else ""
        more = {
            "throttled": f" The reason: {held_back_words(_reasons_of(found) & _HEAT)}.",
            "overheated": f" {words} {celsius_text(limit_c)}.",
        }.get(sign.kind, "")
        # A laptop's processor is built to slow down in its heat.
        is_usual = not run.is_card and run.facts is not None and run.facts.is_laptop
        usual = " That is usual for a laptop." if is_usual else ""
        run.report(
            sign.kind, "note" if usual else "doubt",
            f"The {run.subject} {sign.what} for about {seconds_of(found):.0f} s{at}. "
            f"{_begin_words(run, found)}{more}{usual}",
        )  # fmt: skip
    return "throttled" in told


def _limit(run: StageRun) -> tuple[float, str]:
    """Return the lowest temperature that is too much for a device, and its source in words."""
    unknown = (limits.HIGHEST_UNKNOWN_C, "It reports no limit; most are under")
    if run.facts is None:
        return unknown
    above_c = None if run.facts.operating_max_c is None else run.facts.operating_max_c + 1
    rows = (
        (above_c, "Hotter than it may work is from"),
        (run.facts.slowdown_c, "It slows itself down at"),
        (run.facts.shutdown_c, "It switches itself off at"),
    )
    return min(((limit, words) for limit, words in rows if limit is not None), default=unknown)


def _clock_at_first(log: Log) -> float | None:
    """Return the clock in the first seconds of a load; None if it is not reported."""
    settled = [one for one in log if _SETTLED_S <= one.at_s <= _OWN_CLOCK_UNTIL_S]
    clocks = sorted(one.sm_clock_mhz for one in settled if one.sm_clock_mhz is not None)
    return clocks[len(clocks) // 2] if clocks else None


def _begin_words(run: StageRun, found: Log) -> str:
    what = "load" if run.stage == "load" else "stage"
    return f"It began {found[0].at_s:.0f} s after the start of the {what}."


def _reasons_of(found: Log) -> ClockReason:
    """Return every reason that one of the readings names."""
    named = (one.clock_event_reasons or ClockReason(0) for one in found)
    return functools.reduce(operator.or_, named, ClockReason(0))


def _has(now: Telemetry, reasons: ClockReason) -> bool:
    return bool(now.clock_event_reasons and now.clock_event_reasons & reasons)


def _has_still_fan(now: Telemetry) -> bool:
    return now.fan_percent == 0 and (now.temperature_c or 0.0) >= limits.FAN_TURNS_FROM_C


def _is_long(found: Log, log: Log, from_s: float) -> bool:
    if len(found) < _FEWEST_READINGS:
        return False
    seconds = seconds_of(found)
    return seconds >= from_s or seconds >= limits.BRAKED_SHARE * seconds_of(log)


def seconds_of(found: Log) -> float:
    """Return how long readings last: each until the next one, but at most a second."""
    if not found:
        return 0.0
    between = (min(later.at_s - one.at_s, _BETWEEN_READINGS_S) for one, later in pairwise(found))
    return sum(between) + _BETWEEN_READINGS_S


def is_steady(log: Log) -> bool:
    """Return whether the temperature changed by less than 1 °C in the last minute.

    Sensors report whole degrees and waver between two of them. So the readings of a minute are
    compared with the range of the ten seconds before it: a card that warms up by 1 °C a minute
    leaves that range, whatever it rounds. False while there are too few readings.
    """
    known = [(one.at_s, one.temperature_c) for one in log if one.temperature_c is not None]
    if not known or known[-1][0] - known[0][0] < limits.STEADY_S + limits.STEADY_FIRST_S:
        return False
    minute_s = known[-1][0] - limits.STEADY_S
    window = [one for one in known if one[0] >= minute_s - limits.STEADY_FIRST_S]
    if any(later[0] - one[0] > _LONGEST_GAP_S for one, later in pairwise(window)):
        return False
    first = [one[1] for one in window if one[0] <= minute_s]
    values = [one[1] for one in window if one[0] > minute_s]
    if not first or not values:
        return False
    change_c = max(max(values) - max(first), min(first) - min(values))
    return change_c < limits.STEADY_C


def _is_low(now: Telemetry, limit_mhz: float) -> bool:
    """Return whether a clock is under a limit while the card does not call itself idle."""
    if now.sm_clock_mhz is None or _has(now, ClockReason.IDLE):
        return False
    return now.sm_clock_mhz < limit_mhz


def lasting_gap_c(log: Log) -> float:
    """Return the largest gap of the hot spot over the chip that lasted for some time, in °C.

    When a load begins, the hot spot runs ahead for a moment on every card. 0 without a hot spot,
    and for one that never moves.
    """
    if len({one.hotspot_c for one in log} - {None}) < 2:
        return 0.0
    gaps = [(one.hotspot_c or 0.0) - (one.temperature_c or math.inf) for one in log]
    starts = range(len(gaps) - _GAP_READINGS + 1)
    return max((min(gaps[at : at + _GAP_READINGS]) for at in starts), default=0.0)
