"""The curves of a check on one time axis: stages, temperatures, clock and power, with limits.

Values only: `check_drawing` draws them, in the window, in a picture and on a page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpu_studio.core.check.stages import ROUND_MINUTES, round_count, stage_title
from gpu_studio.core.pause import pause_text
from gpu_studio.core.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.check.check_record import CheckRecord, StageSpan
    from gpu_studio.core.check.check_run import CheckRun
    from gpu_studio.core.check.readings import RecordedReading
    from gpu_studio.core.messages.check_messages import CheckedDevice, CheckVerdict, StageName
    from gpu_studio.core.pause import Pause

_GAP_S = 15.0
"""Readings come once a second; a longer pause is a gap in the curve, not a line."""
_TIME_STEPS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
_MOST_SHOWN = 1e6
"""A record may come from a stranger: a reading over this is none."""
_ROOM, _NAME_ROOM = 1.12, 1.35
"""Above the highest line is room for its name; a low lane needs more of it."""
_COLDEST_C, _LEAST_HOT_C = 20.0, 70.0

CurveKind = Literal["core", "hotspot", "memory", "clock", "power"]
Points = tuple[tuple[float, float], ...]


class ChartCurve(NamedTuple):
    """A curve in pieces, each of (seconds, value) points."""

    kind: CurveKind
    label: str
    pieces: tuple[Points, ...]


class ChartLimit(NamedTuple):
    """A limit of the device: a line with its name, which the curve should stay above or below."""

    value: float
    label: str
    is_ceiling: bool = False


class ChartLane(NamedTuple):
    """A part of the chart with a value axis from ``low`` to ``high``.

    ``values`` are its numbers in words, (title, value).
    """

    title: str
    unit: str
    low: float
    high: float
    curves: tuple[ChartCurve, ...]
    limits: tuple[ChartLimit, ...] = ()
    values: tuple[tuple[str, str], ...] = ()


class ChartBand(NamedTuple):
    """A stage on the time axis; ``verdict`` is None before its end."""

    title: str
    number: int
    start_s: float
    end_s: float
    verdict: CheckVerdict | None = None


class CheckChart(NamedTuple):
    """A chart from 0 to ``end_s`` seconds; without readings it has no lanes.

    The axis leaves ``pauses`` out: each is a mark on it.
    """

    end_s: float
    bands: tuple[ChartBand, ...]
    lanes: tuple[ChartLane, ...]
    readings: tuple[RecordedReading, ...] = ()
    pauses: tuple[Pause, ...] = ()


def record_chart(record: CheckRecord) -> CheckChart:
    """Return stages, temperatures and clocks over the time of a check."""
    verdicts = {stage.name: stage.verdict for stage in record.stages}
    names = [stage.name for stage in record.stages]
    last = max((one.at_s for one in record.readings), default=0.0)
    end_s = max(record.seconds, last, *(span.end_s for span in record.spans), 1.0)
    bands = _bands(record.spans, names, verdicts, record.device.address)
    lanes = _lanes(record.device, record.readings, "highest", record.lowest_clock_mhz)
    return CheckChart(end_s, bands, lanes, record.readings, record.pauses)


def run_chart(run: CheckRun) -> CheckChart:
    """Return the chart of a check that runs, with the stages that are still to come."""
    names = [track.name for track in run.stages]
    verdicts: dict[StageName, CheckVerdict] = {
        track.name: track.verdict
        for track in run.stages
        if track.verdict is not None and track.state == "finished"
    }
    bands = list(_bands(run.spans, names, verdicts, run.plan.device))
    at_s = max(run.elapsed_s, bands[-1].end_s if bands else 0.0)
    for track in run.stages:
        if track.state == "running" and bands:
            end_s = max(bands[-1].start_s + track.budget_s, bands[-1].end_s)
            bands[-1], at_s = bands[-1]._replace(end_s=end_s), end_s
        elif track.state == "waiting":
            title = stage_title(track.name, run.plan.device)
            number = names.index(track.name) + 1
            bands.append(ChartBand(title, number, at_s, at_s + track.budget_s))
            at_s += track.budget_s
    planned_s = 60.0 * run.plan.minutes
    if round_count(run.plan.minutes) > 1:
        planned_s = 60.0 * ROUND_MINUTES * (1 + int(run.elapsed_s // (60.0 * ROUND_MINUTES)))
    lanes = _lanes(run.device, run.readings, "now")
    return CheckChart(max(planned_s, at_s), tuple(bands), lanes, run.readings, run.pauses)


def plan_chart(stages: Sequence[tuple[StageName, float]], address: str) -> CheckChart:
    """Return the empty chart of a check that has not begun, from its stages and their seconds."""
    bands, at_s = [], 0.0
    for number, (name, budget_s) in enumerate(stages, 1):
        bands.append(ChartBand(stage_title(name, address), number, at_s, at_s + budget_s))
        at_s += budget_s
    return CheckChart(max(at_s, 1.0), tuple(bands), ())


def time_ticks(end_s: float, most: int) -> tuple[float, ...]:
    """Return at most about ``most`` times of an even distance, in seconds, from 0 on."""
    fitting = (one for one in _TIME_STEPS if end_s / one <= max(most, 1))
    step = float(next(fitting, math.ceil(end_s / max(most, 1))))
    return tuple(step * number for number in range(int(end_s // step) + 1))


def value_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Return at most about ``most`` round values between two."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return ()
    rough = span / max(most, 1)
    decade = 10.0 ** math.floor(math.log10(rough))
    step = next(m * decade for m in (1.0, 2.0, 5.0, 10.0) if m * decade >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return tuple(step * one for one in range(first, math.floor(high / step + 1e-9) + 1))


def reading_at(chart: CheckChart, at_s: float) -> RecordedReading | None:
    """Return the reading nearest to a time; None if there is none close to it."""
    nearest = min(chart.readings, key=lambda one: abs(one.at_s - at_s), default=None)
    close = max(_GAP_S, chart.end_s / 100)
    return nearest if nearest is not None and abs(nearest.at_s - at_s) <= close else None


def band_at(chart: CheckChart, at_s: float) -> ChartBand | None:
    """Return the stage that ran at a time."""
    return next((one for one in chart.bands if one.start_s <= at_s <= one.end_s), None)


def chart_sentence(chart: CheckChart) -> str:
    """Return the numbers of a chart in a sentence, for people who do not see it."""
    pairs = [f"{title} {value}" for lane in chart.lanes for title, value in lane.values]
    limits = [limit.label for lane in chart.lanes for limit in lane.limits]
    numbers = f"{', '.join([*pairs, *limits])}." if pairs else "No readings."
    return " ".join([numbers, *(f"{mark_text(pause)}." for pause in chart.pauses)])


def mark_text(pause: Pause) -> str:
    """Return a pause of a check in words, without a full stop."""
    return f"{pause_text(pause)}, {clock_text(pause.after_s)} into the check"


def _bands(
    spans: Sequence[StageSpan],
    names: Sequence[StageName],
    verdicts: dict[StageName, CheckVerdict],
    address: str,
) -> tuple[ChartBand, ...]:
    return tuple(
        ChartBand(
            stage_title(span.name, address),
            names.index(span.name) + 1 if span.name in names else 0,
            span.start_s,
            max(span.end_s, span.start_s),
            verdicts.get(span.name),
        )
        for span in spans
    )


def _lanes(
    device: CheckedDevice | None,
    readings: Sequence[RecordedReading],
    shown: Literal["now", "highest"],
    lowest_clock_mhz: float | None = None,
) -> tuple[ChartLane, ...]:
    lanes = [
        _heat(device, readings, shown),
        _clock(device, readings, shown, lowest_clock_mhz),
        _power(device, readings, shown),
    ]
    return tuple(lane for lane in lanes if lane is not None)


def _heat(
    device: CheckedDevice | None, readings: Sequence[RecordedReading], shown: str
) -> ChartLane | None:
    curves = [
        _curve("core", "chip", readings, lambda one: one.temperature_c),
        _curve("hotspot", "hot spot", readings, lambda one: one.hotspot_c),
        _curve("memory", "memory", readings, lambda one: one.memory_temperature_c),
    ]
    drawn = tuple(curve for curve in curves if curve.pieces)
    if not drawn:
        return None
    limits = []
    if device is not None and device.slowdown_c is not None and device.slowdown_c <= _MOST_SHOWN:
        label = f"slows itself down at {device.slowdown_c:.0f}\u202f°C"
        limits.append(ChartLimit(device.slowdown_c, label, is_ceiling=True))
    values = [y for curve in drawn for y in _values(curve)]
    high = max([*values, *(limit.value for limit in limits), _LEAST_HOT_C])
    low = min([*values, _COLDEST_C])
    words = tuple(
        (f"{_HEAT_TITLES[curve.kind]}, {shown}", f"{_shown(curve, shown):.0f}\u202f°C")
        for curve in drawn
    )
    return ChartLane(
        "Temperature", "°C", low, low + (high - low) * _ROOM, drawn, tuple(limits), words
    )


_HEAT_TITLES: dict[CurveKind, str] = {"core": "Chip", "hotspot": "Hot spot", "memory": "Memory"}


def _clock(
    device: CheckedDevice | None,
    readings: Sequence[RecordedReading],
    shown: str,
    lowest_mhz: float | None,
) -> ChartLane | None:
    curve = _curve("clock", "clock", readings, lambda one: one.sm_clock_mhz)
    if not curve.pieces:
        return None
    base = device.base_clock_mhz if device is not None else None
    limits = []
    if base is not None and base <= _MOST_SHOWN:
        limits.append(ChartLimit(base, f"base clock {base:.0f}\u202fMHz"))
    high = max([*_values(curve), *(limit.value for limit in limits), 100.0])
    words = (f"Clock, {shown}", f"{_shown(curve, shown):.0f}\u202fMHz")
    if lowest_mhz is not None and lowest_mhz <= _MOST_SHOWN:
        words = ("Clock, lowest under load", f"{lowest_mhz:.0f}\u202fMHz")
    return ChartLane("Clock", "MHz", 0.0, high * _ROOM, (curve,), tuple(limits), (words,))


def _power(
    device: CheckedDevice | None, readings: Sequence[RecordedReading], shown: str
) -> ChartLane | None:
    curve = _curve("power", "power", readings, lambda one: one.power_w)
    if not curve.pieces:
        return None
    limit = device.power_limit_w if device is not None else None
    limits = []
    if limit is not None and limit <= _MOST_SHOWN:
        limits.append(ChartLimit(limit, f"limit {limit:.0f}\u202fW", is_ceiling=True))
    high = max([*_values(curve), *(one.value for one in limits), 10.0])
    words = (f"Power, {shown}", f"{_shown(curve, shown):.0f}\u202fW")
    return ChartLane("Power", "W", 0.0, high * _NAME_ROOM, (curve,), tuple(limits), (words,))


def _curve(
    kind: CurveKind,
    label: str,
    readings: Sequence[RecordedReading],
    value: Callable[[RecordedReading], float | None],
) -> ChartCurve:
    pieces: list[list[tuple[float, float]]] = []
    last_s = -math.inf
    gap_s = max(_GAP_S, _usual_distance_s(readings) * 4)
    for one in readings:
        y = value(one)
        if y is None or y > _MOST_SHOWN:
            continue
        if one.at_s - last_s > gap_s or one.at_s < last_s:
            pieces.append([])
        pieces[-1].append((one.at_s, y))
        last_s = one.at_s
    return ChartCurve(kind, label, tuple(tuple(piece) for piece in pieces))


def _usual_distance_s(readings: Sequence[RecordedReading]) -> float:
    """Return the distance of the readings; a night keeps only some of them."""
    if len(readings) < 2:
        return 0.0
    return max(readings[-1].at_s - readings[0].at_s, 0.0) / (len(readings) - 1)


def _values(curve: ChartCurve) -> list[float]:
    return [y for piece in curve.pieces for _, y in piece]


def _shown(curve: ChartCurve, shown: str) -> float:
    values = _values(curve)
    return values[-1] if shown == "now" else max(values)
