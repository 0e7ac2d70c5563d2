"""The table of a load in steps, and the bandwidth first and hot, over several rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.check_messages import LoadStep, MemoryRates


def joined_steps(before: Sequence[LoadStep], now: Sequence[LoadStep]) -> tuple[LoadStep, ...]:
    """Return two tables as one: longest periods first, each from low to full load."""
    steps: dict[tuple[float, float], LoadStep] = {}
    for one in (*before, *now):
        place = (-one.period_s, one.duty_percent)
        earlier = steps.get(place)
        steps[place] = one if earlier is None else _joined(earlier, one)
    return tuple(steps[place] for place in sorted(steps))


def joined_rates(before: MemoryRates | None, now: MemoryRates | None) -> MemoryRates | None:
    """Return the bandwidths of the round in which more was lost."""
    if before is None or now is None:
        return now or before
    return min(before, now, key=lambda rates: rates.change)


def _joined(before: LoadStep, now: LoadStep) -> LoadStep:
    return msgspec.structs.replace(
        now,
        bursts=before.bursts + now.bursts,
        errors=before.errors + now.errors,
        sm_clock_mhz=_least(before.sm_clock_mhz, now.sm_clock_mhz),
        memory_clock_mhz=_least(before.memory_clock_mhz, now.memory_clock_mhz),
        power_w=max(
            (one.power_w for one in (before, now) if one.power_w is not None), default=None
        ),
    )


def _least(before: float | None, now: float | None) -> float | None:
    return min((one for one in (before, now) if one is not None), default=None)
