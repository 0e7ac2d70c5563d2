"""Median time by size, a curve for each device, precision and mode, and the crossovers."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from gpu_studio.core.benchmark.crossover import claims_by_size, crossings_of
from gpu_studio.core.benchmark.verdict import crossover_sentences, same_kind, verdict_of
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.model.benchmark.run_labels import result_label
from gpu_studio.ui.plots.curve_set import CurveSet, Look
from gpu_studio.ui.plots.live_plot import LivePlot, Marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.plots.live_plot import CurveSource
    from gpu_studio.ui.theme import Theme

_LEGEND_COLUMNS = 3
# One for each curve, so that color is not the only difference.
_SYMBOLS = ("o", "s", "t1", "d", "p", "h", "star", "t", "+", "x", "t2", "t3")


class SizeView(LivePlot):
    """Both axes are logarithmic; a crossover has a band between its enclosing sizes.

    Signals:
        run_pointed(Run): the run of the size under the mouse; None without one.
    """

    run_pointed = Signal(object)

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            theme,
            name="benchmark.plot.sizes",
            x_label="size of the square matrices",
            y_label="time per call",
            x_unit="size",
            y_unit="s",
            logarithmic=True,
            zoomable=True,
            empty="The median time of each size appears here.",
            legend=_LEGEND_COLUMNS,
            parent=parent,
        )
        self.setAccessibleName("Median time per call by size")
        self._benchmark, self._board = benchmark, board
        self._selected: Run | None = None
        self._shown = CurveSet(self)
        self.pointed.connect(self._point)
        benchmark.run_changed.connect(self._run_changed)
        benchmark.runs_cleared.connect(self._clear)

    def showEvent(self, event: QShowEvent) -> None:
        """Draw results that arrived while hidden."""
        super().showEvent(event)
        self.draw()

    @property
    def caption(self) -> str:
        """The plot's contents and crossovers in words."""
        results = self._results()
        if not results:
            return "No run has finished yet."
        sentences = crossover_sentences(verdict_of(self._marked(results)))
        if not sentences:
            recording = results[-1].recording
            whose = f" of the recording {recording}" if recording else ""
            title = self._benchmark.title_of(results[-1].workload)
            return f"{title}: medians, every finished run{whose}."
        return " ".join(sentences)

    def select(self, run: Run | None) -> None:
        """Show the work of one run; None shows the latest."""
        self._selected = run
        self.draw()

    def draw(self) -> None:
        """Draw the medians if visible."""
        if not self.isVisible():
            return
        results = self._results()
        medians: dict[tuple[str, str, bool], dict[int, RunFinished]] = {}
        for result in results:
            curve = (result.device, result.dtype, result.transfers)
            medians.setdefault(curve, {})[result.size] = result
        several = len({dtype for _, dtype, _ in medians}) > 1
        curves: dict[str, tuple[Look, CurveSource]] = {}
        for curve, symbol in zip(sorted(medians), _SYMBOLS, strict=False):
            device, dtype, transfers = curve
            by_size = [medians[curve][size] for size in sorted(medians[curve])]
            label = self._label(by_size[-1], dtype if several else "")
            dashed = transfers or by_size[-1].recording is not None
            look = Look(label, self._theme.device_role(device), symbol, dashed=dashed)
            key = f"{device} {dtype}{' with copies' if transfers else ''}"
            curves[key] = (look, partial(_columns, by_size))
        self._shown.show(curves)
        self.set_markers(list(self._markers_of(self._marked(results))))
        if results:
            self.set_x_label(_meaning(results[-1].size_text))
        self.describe(f"{self.caption} {self._medians_text(results)}")

    def _results(self) -> list[RunFinished]:
        """Return the results of the selected or latest kind of work, in any dtype."""
        finished = [run.result for run in self._benchmark.runs if run.result is not None]
        if self._selected is not None:
            latest = self._selected.result
        else:
            latest = finished[-1] if finished else None
        if latest is None:
            return []
        return [
            result
            for result in finished
            if (result.workload, result.options, result.cache, result.recording)
            == (latest.workload, latest.options, latest.cache, latest.recording)
        ]

    def _marked(self, results: Sequence[RunFinished]) -> list[RunFinished]:
        """Return the results of the latest dtype: markers for all would overlap."""
        return [result for result in results if same_kind(result, results[-1])]

    def _label(self, result: RunFinished, dtype: str = "") -> str:
        parts = (
            result_label(result, self._board.rows),
            dtype,
            "with copies" if result.transfers else "",
        )
        return " · ".join(part for part in parts if part)

    def _markers_of(self, results: Sequence[RunFinished]) -> Iterator[Marker]:
        row = 0
        cards = {result.device: result for result in results if not is_cpu(result.device)}
        for device, latest in cards.items():
            name = f"{result_label(latest, self._board.rows)}, " if len(cards) > 1 else ""
            for transfers in (False, True):
                claims = claims_by_size(results, device, with_transfers=transfers)
                for crossing in crossings_of(claims):
                    size = format_size(round(crossing.size), results[-1].size_text)
                    mode = "with copies" if transfers else "compute only"
                    yield Marker(
                        crossing.size,
                        f"{name}{mode}: ≈ {size}",
                        self._theme.device_role(device),
                        low=crossing.low,
                        high=crossing.high,
                        dashed=transfers,
                        row=row,
                    )
                    row += 1

    def _medians_text(self, results: Sequence[RunFinished]) -> str:
        return "; ".join(
            f"{self._label(result, result.dtype)} "
            f"{format_size(result.size, result.size_text)}: {format_duration(result.median_s)}"
            for result in results
        )

    def _point(self, x: float | None) -> None:
        """Tell the run whose size is nearest to the mouse."""
        shown = self._marked(self._results())
        if x is None or not shown:
            self.run_pointed.emit(None)
            return
        nearest = min(shown, key=lambda result: abs(math.log(result.size / x)))
        self.run_pointed.emit(next(run for run in self._benchmark.runs if run.result is nearest))

    def _run_changed(self, run: Run) -> None:
        if run.result is not None:
            self.draw()

    def _clear(self) -> None:
        self._selected = None
        self._shown.show({})
        self.set_markers([])


def _meaning(size_text: str) -> str:
    return f"size: {size_text.replace('{size}', 'n')}"


def _columns(results: Sequence[RunFinished]) -> tuple[ArrayLike, ArrayLike]:
    return [result.size for result in results], [result.median_s for result in results]
