"""The curves of a check over its time: temperatures, clock and power, with the card's limits.

Values only: `ui.check.check_curves` draws them, in the window and in the record for a buyer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpu_studio.core.check.stages import stage_title
from gpu_studio.core.pause import pause_text
from gpu_studio.core.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.check.check_record import CheckRecord, StageSpan
    from gpu_studio.core.check.check_run import CheckRun
    from gpu_studio.core.messages.check_messages import CheckedDevice
    from gpu_studio.core.pause import Pause
    from gpu_studio.core.telemetry import Telemetry

_GAP_S = 15.0
"""Readings come once a second; a longer pause is a gap in the curve, not a line."""
_MOST_SHOWN = 1e6
"""A record may come from a stranger: a reading over this is none."""
_COLDEST_C, _LEAST_HOT_C = 20.0, 70.0

Unit = Literal["°C", "MHz", "W"]
_ROOM = 1.15
"""Above the highest line is some room."""
_TITLES: dict[Unit, str] = {"°C": "Temperature", "MHz": "Clock", "W": "Power"}
_CURVES: dict[Unit, dict[str, str]] = {
    "°C": {
        "temperature_c": "Chip", "hotspot_c": "Hot spot", "memory_temperature_c": "Memory",
    },
    "MHz": {"sm_clock_mhz": "Clock"},
    "W": {"power_w": "Power"},
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
    The axis leaves ``pauses`` out.
    """

    end_s: float
    marks: tuple[tuple[float, str], ...]
    lanes: tuple[ChartLane, ...]
    pauses: tuple[Pause, ...] = ()


def record_chart(record: CheckRecord) -> CheckChart:
    """Return the curves over the time of a check."""
    last = max((one.at_s for one in record.readings), default=0.0)
    end_s = max(record.seconds, last, *(span.end_s for span in record.spans), 1.0)
    lanes = _lanes(record.device, record.readings, "highest", record.lowest_clock_mhz)
    marks = _marks(record.spans, record.device.address)
    return CheckChart(end_s, marks, lanes, record.pauses)


def run_chart(run: CheckRun) -> CheckChart:
    """Return the curves of a check that runs, with the room for the rest of its round."""
    lanes = _lanes(run.device, run.readings, "now")
    end_s = run.elapsed_s + min(run.remaining_s, 60.0 * run.plan.minutes / run.rounds)
    return CheckChart(max(end_s, 1.0), _marks(run.spans, run.plan.device), lanes, run.pauses)


def chart_sentence(chart: CheckChart) -> str:
    """Return the numbers of a chart in a sentence, for people who do not see it."""
    numbers = f"{', '.join(lane.words for lane in chart.lanes)}." if chart.lanes else "No readings."
    return " ".join([numbers, *(f"{mark_text(pause)}." for pause in chart.pauses)])


def mark_text(pause: Pause) -> str:
    """Return a pause of a check in words, without a full stop."""
    return f"{pause_text(pause)}, {clock_text(pause.after_s)} into the check"


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
    shown: Literal["now", "highest"],
    lowest_clock_mhz: float | None = None,
) -> tuple[ChartLane, ...]:
    lanes = []
    for unit, names in _CURVES.items():
        curves = tuple(_curve(name, label, readings) for name, label in names.items())
        drawn = tuple(curve for curve in curves if curve.values)
        if drawn:
            limits = tuple(_limits(unit, device))
            words = [*_words(unit, drawn, shown, lowest_clock_mhz), *(name for _, name in limits)]
            values = tuple(value for value, _ in limits)
            lanes.append(_lane(unit, drawn, values, ", ".join(words)))
    return tuple(lanes)


def _lane(
    unit: Unit, curves: tuple[ChartCurve, ...], limits: tuple[float, ...], words: str
) -> ChartLane:
    values = [*limits, *(y for curve in curves for y in curve.values)]
    low, high = min(*values, 0.0), max(*values, 10.0)
    if unit == "°C":
        low, high = min(*values, _COLDEST_C), max(*values, _LEAST_HOT_C)
    high = low + (high - low) * _ROOM
    return ChartLane(_TITLES[unit], unit, low, high, curves, limits, words)


def _limits(unit: Unit, device: CheckedDevice | None) -> Iterator[tuple[float, str]]:
    if device is None:
        return
    value, words = {
        "°C": (device.slowdown_c, "slows itself down at"),
        "MHz": (device.base_clock_mhz, "base clock"),
        "W": (device.power_limit_w, "limit"),
    }[unit]
    if value is not None and value <= _MOST_SHOWN:
        yield value, f"{words} {value:.0f}\u202f{unit}"


def _words(
    unit: Unit, curves: Sequence[ChartCurve], shown: str, lowest_clock_mhz: float | None
) -> list[str]:
    if unit == "MHz" and lowest_clock_mhz is not None and lowest_clock_mhz <= _MOST_SHOWN:
        return [f"Clock, lowest under load {lowest_clock_mhz:.0f}\u202fMHz"]
    return [
        f"{curve.label}, {shown} "
        f"{curve.values[-1] if shown == 'now' else max(curve.values):.0f}\u202f{unit}"
        for curve in curves
    ]


def _curve(name: str, label: str, readings: Sequence[Telemetry]) -> ChartCurve:
    xs: list[float] = []
    ys: list[float] = []
    gap_s = max(_GAP_S, 4 * _usual_distance_s(readings))
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


def _usual_distance_s(readings: Sequence[Telemetry]) -> float:
    """Return the distance of the readings; a night keeps only some of them."""
    if len(readings) < 2:
        return 0.0
    return max(readings[-1].at_s - readings[0].at_s, 0.0) / (len(readings) - 1)
