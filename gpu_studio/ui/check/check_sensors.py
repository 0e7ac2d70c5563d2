"""Temperature, clock and power of the card during a check, with the limits that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout

from gpu_studio.core.check.stages import OVERNIGHT_MINUTES, ROUND_MINUTES
from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.plots.live_plot import Curve, Level, LivePlot
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from gpu_studio.core.check.check_run import CheckRun
    from gpu_studio.core.messages.check_messages import CheckedDevice, Vitals
    from gpu_studio.ui.theme import Theme

_PLOT_LINES, _LOW_PLOT_LINES = 8.5, 7.0
_WORDS, _PLOT = 2, 7  # shares of the width
_MIDDLE = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_TOP = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop
_ACROSS, _DOWN = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
_MOST_POINTS = 600
# Above the highest line is room for its name.
_COLD_C, _HEAT_ROOM, _CLOCK_ROOM = 20.0, 1.25, 1.1


class CheckSensors(Card):
    """A part for temperature and one for clock and power: the value now, and its curve.

    The parts are one above the other, or side by side in a low window.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.sensors")
        self._run: CheckRun | None = None
        self._temperature = Text("", "headline", name="check.temperature")
        self._highest = Text("", "muted", name="check.temperature.highest", wraps=True)
        self._clock = Text("", "headline", name="check.clock")
        self._power = Text("", "muted", name="check.power", wraps=True)
        self._heat = self._plot(theme, "check.temperature.plot", "°C", "")
        self._speed = self._plot(theme, "check.clock.plot", "MHz", "Minutes")
        self._both = QBoxLayout(_DOWN)
        self._both.setSpacing(2 * GAP)
        self.column.addLayout(self._both)
        self._parts = (
            self._part("Temperature", self._temperature, self._highest, self._heat),
            self._part("Clock", self._clock, self._power, self._speed),
        )
        self.set_low(False)

    def set_low(self, is_low: bool) -> None:
        """Put the parts side by side, or one above the other."""
        self._both.setDirection(_ACROSS if is_low else _DOWN)
        lines = _LOW_PLOT_LINES if is_low else _PLOT_LINES
        for part, words in self._parts:
            part.setDirection(_DOWN if is_low else _ACROSS)
            words.setDirection(_ACROSS if is_low else _DOWN)
            part.setStretch(0, 0 if is_low else _WORDS)
        for below in (self._highest, self._power):
            below.setAlignment(_MIDDLE if is_low else _TOP)
        for plot in (self._heat, self._speed):
            plot.setMinimumHeight(round(lines * self.fontMetrics().height()))

    def _part(self, title: str, value: Text, below: Text, plot: LivePlot) -> tuple[QBoxLayout, ...]:
        """Add a value with its curve; return the layout of both, and that of the words."""
        part, words = QBoxLayout(_ACROSS), QBoxLayout(_DOWN)
        self._both.addLayout(part, 1)
        part.setSpacing(GAP)
        part.addLayout(words, _WORDS)
        words.addWidget(Text(title, "muted"))
        words.addWidget(value)
        words.addWidget(below, 1)
        part.addWidget(plot, _PLOT)
        return part, words

    def show_run(self, run: CheckRun | None) -> None:
        """Show the sensors of a check; a device that reports none has no curves."""
        vitals = run.vitals[-1][1] if run is not None and run.vitals else None
        self.setVisible(vitals is not None)
        self._run = run
        if run is None or vitals is None:
            return
        device = run.device
        self._temperature.setText(_amount(vitals.temperature_c, "°C"))
        self._highest.setText(f"highest {_amount(run.highest_temperature_c, '°C')}")
        self._clock.setText(_amount(vitals.sm_clock_mhz, "MHz"))
        self._power.setText(f"power {_amount(vitals.power_w, 'W')}")
        self._show_limits(run, device)
        for plot, what in ((self._heat, self._temperature), (self._speed, self._clock)):
            plot.set_x_range(0.0, _shown_minutes(run))
            plot.describe(f"Now {what.text()}.")
            plot.refresh()

    def _show_limits(self, run: CheckRun, device: CheckedDevice | None) -> None:
        slowdown = device.slowdown_c if device is not None else None
        base = device.base_clock_mhz if device is not None else None
        heat, speed = [], []
        if slowdown is not None:
            heat.append(Level(slowdown, f"The card slows down at {slowdown:.0f}\u202f°C", "amber"))
        if base is not None:
            speed.append(Level(base, f"Base clock {base:.0f}\u202fMHz", "text"))
        self._heat.set_levels(heat)
        self._speed.set_levels(speed)
        hottest = max(run.highest_temperature_c or 0.0, slowdown or 0.0, 60.0)
        self._heat.set_y_range(_COLD_C, _HEAT_ROOM * hottest)
        clocks = [one.sm_clock_mhz for _, one in run.vitals[-_MOST_POINTS:] if one.sm_clock_mhz]
        most = max([*clocks, base or 0.0, device.clock_max_mhz or 0.0 if device else 0.0])
        self._speed.set_y_range(0.0, _CLOCK_ROOM * (most or 1000.0))

    def _plot(self, theme: Theme, name: str, unit: str, label: str) -> LivePlot:
        plot = LivePlot(theme, name=name, x_label=label, y_unit=unit, steady=True, legend=0)
        source = self._temperatures if unit == "°C" else self._clocks
        plot.set_curve("card", Curve("", device_role("cuda:0"), source, smooth=True, gaps=True))
        plot.setAccessibleName("Temperature" if unit == "°C" else "Clock")
        return plot

    def _temperatures(self) -> tuple[ArrayLike, ArrayLike]:
        return self._points(lambda vitals: vitals.temperature_c)

    def _clocks(self) -> tuple[ArrayLike, ArrayLike]:
        return self._points(lambda vitals: vitals.sm_clock_mhz)

    def _points(self, value: Callable[[Vitals], float | None]) -> tuple[ArrayLike, ArrayLike]:
        taken = _thinned(self._run.vitals) if self._run is not None else []
        points = [(at_s / 60, value(vitals)) for at_s, vitals in taken]
        shown = [(x, y) for x, y in points if y is not None]
        return [x for x, _ in shown], [y for _, y in shown]


def _thinned(vitals: Sequence[tuple[float, Vitals]]) -> Sequence[tuple[float, Vitals]]:
    """Return at most some hundred readings, with the last one."""
    step = max(1, len(vitals) // _MOST_POINTS)
    return [*vitals[:-1:step], *vitals[-1:]]


def _shown_minutes(run: CheckRun) -> float:
    """Return the end of the time axis: the chosen length; of a night, the rounds so far."""
    if run.plan.minutes < OVERNIGHT_MINUTES:
        return max(float(run.plan.minutes), run.elapsed_s / 60)
    return float(ROUND_MINUTES * (1 + int(run.elapsed_s / 60 // ROUND_MINUTES)))


def _amount(value: float | None, unit: str) -> str:
    return "n/a" if value is None else f"{value:.0f}\u202f{unit}"
