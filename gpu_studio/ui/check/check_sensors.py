"""Temperature, clock and power of the card during a check, with the limits that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

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

_PLOT_LINES = 8.5
_MOST_POINTS = 600
# Above the highest line is room for its name.
_COLD_C, _HEAT_ROOM, _CLOCK_ROOM = 20.0, 1.25, 1.1


class CheckSensors(Card):
    """A row for temperature and one for clock and power: the value now, and its curve."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.sensors")
        self._run: CheckRun | None = None
        self._temperature = Text("", "headline", name="check.temperature")
        self._highest = Text("", "muted", name="check.temperature.highest", wraps=True)
        self._clock = Text("", "headline", name="check.clock")
        self._power = Text("", "muted", name="check.power", wraps=True)
        self._heat = self._plot(theme, "check.temperature.plot", "°C", "")
        self._speed = self._plot(theme, "check.clock.plot", "MHz", "Minutes")
        grid = QGridLayout()
        grid.setHorizontalSpacing(2 * GAP)
        self.column.addLayout(grid)
        for row, (title, value, below, plot) in enumerate(
            (
                ("Temperature", self._temperature, self._highest, self._heat),
                ("Clock", self._clock, self._power, self._speed),
            )
        ):
            words = QWidget()
            column = QVBoxLayout(words)
            column.setContentsMargins(0, 0, 0, 0)
            for widget in (Text(title, "muted"), value, below):
                column.addWidget(widget)
            column.addStretch(1)
            grid.addWidget(words, row, 0)
            grid.addWidget(plot, row, 1)
            grid.setRowStretch(row, 1)
        grid.setColumnStretch(0, 2)
        grid.setColumnStretch(1, 7)

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
        made = LivePlot(theme, name=name, x_label=label, y_unit=unit, steady=True, legend=0)
        made.setMinimumHeight(round(_PLOT_LINES * self.fontMetrics().height()))
        source = self._temperatures if unit == "°C" else self._clocks
        made.set_curve("card", Curve("", device_role("cuda:0"), source, smooth=True, gaps=True))
        made.setAccessibleName("Temperature" if unit == "°C" else "Clock")
        return made

    def _temperatures(self) -> tuple[ArrayLike, ArrayLike]:
        return self._points(lambda vitals: vitals.temperature_c)

    def _clocks(self) -> tuple[ArrayLike, ArrayLike]:
        return self._points(lambda vitals: vitals.sm_clock_mhz)

    def _points(self, value: Callable[[Vitals], float | None]) -> tuple[ArrayLike, ArrayLike]:
        taken = _thinned(self._run.vitals) if self._run is not None else []
        told = [(at_s / 60, value(vitals)) for at_s, vitals in taken]
        shown = [(x, y) for x, y in told if y is not None]
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
