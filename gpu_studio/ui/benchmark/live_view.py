"""Every sample of one run, or of each device's run at one size, with a kept run as overlay.

The x axis is the time since the first sample of this size; a bar on it says whose turn it was.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.run import mode_words
from gpu_studio.core.benchmark.turns import turns_of
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import counted, format_duration
from gpu_studio.model.benchmark.run_labels import run_label
from gpu_studio.ui.plots.curve_set import CurveSet, Look
from gpu_studio.ui.plots.live_plot import Level, LivePlot, Span
from gpu_studio.ui.plots.plot_curve import Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.benchmark.turns import Turn
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.plots.live_plot import CurveSource
    from gpu_studio.ui.theme import Theme

_GHOST = "ghost"
# Color is not the only difference: a card's points are squares.
_CPU_DOTS, _CARD_DOTS = "o", "s"
_SHORTEST_S = 1e-6  # of an axis
_GROWTH = 1.05  # of the axis beyond the last sample, while a run takes longer than its budget


class LiveView(LivePlot):
    """Time per call by the time at which it was measured; `show_runs` shows the present state."""

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(
            theme,
            name="benchmark.plot",
            x_unit="s",
            y_unit="s",
            steady=True,
            logarithmic_y=True,
            zoomable=True,
            empty="The time of each call appears here while it runs.",
            legend=0,
            parent=parent,
        )
        self.setAccessibleName("Time per call of every sample")
        self._benchmark, self._board = benchmark, board
        self._selected: Run | None = None
        self._ghost: tuple[Run, str] | None = None
        self._recording: str | None = None
        self._shown = CurveSet(self)
        self._turns: list[Turn] = []

    def caption_of(self, selected: Run | None) -> str:
        """Return what the plot shows of one run, or of each device's latest, in words."""
        runs = self._runs_in_question(selected)
        if not runs:
            return "Time per call"
        run = runs[-1]
        title = self._benchmark.title_of(run.request.workload)
        words = (title, run.size_label, run.request.dtype, mode_words(run))
        what = f"Time per call · {' · '.join(part for part in words if part)}"
        if run.recording:
            what += f" · recording: {run.recording}"
        calls = run.calls_per_sample
        if len(runs) > 1 or not calls:
            return what
        each = "one call" if calls == 1 else f"the mean of {calls} calls"
        return f"{what} · each sample is {each}"

    def show_runs(self, selected: Run | None, ghost: tuple[Run, str] | None) -> None:
        """Show the samples of one run, or of each device's latest; and a kept run behind them."""
        if selected is not self._selected:
            self.show_all()
            self._shown.show({})  # restores the order
        self._selected, self._ghost = selected, ghost
        runs = self._runs_in_question(selected)
        self._turns = turns_of([run for run in runs if run.is_clocked])
        self._show_samples(runs)
        self._show_medians(runs)
        self._show_time(runs)
        self._describe(runs)

    def _runs_in_question(self, selected: Run | None) -> list[Run]:
        """Return the selected run, or each device's latest run of the current work."""
        if selected is not None:
            return [selected]
        if not self._benchmark.runs:
            return []
        work = _work(self._benchmark.runs[-1])
        latest = {_key(run): run for run in self._benchmark.runs if _work(run) == work}
        return list(latest.values())

    @property
    def _is_raced(self) -> bool:
        """Whether the kept run did the shown work; other work would not be comparable."""
        ghost, runs = self._ghost, self._runs_in_question(self._selected)
        if ghost is None or not runs:
            return ghost is not None
        ours, theirs = runs[-1].request, ghost[0].request
        same = all(
            getattr(ours, name) == getattr(theirs, name)
            for name in ("workload", "size", "dtype", "cache")
        )
        return same and ours.options.items() <= theirs.options.items()

    def _show_samples(self, runs: Sequence[Run]) -> None:
        curves: dict[str, tuple[Look, CurveSource]] = {}
        recording = runs[-1].recording if runs else None
        if self._selected is None and runs and recording == self._recording:
            # A device that has not reached this size yet keeps its place, without samples.
            curves = {
                key: (look, _nothing) for key, look in self._shown.looks.items() if key != _GHOST
            }
        self._recording = recording
        for run in runs:
            address = run.request.device
            look = Look(
                self._label(run),
                self._theme.run_role(run),
                dashed=run.request.transfers,
                dots=_CPU_DOTS if is_cpu(address) else _CARD_DOTS,
            )
            starts = [turn.first for turn in self._turns if turn.run is run and turn.first]
            curves[_key(run)] = (look, partial(_samples, run, starts))
        if self._ghost is not None and self._is_raced:
            run, label = self._ghost
            ghost = Look(f"overlay: {label}", self._theme.run_role(run), faint=True)
            curves = {_GHOST: (ghost, partial(_samples, run, ())), **curves}
        self._shown.show(curves)

    def _show_time(self, runs: Sequence[Run]) -> None:
        """Show whose turn it was, on an axis as long as the measurement of this size."""
        self.set_spans(
            [Span(turn.begin_s, turn.end_s, self._theme.run_role(turn.run)) for turn in self._turns]
        )
        shown = [*runs, *([self._ghost[0]] if self._ghost is not None and self._is_raced else [])]
        ends_s = [float(run.series.times[-1]) for run in shown if len(run.series)]
        end_s = max(ends_s, default=0.0)
        if any(not run.state.is_over for run in runs):
            end_s = max(sum(run.request.budget_s for run in runs), _GROWTH * end_s)
        self.set_x_range(0.0, _axis_end(max(end_s, _SHORTEST_S) if ends_s else 1.0))

    def _label(self, run: Run) -> str:
        label = run_label(run, self._board.rows)
        return f"{label} · with copies" if run.request.transfers else label

    def _describe(self, runs: Sequence[Run]) -> None:
        sentences = [_median_words(self._label(run), run) for run in runs]
        if self._ghost is not None and self._is_raced:
            run, label = self._ghost
            sentences.append(_median_words(f"overlay {label}", run))
        medians = ", ".join(sentence for sentence in sentences if sentence)
        self.describe(f"{self.caption_of(self._selected)}: {medians or 'no samples yet'}")

    def _show_medians(self, runs: Sequence[Run]) -> None:
        """Draw a line at each median, with the device's name."""
        named = [(self._label(run), run) for run in runs]
        if self._ghost is not None and self._is_raced:
            run, label = self._ghost
            named.append((f"overlay: {label}", run))
        self.set_levels(
            [
                Level(
                    run.summary.median_s,
                    f"{label} {format_duration(run.summary.median_s)}"
                    + ("" if run.state.is_over else " so far"),
                    self._theme.run_role(run),
                )
                for label, run in named
                if run.summary is not None
            ]
        )


def _work(run: Run) -> Sequence[object]:
    request = run.request
    return (
        request.workload, request.size, request.dtype, sorted(request.options.items()),
        request.cache, run.recording,
    )  # fmt: skip


def _key(run: Run) -> str:
    return f"{run.request.device}{' with copies' if run.request.transfers else ''}"


def _median_words(label: str, run: Run) -> str:
    if run.summary is None:
        return ""
    samples = counted(len(run.series), "sample")
    return f"{label}: median {format_duration(run.summary.median_s)} of {samples}"


def _samples(run: Run, starts: Sequence[int]) -> Pieces:
    return Pieces(run.series, starts)


def _nothing() -> tuple[ArrayLike, ArrayLike]:
    return (), ()


def _axis_end(end_s: float) -> float:
    """Return the end of an axis that moves in steps, each a tenth of its decade."""
    step = 10.0 ** math.floor(math.log10(end_s)) / 2
    return math.ceil(end_s / step) * step
