"""Median time by size, a curve for each device, precision and mode, and the crossovers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.verdict import compared_cards, crossings_of, same_kind, verdict_of
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.model.benchmark.benchmark import result_label
from gpu_studio.ui.plots.live_plot import AxesStyle, Curve, CurveName, LivePlot, Marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.theme import Theme

# One for each curve, so that color is not the only difference.
_SYMBOLS = ("o", "s", "t1", "d", "p", "h", "star", "t", "+", "x", "t2", "t3")


class SizeView(LivePlot):
    """Both axes are logarithmic; a crossover has a band between its enclosing sizes."""

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            theme,
            AxesStyle(
                "size of the square matrices",
                x_unit="size",
                y_unit="s",
                logarithmic_x=True,
                logarithmic_y=True,
            ),
            name="benchmark.plot.sizes",
            zoomable=True,
            empty="The median time of each size appears here.",
            parent=parent,
        )
        self.setAccessibleName("Median time per call by size")
        self._benchmark, self._board = benchmark, board
        self._drawn: list[int] = []

    def caption_of(self, selected: Run | None) -> str:
        """Return what the plot shows of the work of one run, or of the latest, in words."""
        results = self._results(selected)
        if not results:
            return "No run has finished yet."
        latest = results[-1]
        whose = f" · recording: {latest.recording}" if latest.recording else ""
        return f"Time per call by size · {self._benchmark.title_of(latest.workload)}{whose}"

    def show_results(self, selected: Run | None) -> None:
        """Draw the medians of the work of one run; None shows the latest."""
        results = self._results(selected)
        state = [id(result) for result in results]
        if state == self._drawn and self.curve_keys:
            return
        self._drawn = state
        medians: dict[tuple[str, str, bool], dict[int, RunFinished]] = {}
        for result in results:
            curve = (result.device, result.dtype, result.transfers)
            medians.setdefault(curve, {})[result.size] = result
        several = len({dtype for _, dtype, _ in medians}) > 1
        curves: dict[str, Curve] = {}
        named: list[tuple[Curve, list[RunFinished]]] = []
        for curve, symbol in zip(sorted(medians), _SYMBOLS, strict=False):
            device, dtype, transfers = curve
            by_size = [medians[curve][size] for size in sorted(medians[curve])]
            label = self._label(by_size[-1], dtype if several else "")
            dashed = transfers or by_size[-1].recording is not None
            shown = Curve(
                label, self._theme.device_role(device), partial(_columns, by_size),
                symbol=symbol, dashed=dashed,
            )  # fmt: skip
            curves[f"{device} {dtype}{' with copies' if transfers else ''}"] = shown
            named.append((shown, by_size))
        self.show_curves(curves)
        self.set_names(_names(named))
        self.set_markers(list(self._markers_of(self._marked(results))))
        if results:
            self.set_x_label(f"size: {results[-1].size_text.replace('{size}', 'n')}")
        said = verdict_of(self._marked(results), self._benchmark.titles).sentence
        words = (self.caption_of(selected), said, self._medians_text(results))
        self.setAccessibleDescription(" ".join(words))

    def _results(self, selected: Run | None) -> list[RunFinished]:
        """Return the results of the selected or latest kind of work, in any dtype."""
        finished = [run.result for run in self._benchmark.runs if run.result is not None]
        last = finished[-1] if finished else None
        latest = selected.result if selected is not None else last
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
        cards = compared_cards(results)
        places = ((one, place) for one in cards for place in crossings_of(one.claims))
        for row, (one, place) in enumerate(places):
            size = format_size(round(place.size), one.card.size_text)
            name = result_label(one.card, self._board.rows)
            card = f"{name} with copies" if one.with_transfers else name
            winner = card if place.device_wins_above else "CPU"
            yield Marker(
                place.size,
                f"{winner} faster from about {size}",
                self._theme.device_role(one.card.device),
                low=place.low,
                high=place.high,
                dashed=one.with_transfers,
                row=row,
            )

    def _medians_text(self, results: Sequence[RunFinished]) -> str:
        return "; ".join(
            f"{self._label(result, result.dtype)} "
            f"{format_size(result.size, result.size_text)}: {format_duration(result.median_s)}"
            for result in results
        )


def _names(curves: Sequence[tuple[Curve, Sequence[RunFinished]]]) -> list[CurveName]:
    """Return the curves' names, that of the highest above it; each further one a size earlier."""
    highest_first = sorted(curves, key=lambda one: -one[1][-1].median_s)
    names = []
    for rank, (curve, by_size) in enumerate(highest_first):
        at = by_size[-1 - min(max(rank, 1), len(by_size) - 1)]
        names.append(
            CurveName(at.size, at.median_s, curve.label, curve.role, rank == 0, rises=True)
        )
    return names


def _columns(results: Sequence[RunFinished]) -> tuple[ArrayLike, ArrayLike]:
    return [result.size for result in results], [result.median_s for result in results]
