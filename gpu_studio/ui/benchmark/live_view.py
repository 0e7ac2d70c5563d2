"""Every sample of one run, or of each device's run at one size, with a kept run behind them.

The x axis is the time since the first sample of this size; a bar on it says whose turn it was.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import turns_of
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import counted, format_duration
from gpu_studio.model.benchmark.benchmark import run_label
from gpu_studio.ui.plots.live_plot import AxesStyle, Curve, Level, LivePlot, Span
from gpu_studio.ui.plots.plot_curve import Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run, Turn
    from gpu_studio.core.series import Series
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.theme import Theme

# Color is not the only difference: a card's points are squares.
_CPU_DOTS, _CARD_DOTS = "o", "s"
_SHORTEST_S = 1e-6  # of an axis
_LEAST, _LEAST_DECADES = 1e-12, 0.3  # the shortest time; a factor of two fills the plot
_NAME_ROOM, _STEP = 0.3, 0.1  # of the span at each end; decades
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
            AxesStyle(x_unit="s", y_unit="s", logarithmic_y=True),
            name="benchmark.plot",
            zoomable=True,
            empty="The time of each call appears here while it runs.",
            parent=parent,
        )
        self.setAccessibleName("Time per call of every sample")
        self._benchmark, self._board = benchmark, board
        self._selected: Run | None = None
        self._kept: Run | None = None

    def caption_of(self, selected: Run | None) -> str:
        """Return what the plot shows of one run, or of each device's latest, in words."""
        runs = self._runs_in_question(selected)
        if not runs:
            return "Time per call"
        run = runs[-1]
        title = self._benchmark.title_of(run.request.workload)
        words = (title, run.size_label, run.request.dtype, mode_words(run.request))
        what = f"Time per call · {' · '.join(part for part in words if part)}"
        if run.recording:
            what += f" · recording: {run.recording}"
        calls = run.calls_per_sample
        if len(runs) > 1 or not calls:
            return what
        each = "one call" if calls == 1 else f"the mean of {calls} calls"
        return f"{what} · each sample is {each}"

    def show_runs(self, selected: Run | None, overlay: tuple[str, Run] | None = None) -> None:
        """Show the samples of one run, or of each device's latest; behind them a kept run.

        Of other work than theirs, the kept run is not shown.
        """
        if selected is not self._selected:
            self.show_all()
            self.show_curves({})  # restores the order
        self._selected = selected
        runs = self._runs_in_question(selected)
        named = [(self._label(run), run) for run in runs]
        turns = turns_of([run for run in runs if run.is_clocked])
        self._kept = None
        if overlay is not None and _is_same_work(runs, overlay[1]):
            self._kept = overlay[1]
            named.insert(0, overlay)
        self._show_samples(named, turns)
        # A bar shows whose turn it was.
        self.set_spans(
            [Span(turn.begin_s, turn.end_s, self._theme.run_role(turn.run)) for turn in turns]
        )
        self._show_axes(runs, [run.series for _, run in named if len(run.series)])
        self.set_levels([self._level(*one) for one in named if one[1].summary is not None])
        medians = ", ".join(_median_words(*one) for one in named if one[1].summary is not None)
        self.setAccessibleDescription(f"{self.caption_of(selected)}: {medians or 'no samples yet'}")

    def _runs_in_question(self, selected: Run | None) -> list[Run]:
        """Return the selected run, or each device's latest run of the current work."""
        if selected is not None:
            return [selected]
        if not self._benchmark.runs:
            return []
        work = _work(self._benchmark.runs[-1])
        latest = {_key(run): run for run in self._benchmark.runs if _work(run) == work}
        return list(latest.values())

    def _show_samples(self, named: Sequence[tuple[str, Run]], turns: Sequence[Turn]) -> None:
        curves: dict[str, Curve] = {}
        for label, run in named:
            starts = [turn.first for turn in turns if turn.run is run and turn.first]
            dots = _CPU_DOTS if is_cpu(run.request.device) else _CARD_DOTS
            curves["kept" if run is self._kept else _key(run)] = Curve(
                label, self._role(run), partial(Pieces, run.series, starts),
                dashed=run.request.transfers, dots=dots,
            )  # fmt: skip
        self.show_curves(curves)

    def _show_axes(self, runs: Sequence[Run], shown: Sequence[Series]) -> None:
        """Show all samples, on an axis as long as the measurement of this size."""
        end_s = max((float(one.times[-1]) for one in shown), default=0.0)
        if any(not run.state.is_over for run in runs):
            end_s = max(sum(run.request.timed_s for run in runs), _GROWTH * end_s)
        self.set_x_range(0.0, _axis_end(max(end_s, _SHORTEST_S) if shown else 1.0))
        if shown:
            lowest = min(float(one.values.min()) for one in shown)
            self.set_y_range(*_decades(lowest, max(float(one.values.max()) for one in shown)))

    def _role(self, run: Run) -> str:
        return "muted" if run is self._kept else self._theme.run_role(run)

    def _level(self, label: str, run: Run) -> Level:
        """Return a line at a run's median, with the device's name."""
        assert run.summary is not None
        median = format_duration(run.summary.median_s)
        so_far = "" if run.state.is_over else " so far"
        return Level(run.summary.median_s, f"{label} {median}{so_far}", self._role(run))

    def _label(self, run: Run) -> str:
        label = run_label(run, self._board.rows)
        return f"{label} · with copies" if run.request.transfers else label


def _work(run: Run) -> Sequence[object]:
    return run.request.kind, run.request.size, run.recording


def _is_same_work(runs: Sequence[Run], kept: Run) -> bool:
    """Return whether a kept run can stand behind others: other work would not be comparable."""
    ours, its = runs[-1].request if runs else kept.request, kept.request
    names = ("workload", "size", "dtype", "cache", "sustained")
    is_alike = all(getattr(ours, name) == getattr(its, name) for name in names)
    return is_alike and ours.options.items() <= its.options.items()


def _key(run: Run) -> str:
    return f"{run.request.device}{' with copies' if run.request.transfers else ''}"


def _median_words(label: str, run: Run) -> str:
    assert run.summary is not None
    samples = counted(len(run.series), "sample")
    return f"{label}: median {format_duration(run.summary.median_s)} of {samples}"


def _axis_end(end_s: float) -> float:
    """Return the end of an axis that moves in steps, each a tenth of its decade."""
    step = 10.0 ** math.floor(math.log10(end_s)) / 2
    return math.ceil(end_s / step) * step


def _decades(lowest: float, highest: float) -> tuple[float, float]:
    """Return the ends of a logarithmic axis that moves in steps, with room for names."""
    low, high = (math.log10(max(value, _LEAST)) for value in (lowest, highest))
    span = max(high - low, _LEAST_DECADES)
    middle, aside = (low + high) / 2, (0.5 + _NAME_ROOM) * span
    ends = math.floor((middle - aside) / _STEP) * _STEP, math.ceil((middle + aside) / _STEP) * _STEP
    return 10.0 ** ends[0], 10.0 ** ends[1]
