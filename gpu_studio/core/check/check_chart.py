"""The curves of a check over its time: temperatures, clock and power, with the card's limits.

Values only: `ui.check.check_curves` draws them, in the window and in the record for a buyer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpu_studio.core.check.stages import stage_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.check.check_record import CheckRecord, StageSpan
    from gpu_studio.core.check.check_run import CheckRun
    from gpu_studio.core.messages.check_messages import CheckedDevice
    from gpu_studio.core.telemetry import Telemetry

_GAP_S = 15.0
"""Readings come once a second; a longer pause is a gap in the curve, not a line."""
_MOST_SHOWN = 1e6
"""A record may come from a stranger: a reading over this is none."""
_ROOM = 1.15
"""Above the highest line is some room."""
Unit = Literal["°C", "MHz", "W"]
# The title of a unit, the least range of its axis, and its curves by the fields of a reading.
_LANES: dict[Unit, tuple[str, float, float, dict[str, str]]] = {
    "°C": ("Temperature", 20.0, 70.0, {
        "temperature_c": "Chip", "hotspot_c": "Hot spot", "memory_temperature_c": "Memory",
    }),
    "MHz": ("Clock", 0.0, 10.0, {"sm_clock_mhz": "Clock"}),
    "W": ("Power", 0.0, 10.0, {"power_w": "Power"}),
}  # fmt: skip


class ChartCurve(NamedTuple):
    """A curve; the name is a field of `Telemetry`, and a NaN in ``ys`` is a gap."""

    name: str
    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]

    @property
    def values(self) -> list[float]:
        """The values without the gaps."""
        return [y for y in self.ys if y == y]


class ChartLane(NamedTuple):
    """The curves of one unit, with a value axis from ``low`` to ``high``.

    ``limits`` are the values of lines across it, ``words`` its numbers and limits in a line.
    """

    title: str
    unit: Unit
    low: float
    high: float
    curves: tuple[ChartCurve, ...]
    limits: tuple[float, ...]
    words: str


class CheckChart(NamedTuple):
    """A chart from 0 to ``end_s`` seconds; without readings it has no lanes.

    ``marks`` are (seconds, word): where a stage began, or in a check of several rounds a round.
    """

    end_s: float
    marks: tuple[tuple[float, str], ...]
    lanes: tuple[ChartLane, ...]


def record_chart(record: CheckRecord) -> CheckChart:
    """Return the curves over the time of a check."""
    last_s = max((one.at_s for one in record.readings), default=0.0)
    lanes = tuple(_lanes(record.device, record.readings, record.lowest_clock_mhz))
    marks = _marks(record.spans, record.device.address)
    return CheckChart(max(record.seconds, last_s, 1.0), marks, lanes)


def run_chart(run: CheckRun) -> CheckChart:
    """Return the curves of a check that runs, with the room for the rest of its round."""
    lanes = tuple(_lanes(run.device, run.readings, is_running=True))
    end_s = run.elapsed_s + min(run.remaining_s, 60.0 * run.plan.minutes / run.rounds)
    return CheckChart(max(end_s, 1.0), _marks(run.spans, run.plan.device), lanes)


def _marks(spans: Sequence[StageSpan], address: str) -> tuple[tuple[float, str], ...]:
    if len({span.round for span in spans}) <= 1:
        return tuple((span.start_s, stage_title(span.name, address).split()[0]) for span in spans)
    firsts: dict[int, float] = {}
    for span in spans:
        firsts.setdefault(span.round, span.start_s)
    return tuple((start_s, str(number)) for number, start_s in firsts.items())


def _lanes(
    device: CheckedDevice | None,
    readings: Sequence[Telemetry],
    lowest_clock_mhz: float | None = None,
    *,
    is_running: bool = False,
) -> Iterator[ChartLane]:
    for unit, (title, low, high, names) in _LANES.items():
        curves = (_curve(name, label, readings) for name, label in names.items())
        drawn = tuple(curve for curve in curves if curve.values)
        if not drawn:
            continue
        words = [
            f"{curve.label}, now {curve.values[-1]:.0f}\u202f{unit}"
            if is_running
            else f"{curve.label}, highest {max(curve.values):.0f}\u202f{unit}"
            for curve in drawn
        ]
        if unit == "MHz" and lowest_clock_mhz is not None and lowest_clock_mhz <= _MOST_SHOWN:
            words = [f"Clock, lowest under load {lowest_clock_mhz:.0f}\u202fMHz"]
        limits: tuple[float, ...] = ()
        value, limit = _limit(unit, device)
        if value is not None and value <= _MOST_SHOWN:
            words.append(f"{limit} {value:.0f}\u202f{unit}")
            limits = (value,)
        values = [*limits, *(y for curve in drawn for y in curve.values)]
        low, high = min(*values, low), max(*values, high)
        high = low + (high - low) * _ROOM
        yield ChartLane(title, unit, low, high, drawn, limits, ", ".join(words))


def _limit(unit: Unit, device: CheckedDevice | None) -> tuple[float | None, str]:
    if device is None:
        return None, ""
    return {
        "°C": (device.slowdown_c, "slows itself down at"),
        "MHz": (device.base_clock_mhz, "base clock"),
        "W": (device.power_limit_w, "limit"),
    }[unit]


def _curve(name: str, label: str, readings: Sequence[Telemetry]) -> ChartCurve:
    xs: list[float] = []
    ys: list[float] = []
    # A night keeps only some of the readings.
    whole_s = readings[-1].at_s - readings[0].at_s if readings else 0.0
    gap_s = max(_GAP_S, 4 * whole_s / max(len(readings) - 1, 1))
    for one in readings:
        y = getattr(one, name)
        if y is None or y > _MOST_SHOWN:
            continue
        if xs and not 0 <= one.at_s - xs[-1] <= gap_s:
            xs.append(one.at_s)
            ys.append(math.nan)
        xs.append(one.at_s)
        ys.append(y)
    return ChartCurve(name, label, tuple(xs), tuple(ys))
