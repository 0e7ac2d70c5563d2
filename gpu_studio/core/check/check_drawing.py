"""Draws the curves of a check and the map of its memory, the same on a screen and on a page.

A `Canvas` draws the lines: a painter's in the window and in the picture, or SVG on the page. All
lengths are in the canvas's own units; ``em`` is the size of its text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gpu_studio.core.check.check_chart import mark_text, time_ticks, value_ticks
from gpu_studio.core.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.check.check_chart import (
        ChartBand,
        ChartLane,
        ChartLimit,
        CheckChart,
        CurveKind,
    )
    from gpu_studio.core.check.memory_map import MemoryMap, SquareState
    from gpu_studio.core.svg_canvas import Anchor, Dash

# In em.
_LINE = 1.35
_STRIP = 1.6
_GAP = 1.1
_LANE_SHARES = {"°C": 2.2, "MHz": 1.0, "W": 1.0}
_HEAD = 2.0
_NARROW = 46.0
_TICKS_APART_X, _TICKS_APART_Y = 5.0, 1.7
_BAND_PADDING = 0.5
_CURVE_ROLES: dict[CurveKind, tuple[str, Dash]] = {
    "core": ("gpu0_ink", "solid"),
    "hotspot": ("gpu0_ink", "dashed"),
    "memory": ("muted", "dotted"),
    "clock": ("gpu0_ink", "solid"),
    "power": ("gpu0_ink", "solid"),
}
_BAND_ROLES = {
    "failed": ("failure_soft", "failure_ink"),
    "inconclusive": ("amber_soft", "amber"),
    "partial": ("amber_soft", "amber"),
}
_SQUARE_ROLES: dict[SquareState, str] = {
    "good": "allocated", "bad": "failure", "waiting": "disabled", "untested": "track",
}  # fmt: skip


class Canvas(Protocol):
    """Takes lines, areas and words; ``role`` is a color of the theme."""

    def line(
        self, x1: float, y1: float, x2: float, y2: float, role: str, *, dash: Dash = "solid"
    ) -> None:
        """Draw a thin line."""

    def curve(
        self, points: Sequence[tuple[float, float]], role: str, *, dash: Dash = "solid"
    ) -> None:
        """Draw a thick line through points."""

    def box(
        self, x: float, y: float, width: float, height: float, role: str, *, tip: str = ""
    ) -> None:
        """Fill a rectangle; the tip is shown where the canvas can show one."""

    def text(
        self, x: float, y: float, text: str, role: str, *, anchor: Anchor = "left",
        bold: bool = False,
    ) -> None:  # fmt: skip
        """Write a line of text whose middle is at the height y."""

    def text_width(self, text: str, *, bold: bool = False) -> float:
        """Return the width of a line of text."""


class PlotPlace(NamedTuple):
    """Where the time axis is: from ``left`` to ``right``; the lanes reach to ``bottom``."""

    left: float
    right: float
    top: float
    bottom: float

    def x(self, at_s: float, end_s: float) -> float:
        return self.left + (self.right - self.left) * min(max(at_s / end_s, 0.0), 1.0)

    def seconds(self, x: float, end_s: float) -> float:
        """Return the time at a place, within the axis."""
        share = (x - self.left) / max(self.right - self.left, 1e-9)
        return end_s * min(max(share, 0.0), 1.0)


def chart_height(
    chart: CheckChart, em: float, width: float = math.inf, *, is_low: bool = False
) -> float:
    """Return a good height for a chart: of the lanes it has, or of an empty one.

    In a narrow width, the numbers stand above the lanes.
    """
    heads = _HEAD * len(chart.lanes) if width < _NARROW * em else 0.0
    lanes = 2.8 if is_low else 4.6
    count = sum(_LANE_SHARES.get(lane.unit, 1.0) for lane in chart.lanes) or 3.0
    return em * (heads + _STRIP + _GAP + count * lanes + _GAP * len(chart.lanes) + 2 * _LINE)


def draw_chart(
    chart: CheckChart, canvas: Canvas, width: float, height: float, em: float, *, empty: str = ""
) -> PlotPlace:
    """Draw a chart from the top left corner on.

    Args:
        chart: what to draw.
        canvas: takes it.
        width: of the whole chart.
        height: of the whole chart.
        em: the size of the text.
        empty: stands in the middle of a chart without readings.

    Returns:
        The place of the time axis.
    """
    is_narrow = width < _NARROW * em
    words = 0.0 if is_narrow else _words_width(chart, canvas, em)
    numbers = _numbers_width(chart, canvas, em)
    margin = max(1.5 * em, canvas.text_width(clock_text(chart.end_s)) / 2 + 0.2 * em)
    place = PlotPlace(
        words + numbers, width - margin, (_STRIP + _GAP) * em, height - 1.6 * _LINE * em
    )
    _draw_bands(chart, canvas, place, em, has_words=not is_narrow)
    _draw_times(chart, canvas, place, em)
    _draw_pauses(chart, canvas, place, em)
    if not chart.lanes:
        canvas.line(place.left, place.top, place.left, place.bottom, "border")
        canvas.line(place.left, place.bottom, place.right, place.bottom, "border")
        middle = (place.top + place.bottom) / 2
        canvas.text((place.left + place.right) / 2, middle, empty, "muted", anchor="middle")
        return place
    shares = [_LANE_SHARES.get(lane.unit, 1.0) for lane in chart.lanes]
    head = _HEAD * em if is_narrow else 0.0
    room = place.bottom - place.top - _GAP * em * (len(shares) - 1) - head * len(shares)
    top = place.top
    for lane, share in zip(chart.lanes, shares, strict=True):
        tall = max(room * share / sum(shares), 1.0)
        if is_narrow:
            title = ", ".join(f"{name} {value}" for name, value in lane.values)
            canvas.text(0.0, top + 0.4 * head, title, "muted")
            top += head
        else:
            _draw_values(lane, canvas, top, tall, em)
        _draw_lane(chart, lane, canvas, place._replace(top=top, bottom=top + tall), em)
        top += tall + _GAP * em
    return place


def _words_width(chart: CheckChart, canvas: Canvas, em: float) -> float:
    texts = [(text, False) for lane in chart.lanes for text, _ in lane.values]
    texts += [(value, True) for lane in chart.lanes for _, value in lane.values]
    widest = max((canvas.text_width(text, bold=bold) for text, bold in texts), default=0.0)
    return max(widest, canvas.text_width("Stages")) + em


def _numbers_width(chart: CheckChart, canvas: Canvas, em: float) -> float:
    ticks = [
        _number(value) for lane in chart.lanes for value in value_ticks(lane.low, lane.high, 5)
    ]
    return max((canvas.text_width(text) for text in ticks), default=0.0) + 0.8 * em


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) < 1e5 else f"{value:.0e}"


def _draw_bands(
    chart: CheckChart, canvas: Canvas, place: PlotPlace, em: float, *, has_words: bool
) -> None:
    if has_words:
        canvas.text(0.0, _STRIP * em / 2, "Stages", "muted")
    for band in chart.bands:
        left, right = (place.x(at_s, chart.end_s) for at_s in (band.start_s, band.end_s))
        ground, ink = _BAND_ROLES.get(band.verdict or "", ("track", "muted"))
        if band.verdict == "passed":
            ink = "text"
        gap = min(2.0, 0.1 * em, max(right - left, 0.0) / 4)
        tip = f"{band.title}, {clock_text(band.start_s)} to {clock_text(band.end_s)}"
        canvas.box(left + gap, 0.0, max(right - left - 2 * gap, 1.0), _STRIP * em, ground, tip=tip)
        canvas.line(left, place.top, left, place.bottom, "grid", dash="dotted")
        is_bold = band.verdict == "failed"
        text = _fitting(band, canvas, right - left - _BAND_PADDING * em, bold=is_bold)
        if text:
            middle = (left + right) / 2
            canvas.text(middle, _STRIP * em / 2, text, ink, anchor="middle", bold=is_bold)


def _fitting(band: ChartBand, canvas: Canvas, room: float, *, bold: bool) -> str:
    """Return as much of a stage's name as there is room for; empty if there is none."""
    first = band.title.split(" ", 1)[0]
    candidates = (f"{band.number} {band.title}", f"{band.number} {first}", f"{band.number}")
    return next((text for text in candidates if canvas.text_width(text, bold=bold) <= room), "")


def _draw_times(chart: CheckChart, canvas: Canvas, place: PlotPlace, em: float) -> None:
    widest = canvas.text_width(clock_text(chart.end_s)) + 2 * em
    most = max(int((place.right - place.left) / max(_TICKS_APART_X * em, widest)), 1)
    for at_s in time_ticks(chart.end_s, most):
        x = place.x(at_s, chart.end_s)
        canvas.line(x, place.bottom, x, place.bottom + 0.3 * em, "border")
        canvas.text(x, place.bottom + 0.9 * _LINE * em, clock_text(at_s), "muted", anchor="middle")


def _draw_pauses(chart: CheckChart, canvas: Canvas, place: PlotPlace, em: float) -> None:
    """Mark each pause on the time axis. A record may come from a stranger: some are beyond it."""
    for pause in chart.pauses:
        if pause.after_s <= chart.end_s:
            x = place.x(pause.after_s, chart.end_s)
            canvas.line(x, 0.0, x, place.bottom, "amber", dash="dashed")
            box = (x - 0.2 * em, place.bottom - 0.2 * em, 0.4 * em, 0.4 * em)
            canvas.box(*box, "amber", tip=mark_text(pause))


def _draw_values(lane: ChartLane, canvas: Canvas, top: float, tall: float, em: float) -> None:
    """Write a lane's numbers at its left, as many as there is room for."""
    y = top + 0.5 * _LINE * em
    pairs = lane.values[: max(int(tall / (2 * _LINE * em)), 0)]
    if not pairs:
        text = "  ".join(value for _, value in lane.values[:1])
        canvas.text(0.0, top + tall / 2, text, "text", bold=True)
        return
    for title, value in pairs:
        canvas.text(0.0, y, title, "muted")
        canvas.text(0.0, y + _LINE * em, value, "text", bold=True)
        y += 2 * _LINE * em


def _draw_lane(
    chart: CheckChart, lane: ChartLane, canvas: Canvas, place: PlotPlace, em: float
) -> None:
    span = max(lane.high - lane.low, 1e-9)

    def y_of(value: float) -> float:
        return place.bottom - (place.bottom - place.top) * (value - lane.low) / span

    most = max(int((place.bottom - place.top) / (_TICKS_APART_Y * em)), 1)
    for value in value_ticks(lane.low, lane.high, min(most, 5)):
        canvas.line(place.left, y_of(value), place.right, y_of(value), "grid")
        canvas.text(place.left - 0.5 * em, y_of(value), _number(value), "muted", anchor="right")
    canvas.line(place.left, place.top, place.left, place.bottom, "border")
    canvas.line(place.left, place.bottom, place.right, place.bottom, "border")
    for limit in lane.limits:
        role, y = (
            ("amber" if limit.is_ceiling and lane.unit == "°C" else "muted"),
            y_of(limit.value),
        )
        canvas.line(place.left, y, place.right, y, role, dash="dashed")
    for curve in lane.curves:
        role, dash = _CURVE_ROLES[curve.kind]
        for piece in curve.pieces:
            points = [(place.x(at_s, chart.end_s), y_of(value)) for at_s, value in piece]
            canvas.curve(points, role, dash=dash)
    for limit in lane.limits:
        _draw_name(lane, limit, canvas, place, y_of(limit.value), em)
    if len(lane.curves) > 1:
        _draw_names(lane, canvas, place, em)


def _draw_name(
    lane: ChartLane, limit: ChartLimit, canvas: Canvas, place: PlotPlace, y: float, em: float
) -> None:
    """Write a limit's name above its line at the right, or below it at the left."""
    wide = canvas.text_width(limit.label) + 0.4 * em
    left = place.right - 0.6 * em - wide if limit.is_ceiling else place.left + 0.3 * em
    middle = y - 0.7 * em if limit.is_ceiling else y + 0.7 * em
    canvas.box(left, middle - 0.5 * em, wide, em, "card")
    canvas.text(left + 0.2 * em, middle, limit.label, _limit_role(lane, limit))


def _limit_role(lane: ChartLane, limit: ChartLimit) -> str:
    return "amber" if limit.is_ceiling and lane.unit == "°C" else "muted"


def _draw_names(lane: ChartLane, canvas: Canvas, place: PlotPlace, em: float) -> None:
    """Write a key of the curves where the curves are not: at the bottom right."""
    right = place.right - 0.4 * em
    for curve in reversed(lane.curves):
        role, dash = _CURVE_ROLES[curve.kind]
        y = place.bottom - 0.8 * em
        canvas.text(right, y, curve.label, role, anchor="right")
        right -= canvas.text_width(curve.label) + 0.4 * em
        canvas.curve([(right - 1.5 * em, y), (right, y)], role, dash=dash)
        right -= 2.5 * em


class MapPlace(NamedTuple):
    """Where the squares are: ``columns`` a row, each ``pitch`` wide and high with its gap."""

    columns: int
    pitch: float
    height: float

    def number_at(self, x: float, y: float) -> int:
        """Return the number of the square at a place; it may be past the last one."""
        column, row = int(x // self.pitch), int(y // self.pitch)
        if not 0 <= column < self.columns or row < 0:
            return -1
        return row * self.columns + column


def map_place(count: int, width: float, em: float) -> MapPlace:
    """Return the place of a number of squares in a width."""
    pitch = max(0.95 * em, 1.0)
    columns = max(int(width / pitch), 1)
    rows = -(-count // columns)
    return MapPlace(columns, pitch, rows * pitch)


def draw_map(memory: MemoryMap, canvas: Canvas, width: float, em: float) -> MapPlace:
    """Draw the squares of a map from the top left corner on; a bad one has a cross."""
    place = map_place(len(memory.squares), width, em)
    side = place.pitch * 0.86
    for number, square in enumerate(memory.squares):
        row, column = divmod(number, place.columns)
        x, y = column * place.pitch, row * place.pitch
        canvas.box(x, y, side, side, _SQUARE_ROLES[square.state], tip=memory.tip(square))
        if square.state == "bad":
            inset = side * 0.25
            canvas.line(x + inset, y + inset, x + side - inset, y + side - inset, "card")
            canvas.line(x + inset, y + side - inset, x + side - inset, y + inset, "card")
    return place
