"""The load in steps: joined over several rounds, and as a table of periods and shares of load."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.units import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.check_messages import LoadStep, MemoryRates

STEPS_TITLE = "Load in steps"
STEPS_NOTE = (
    "Each burst of work was compared, at 20 to 100 % load and in long and short periods: weak "
    "power delivery and unstable clocks fail at part load. A field has the wrong bursts, the "
    "lowest clock and the highest power."
)
_LONGEST_WRITTEN = 1e6


class StepCell(NamedTuple):
    """A step in words; ``is_bad`` if a burst was wrong."""

    text: str
    is_bad: bool = False


class StepsTable(NamedTuple):
    """Heads of the columns, and rows of a title and its cells."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[StepCell, ...]], ...]


def steps_table(steps: Sequence[LoadStep]) -> StepsTable | None:
    """Return the table of the steps; None if there are none."""
    if not steps:
        return None
    by_place = {(one.period_s, one.duty_percent): one for one in steps}
    duties = sorted({duty for _, duty in by_place})
    periods = sorted({period for period, _ in by_place})
    rows = tuple(
        (_period(period), tuple(_cell(by_place.get((period, duty))) for duty in duties))
        for period in periods
    )
    return StepsTable(tuple(f"{duty:.0f}\u202f% load" for duty in duties), rows)


def _period(seconds: float) -> str:
    return f"{1000 * seconds:.0f}\u202fms" if seconds < 1 else f"{seconds:.0f}\u202fs"


def _cell(step: LoadStep | None) -> StepCell:
    if step is None or not step.bursts:
        return StepCell("not run")
    parts = [f"{format_count(step.errors)} of {format_count(step.bursts)} wrong"]
    for value, unit in ((step.sm_clock_mhz, "MHz"), (step.power_w, "W")):
        if value is not None and value < _LONGEST_WRITTEN:
            parts.append(f"{value:.0f}\u202f{unit}")
    return StepCell(", ".join(parts), step.errors > 0)


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
