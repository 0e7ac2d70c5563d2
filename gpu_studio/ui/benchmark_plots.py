"""The two views of the runs: every sample as it comes, and the medians over the size."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QStackedWidget, QWidget

from gpu_studio.core.crossover import find_crossover, ratios_of
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.model.benchmark_devices import device_label
from gpu_studio.ui.curve_set import CurveSet, Look
from gpu_studio.ui.live_plot import LivePlot
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from gpu_studio.core.protocol import RunFinished
    from gpu_studio.core.runs import Run
    from gpu_studio.core.series import Series
    from gpu_studio.model.benchmark import Benchmark
    from gpu_studio.model.sensors import Sensors
    from gpu_studio.ui.live_plot import CurveSource
    from gpu_studio.ui.theme import Theme

_MEDIAN = "median"
_LEGEND_COLUMNS = 3
# One a curve, so that colour is not the only difference.
_SYMBOLS = ("o", "s", "t1", "d", "p", "h", "star", "t", "+", "x", "t2", "t3")


class BenchmarkPlots(QStackedWidget):
    """Live samples of one run or of the runs at one size, or time over size."""

    def __init__(
        self,
        benchmark: Benchmark,
        sensors: Sensors,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._benchmark, self._sensors = benchmark, sensors
        self._selected: Run | None = None
        self._live = LivePlot(
            theme,
            name="benchmark.plot",
            x_label="sample",
            y_label="time per call",
            x_unit="count",
            y_unit="s",
            steady=True,
            zoomable=True,
            legend=_LEGEND_COLUMNS,
        )
        self._live.setAccessibleName("Time per call of every sample")
        self._over_size = LivePlot(
            theme,
            name="benchmark.plot.sizes",
            x_label="size of the square matrices",
            y_label="time per call",
            x_unit="size",
            y_unit="s",
            logarithmic=True,
            zoomable=True,
            legend=_LEGEND_COLUMNS,
        )
        self._over_size.setAccessibleName("Median time per call over the size")
        self._live_curves, self._size_curves = CurveSet(self._live), CurveSet(self._over_size)
        self.addWidget(self._live)
        self.addWidget(self._over_size)
        benchmark.run_begun.connect(self._show_samples)
        benchmark.run_changed.connect(self._run_changed)
        benchmark.runs_cleared.connect(self._clear)

    @property
    def views(self) -> tuple[LivePlot, ...]:
        """All plots, of which one is in front."""
        return self._live, self._over_size

    @property
    def front(self) -> LivePlot:
        """The plot that is seen."""
        return self._over_size if self.currentWidget() is self._over_size else self._live

    @property
    def caption(self) -> str:
        """What the view in front shows, in words."""
        if self.currentWidget() is self._over_size:
            results = self._results_in_question()
            if not results:
                return "Nothing has finished yet."
            return f"{results[-1].workload}: medians, every finished run"
        runs = self._runs_in_question()
        if not runs:
            return ""
        request = runs[-1].request
        what = f"{request.workload} · {format_size(request.size)} · {request.dtype}"
        calls = runs[-1].calls_per_sample
        if len(runs) > 1 or not calls:
            return what
        return f"{what} · a sample is {'one call' if calls == 1 else f'the mean of {calls} calls'}"

    def show_live(self) -> None:
        """Bring the samples to the front."""
        self.setCurrentWidget(self._live)

    def show_over_size(self) -> None:
        """Bring the medians over the size to the front."""
        self.setCurrentWidget(self._over_size)
        self._draw_over_size()

    def select(self, run: Run | None) -> None:
        """Show the samples of one run; None follows what is running."""
        self._selected = run
        self._live_curves.show({})  # in the legend's order again
        self._show_samples()
        self._draw_over_size()

    def _runs_in_question(self) -> list[Run]:
        """Return the selected run, or the latest run of each device at the work of the latest."""
        if self._selected is not None:
            return [self._selected]
        if not self._benchmark.runs:
            return []
        work = _work(self._benchmark.runs[-1])
        latest = {run.request.device: run for run in self._benchmark.runs if _work(run) == work}
        return list(latest.values())

    def _results_in_question(self) -> list[RunFinished]:
        """Return the results of the workload that was selected or ran last."""
        if self._selected is not None:
            workload = self._selected.request.workload
        elif self._benchmark.results:
            workload = self._benchmark.results[-1].workload
        else:
            return []
        return [result for result in self._benchmark.results if result.workload == workload]

    def _show_samples(self) -> None:
        curves: dict[str, tuple[Look, CurveSource]] = {}
        if self._selected is None:
            # A device that has not come to this size keeps its place, without samples.
            curves = {
                key: (look, _nothing)
                for key, look in self._live_curves.looks.items()
                if key != _MEDIAN
            }
        for run in self._runs_in_question():
            address = run.request.device
            look = Look(self._label(address, recorded=run.recording), device_role(address))
            curves[address] = (look, partial(_samples, run))
        if self._selected is not None:
            look = Look("median", "text", dashed=True)
            curves[_MEDIAN] = (look, partial(_median, self._selected))
        self._live_curves.show(curves)
        self._describe_samples()

    def _run_changed(self, run: Run) -> None:
        self._describe_samples()
        if run.result is not None:
            self._draw_over_size()

    def _draw_over_size(self) -> None:
        """Draw the medians if somebody looks; `show_over_size` does it otherwise."""
        if self.currentWidget() is not self._over_size:
            return
        results = self._results_in_question()
        medians: dict[tuple[str, str], dict[int, float]] = {}
        for result in results:
            medians.setdefault((result.device, result.dtype), {})[result.size] = result.median_s
        several = len({dtype for _, dtype in medians}) > 1
        recorded = {(result.device, result.dtype): result.recording for result in results}
        curves: dict[str, tuple[Look, CurveSource]] = {}
        for (device, dtype), symbol in zip(sorted(medians), _SYMBOLS, strict=False):
            recording = recorded[device, dtype]
            label = self._label(device, dtype if several else "", recording)
            look = Look(label, device_role(device), symbol, dashed=recording is not None)
            by_size = sorted(medians[device, dtype].items())
            curves[f"{device} {dtype}"] = (look, partial(_columns, by_size))
        self._size_curves.show(curves)
        self._mark_crossovers(results)
        self._over_size.describe(self._describe_medians(results))

    def _label(self, address: str, dtype: str = "", recorded: str | None = None) -> str:
        label = device_label(address, self._sensors.inventory)
        parts = (label, dtype, "recording" if recorded else "")
        return " · ".join(part for part in parts if part)

    def _mark_crossovers(self, results: Sequence[RunFinished]) -> None:
        """Mark where curves of one dtype cross; of several dtypes it would be a thicket."""
        if len({result.dtype for result in results}) > 1:
            results = []
        devices = dict.fromkeys(result.device for result in results if result.device != "cpu")
        self._over_size.set_markers(
            [
                (
                    crossing.size,
                    f"between {crossing.low} and {crossing.high}",
                    device_role(device),
                )
                for device in devices
                for crossing in find_crossover(ratios_of(results, device)).crossings
            ]
        )

    def _describe_samples(self) -> None:
        runs = self._runs_in_question()
        medians = ", ".join(
            f"{device_label(run.request.device, self._sensors.inventory)} "
            f"{format_duration(run.summary.median_s)} in the median of {len(run.series)} samples"
            for run in runs
            if run.summary is not None
        )
        self._live.describe(f"{self.caption}: {medians or 'no samples yet'}")

    def _describe_medians(self, results: Sequence[RunFinished]) -> str:
        return "; ".join(
            f"{self._label(result.device, result.dtype, result.recording)} "
            f"{format_size(result.size)}: {format_duration(result.median_s)}"
            for result in results
        )

    def _clear(self) -> None:
        self._selected = None
        for curves in (self._live_curves, self._size_curves):
            curves.show({})
        self._over_size.set_markers([])


def _work(run: Run) -> tuple[str, int, str]:
    return run.request.workload, run.request.size, run.request.dtype


def _samples(run: Run) -> Series:
    return run.series


def _median(run: Run) -> tuple[ArrayLike, ArrayLike]:
    summary = run.summary
    if summary is None:
        return (), ()
    return (1, summary.samples), (summary.median_s, summary.median_s)


def _nothing() -> tuple[ArrayLike, ArrayLike]:
    return (), ()


def _columns(points: list[tuple[int, float]]) -> tuple[ArrayLike, ArrayLike]:
    return [x for x, _ in points], [y for _, y in points]
