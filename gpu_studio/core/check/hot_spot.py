"""The hot spot of a card's chip: its gap over the chip's own temperature, and what is usual.

NVIDIA publishes no limits for either. The figures here are the common guidance of people who repair
cards, so what they lead to is a note with its source, never an error or a doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.check.heat import LoggedReading

_USUAL_LOW_C, _USUAL_HIGH_C = 10.0, 20.0
_USUAL = f"{_USUAL_LOW_C:.0f} to {_USUAL_HIGH_C:.0f}\u202f°C is usual"
USUAL_GAP = f"{_USUAL}, say repairers; NVIDIA has no limit"
WIDE_GAP_C = 25.0
"""From this gap on, repairers look at the paste and at the seat of the cooler."""
HOT_MEMORY_C = 100.0
"""From this temperature on, repairers look at the pads. GDDR6X slows itself down from 110 °C on."""
_STEADY_C, _STEADY_FOR_S, _FEWEST = 2.0, 10.0, 5


def steady_gap_c(readings: Sequence[LoggedReading]) -> float | None:
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
    for at_s, vitals in reversed(readings):
        if at_s < since_s:
            break
        if vitals.temperature_c is None or vitals.hotspot_c is None:
            return None
        cores.append(vitals.temperature_c)
        gaps.append(vitals.hotspot_c - vitals.temperature_c)
    if len(gaps) < _FEWEST or max(cores) - min(cores) > _STEADY_C or not has_moved(readings):
        return None
    return max(min(gaps), 0.0)


def has_moved(readings: Sequence[LoggedReading]) -> bool:
    """Return whether the hot spot has had two values: a sensor that is stuck has one."""
    values = (one.vitals.hotspot_c for one in readings if one.vitals.hotspot_c is not None)
    first = next(values, None)
    return any(value != first for value in values)


def largest_steady_gap_c(readings: Sequence[LoggedReading]) -> float | None:
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
