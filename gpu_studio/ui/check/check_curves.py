"""Temperatures, clock and power of a check on one time axis, with the card's limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, QPainter
from PySide6.QtWidgets import QWidget

from gpu_studio.core.check.check_run import CheckRun
from gpu_studio.core.check.stages import stage_title
from gpu_studio.ui.parts import Card, Text
from gpu_studio.ui.plots.live_plot import AxesStyle, Curve, Level, LivePlot, Marker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.ui.theme import Theme

    Points = tuple[tuple[float, ...], tuple[float, ...]]

_GAP_S = 15.0
"""Readings come once a second; a longer pause is a gap in the curve, not a line."""
_MOST_SHOWN = 1e6
"""A record may come from a stranger: a reading over this is none."""
_ROOM = 1.15
"""Above the highest line is some room."""
_MARK_ROWS = 2
Unit = Literal["°C", "MHz", "W"]


class _Axis(NamedTuple):
    """The least range of a unit, the height in lines of text, the limit, and the curves.

    ``limit`` is a field of the device with its words, ``curves`` are fields of a reading with
    their names.
    """

    low: float
    high: float
    lines: int
    limit: tuple[str, str]
    curves: dict[str, str]


_AXES: dict[Unit, _Axis] = {
    "°C": _Axis(20.0, 70.0, 9, ("slowdown_c", "slows itself down at"), {
        "temperature_c": "Chip", "hotspot_c": "Hot spot", "memory_temperature_c": "Memory",
    }),
    "MHz": _Axis(0.0, 10.0, 6, ("base_clock_mhz", "base clock"), {"sm_clock_mhz": "Clock"}),
    "W": _Axis(0.0, 10.0, 6, ("power_limit_w", "limit"), {"power_w": "Power"}),
}  # fmt: skip
_ROLES = {"hotspot_c": "failure", "memory_temperature_c": "muted"}


class Lane(NamedTuple):
    """The curves of one unit; its axes end at ``end_s`` seconds, ``low`` and ``high``.

    ``points`` are the curves by the field of a reading; a NaN in y is a gap. ``limit`` is the value
    of a line across it, ``words`` are its numbers in a line. ``marks`` are where a stage began, or
    in a check of several rounds a round; the first lane alone names them.
    """

    unit: Unit
    points: dict[str, Points]
    low: float
    high: float
    limit: float | None
    words: str
    end_s: float
    marks: tuple[Marker, ...]


def lanes_of(shown: CheckRecord | CheckRun | None) -> tuple[Lane, ...]:
    """Return the curves of a check; a running one has room for the rest of its round."""
    if shown is None:
        return ()
    last_s = max((one.at_s for one in shown.readings), default=0.0)
    if isinstance(shown, CheckRun):
        device, end_s = shown.device, shown.elapsed_s
        end_s += min(shown.remaining_s, 60.0 * shown.plan.minutes / shown.rounds)
    else:
        device, end_s = shown.device, max(shown.seconds, last_s)
    made: list[Lane] = []
    for unit, axis in _AXES.items():
        every = {name: _points(name, shown.readings) for name in axis.curves}
        points = {name: each for name, each in every.items() if each[0]}
        if not points:
            continue
        field, limit_words = axis.limit
        limit = getattr(device, field, None)
        limit = limit if limit is not None and limit <= _MOST_SHOWN else None
        words = [_words(shown, axis.curves[name], ys, unit) for name, (_, ys) in points.items()]
        words += [] if limit is None else [f"{limit_words} {limit:.0f}\u202f{unit}"]
        values = [y for _, ys in points.values() for y in ys if y == y]
        values += [] if limit is None else [limit]
        low, high = min(*values, axis.low), max(*values, axis.high)
        made.append(Lane(
            unit, points, low, low + (high - low) * _ROOM, limit, ", ".join(words),
            max(end_s, 1.0), _marks(shown, has_names=not made),
        ))  # fmt: skip
    return tuple(made)


def _words(shown: CheckRecord | CheckRun, label: str, ys: Sequence[float], unit: Unit) -> str:
    if isinstance(shown, CheckRun):
        return f"{label}, now {ys[-1]:.0f}\u202f{unit}"
    lowest = shown.lowest_clock_mhz
    if unit == "MHz" and lowest is not None and lowest <= _MOST_SHOWN:
        return f"Clock, lowest under load {lowest:.0f}\u202fMHz"
    return f"{label}, highest {max(y for y in ys if y == y):.0f}\u202f{unit}"


def _marks(shown: CheckRecord | CheckRun, *, has_names: bool) -> tuple[Marker, ...]:
    """Return where each round or stage began, its name in another row than the one before it."""
    address = shown.plan.device if isinstance(shown, CheckRun) else shown.device.address
    has_rounds = len({span.round for span in shown.spans}) > 1
    rows, firsts = 1 if has_rounds else _MARK_ROWS, dict[str, float]()
    for span in shown.spans:
        name = str(span.round) if has_rounds else stage_title(span.name, address).split()[0]
        firsts.setdefault(name, span.start_s)
    return tuple(
        Marker(start_s, name if has_names else "", "muted", row=number % rows)
        for number, (name, start_s) in enumerate(firsts.items())
    )


def _points(name: str, readings: Sequence[Telemetry]) -> Points:
    """Return times and values of a field of the readings, with a NaN in each gap."""
    xs: list[float] = []
    ys: list[float] = []
    # A night keeps only some of the readings.
    whole_s = readings[-1].at_s - readings[0].at_s if readings else 0.0
    gap_s = max(_GAP_S, 4 * whole_s / max(len(readings) - 1, 1))
    for one in readings:
        y = getattr(one, name)
        if y is None or y > _MOST_SHOWN:
            continue
        if xs and one.at_s - xs[-1] > gap_s:
            xs.append(one.at_s)
            ys.append(math.nan)
        xs.append(one.at_s)
        ys.append(y)
    return tuple(xs), tuple(ys)


def _plot_of(theme: Theme, unit: Unit) -> LivePlot:
    plot = LivePlot(
        theme, AxesStyle(x_unit="s", y_unit=unit, has_legend=unit == "°C"),
        name=f"check.curves.{unit}", zoomable=True,
    )  # fmt: skip
    plot.setAccessibleName(f"{unit} over the time of the check")
    return plot


def show_lane(plot: LivePlot, lane: Lane) -> None:
    """Show the curves of a unit, as high as so many lines of the text, also for an audience."""
    axis = _AXES[lane.unit]
    plot.setFixedHeight(axis.lines * plot.fontMetrics().height())
    labels = axis.curves if len(lane.points) > 1 else {}

    def curve(name: str, points: Points) -> Curve:
        role = _ROLES.get(name, "gpu0")
        return Curve(labels.get(name, ""), role, lambda: points, smooth=True, gaps=True)

    plot.show_curves({name: curve(name, points) for name, points in lane.points.items()})
    plot.set_x_range(0.0, lane.end_s)
    plot.set_y_range(lane.low, lane.high)
    plot.set_levels([] if lane.limit is None else [Level(lane.limit, "", "muted")])
    plot.set_markers(lane.marks)
    plot.setAccessibleDescription(lane.words)


class CheckCurves(Card):
    """The curves of a check, each unit under its numbers."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._lanes: dict[Unit, tuple[Text, LivePlot]] = {}
        for unit in _AXES:
            words = Text("", "muted", name=f"check.words.{unit}", wraps=True)
            self._lanes[unit] = words, _plot_of(theme, unit)
            for part in self._lanes[unit]:
                self.column.addWidget(part)

    def show_lanes(self, lanes: Sequence[Lane]) -> None:
        """Show these units, and no other ones."""
        by_unit: dict[Any, Lane] = {lane.unit: lane for lane in lanes}
        for unit, (words, plot) in self._lanes.items():
            lane = by_unit.get(unit)
            words.setVisible(lane is not None)
            plot.setVisible(lane is not None)
            if lane is not None:
                words.setText(lane.words)
                show_lane(plot, lane)


def lane_picture(lane: Lane, theme: Theme, width: int, scale: int) -> QImage:
    """Return the curves of one unit as a picture, ``width`` units wide."""
    plot = _plot_of(theme, lane.unit)
    show_lane(plot, lane)
    plot.resize(width, plot.height())
    plot.lay_out()
    image = QImage(plot.size() * scale, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(theme.colour("card"))
    painter = QPainter(image)
    plot.render(painter, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
    painter.end()
    plot.deleteLater()
    return image
