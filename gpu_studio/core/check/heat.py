"""What readings say about heat: the hottest one, the brakes, whether it is steady, the hot spot.

NVIDIA publishes no limits for the gap of the hot spot over the chip, or for the memory. The figures
here are the common guidance of people who repair cards, so what they lead to is a note with its
source, never an error or a doubt.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gpu_studio.core.check.stages import STEADY_C, STEADY_FIRST_S, STEADY_S
from gpu_studio.core.messages.check_messages import Brake
from gpu_studio.core.telemetry import HELD_BACK, ClockReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.telemetry import Telemetry


_BETWEEN_READINGS_S = 1.0
_LONGEST_GAP_S = 5.0
_MINUTE_S = 60.0
_IDLE = ClockReason.IDLE
_USUAL_LOW_C, _USUAL_HIGH_C = 10.0, 20.0
_USUAL = f"{_USUAL_LOW_C:.0f} to {_USUAL_HIGH_C:.0f}\u202f°C is usual"
WIDE_GAP_C = 25.0
"""From this gap on, repairers look at the paste and at the seat of the cooler."""
HOT_MEMORY_C = 100.0
"""From this temperature on, repairers look at the pads. GDDR6X slows itself down from 110 °C on."""
_STEADY_GAP_C, _STEADY_FOR_S, _FEWEST = 2.0, 10.0, 5


def seconds_of(found: Sequence[Telemetry]) -> float:
    """Return how long readings last: each until the next one, but at most a second."""
    if not found:
        return 0.0
    pairs = pairwise(found)
    between = (min(later.at_s - one.at_s, _BETWEEN_READINGS_S) for one, later in pairs)
    return sum(between) + _BETWEEN_READINGS_S


def brakes_of(log: Sequence[Telemetry]) -> tuple[Brake, ...]:
    """Return how long each reason held a card back, the power limit included."""
    found = []
    for reason in ClockReason:
        if not reason & HELD_BACK:
            continue
        with_it = [one for one in log if (one.clock_event_reasons or 0) & reason]
        if with_it:
            found.append(Brake(reason=reason, seconds=round(seconds_of(with_it), 1)))
    return tuple(found)


def hottest(log: Sequence[Telemetry]) -> Telemetry | None:
    """Return the first of the hottest readings; None if there is no temperature."""
    return max(
        (one for one in log if one.temperature_c is not None),
        key=lambda one: one.temperature_c or 0.0,
        default=None,
    )


def change_in_last_minute_c(log: Sequence[Telemetry]) -> float | None:
    """Return by how much the temperature changed in the last minute, or since the first reading.

    None if there are not two readings with a temperature.
    """
    known = [(one.at_s, one.temperature_c) for one in log if one.temperature_c is not None]
    known = [one for one in known if one[0] >= known[-1][0] - _MINUTE_S]
    return round(known[-1][1] - known[0][1], 1) if len(known) > 1 else None


def is_steady(log: Sequence[Telemetry]) -> bool:
    """Return whether the temperature changed by less than 1 °C in the last minute.

    Sensors report whole degrees and waver between two of them. So the readings of a minute are
    compared with the range of the ten seconds before it: a card that warms up by 1 °C a minute
    leaves that range, whatever it rounds. False while there are too few readings.
    """
    known = [(one.at_s, one.temperature_c) for one in log if one.temperature_c is not None]
    if not known or known[-1][0] - known[0][0] < STEADY_S + STEADY_FIRST_S:
        return False
    minute_s = known[-1][0] - STEADY_S
    window = [one for one in known if one[0] >= minute_s - STEADY_FIRST_S]
    if any(later[0] - one[0] > _LONGEST_GAP_S for one, later in pairwise(window)):
        return False
    first = [one[1] for one in window if one[0] <= minute_s]
    values = [one[1] for one in window if one[0] > minute_s]
    if not first or not values:
        return False
    return max(values) - max(first) < STEADY_C and min(first) - min(values) < STEADY_C


def is_low(now: Telemetry, limit_mhz: float) -> bool:
    """Return whether a clock is under a limit while the card does not call itself idle."""
    if now.sm_clock_mhz is None or (now.clock_event_reasons or 0) & _IDLE:
        return False
    return now.sm_clock_mhz < limit_mhz


def steady_gap_c(readings: Sequence[Telemetry]) -> float | None:
    """Return the gap of the hot spot over the chip that lasted to the last reading, in °C.

    None if the chip's temperature moved by more than 2 °C in the last 10 s, or if one of the two is
    not reported: when a load begins, the hot spot runs ahead for a moment on every card. Of the
    gaps in that time, the smallest counts. None for a hot spot that has never moved, too.

    Args:
        readings: with their times in seconds, in their order.
    """
    if not readings or readings[-1].at_s - readings[0].at_s < _STEADY_FOR_S:
        return None
    since_s = readings[-1].at_s - _STEADY_FOR_S
    cores, gaps = [], []
    for one in reversed(readings):
        if one.at_s < since_s:
            break
        if one.temperature_c is None or one.hotspot_c is None:
            return None
        cores.append(one.temperature_c)
        gaps.append(one.hotspot_c - one.temperature_c)
    if len(gaps) < _FEWEST or max(cores) - min(cores) > _STEADY_GAP_C or not has_moved(readings):
        return None
    return max(min(gaps), 0.0)


def has_moved(readings: Sequence[Telemetry]) -> bool:
    """Return whether the hot spot has had two values: a sensor that is stuck has one."""
    values = (one.hotspot_c for one in readings if one.hotspot_c is not None)
    first = next(values, None)
    return any(value != first for value in values)


def largest_steady_gap_c(readings: Sequence[Telemetry]) -> float | None:
    """Return the largest of the gaps of `steady_gap_c` over all readings, in °C."""
    gaps = (steady_gap_c(readings[:end]) for end in range(1, len(readings) + 1))
    return max((gap for gap in gaps if gap is not None), default=None)


def gap_sentence(gap_c: float) -> str:
    """Return what a wide gap means, with the source of the figures."""
    return (
        f"The hot spot was {gap_c:.0f} °C above the chip's temperature while that was steady. "
        f"{_USUAL}, and over {WIDE_GAP_C:.0f} °C can mean old thermal paste or a loose cooler: "
        "guidance of repairers, not a limit of NVIDIA's."
    )


def memory_sentence(memory_c: float) -> str:
    """Return what hot memory means, with the source of the figures."""
    return (
        f"The memory reached {memory_c:.0f} °C. From {HOT_MEMORY_C:.0f} °C on, repairers look at "
        "the thermal pads; GDDR6X slows itself down from 110 °C on. NVIDIA publishes no limit."
    )
