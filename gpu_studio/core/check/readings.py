"""The curves of a record: temperature, clock and power during a check, in a bounded number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.heat import LoggedReading
from gpu_studio.core.messages.check_messages import Vitals
from gpu_studio.core.messages.message import (  # noqa: TC001  # msgspec reads the annotations
    Amount,
    Seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_READINGS = 400
"""A picture has hardly more columns, and a record stays small."""
_DECIMALS = 1


class RecordedReading(msgspec.Struct, frozen=True, kw_only=True):
    """One reading in a record; None means "not reported".

    ``at_s`` is the time since the start of the check, without interruptions.
    """

    at_s: Seconds
    temperature_c: Amount | None = None
    hotspot_c: Amount | None = None
    memory_temperature_c: Amount | None = None
    sm_clock_mhz: Amount | None = None
    power_w: Amount | None = None


def recorded(readings: Sequence[LoggedReading]) -> tuple[RecordedReading, ...]:
    """Return at most `MOST_READINGS` of a check's readings, in their order.

    If there are more, each span of the check keeps two: the hottest, and the one with the lowest
    clock. So no peak and no drop is lost, and no value is a mean that the card never reported.
    """
    known = [reading for reading in readings if _has_values(reading.vitals)]
    shown = known if len(known) <= MOST_READINGS else list(_extremes(known))
    return tuple(_recorded(one.at_s, one.vitals) for one in shown)


def restored(readings: Sequence[RecordedReading]) -> list[LoggedReading]:
    """Return recorded readings as a check keeps them."""
    return [
        LoggedReading(
            one.at_s,
            Vitals(
                temperature_c=one.temperature_c,
                hotspot_c=one.hotspot_c,
                memory_temperature_c=one.memory_temperature_c,
                sm_clock_mhz=one.sm_clock_mhz,
                power_w=one.power_w,
            ),
        )
        for one in readings
    ]


def _has_values(vitals: Vitals) -> bool:
    return any(
        value is not None for value in (vitals.temperature_c, vitals.sm_clock_mhz, vitals.power_w)
    )


def _extremes(
    readings: Sequence[LoggedReading],
) -> Iterator[LoggedReading]:
    spans = MOST_READINGS // 2
    for span in range(spans):
        first, last = (len(readings) * one // spans for one in (span, span + 1))
        places = range(first, last)
        hottest = max(places, key=lambda place: readings[place].degrees or 0.0)
        slowest = min(places, key=lambda place: _clock(readings[place].vitals))
        for place in sorted({hottest, slowest}):
            yield readings[place]


def _clock(vitals: Vitals) -> float:
    return float("inf") if vitals.sm_clock_mhz is None else vitals.sm_clock_mhz


def _recorded(at_s: float, vitals: Vitals) -> RecordedReading:
    return RecordedReading(
        at_s=round(at_s, _DECIMALS),
        temperature_c=_rounded(vitals.temperature_c),
        hotspot_c=_rounded(vitals.hotspot_c),
        memory_temperature_c=_rounded(vitals.memory_temperature_c),
        sm_clock_mhz=_rounded(vitals.sm_clock_mhz),
        power_w=_rounded(vitals.power_w),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)
