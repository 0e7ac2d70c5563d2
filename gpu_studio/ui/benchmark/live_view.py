"""Every sample of one run, or of each device's run at one size, with a kept run as overlay."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.run import mode_words
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import counted, format_duration
from gpu_studio.model.benchmark.run_labels import run_label
from gpu_studio.ui.plots.curve_set import CurveSet, Look
from gpu_studio.ui.plots.live_plot import Level, LivePlot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.series import Series
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.plots.live_plot import CurveSource
    from gpu_studio.ui.theme import Theme

_GHOST = "ghost"
# Color is not the only difference: a card's points are squares.
_CPU_DOTS, _CARD_DOTS = "o", "s"


class LiveView(LivePlot):
    """Time per call by sample number."""

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
            x_label="sample",
            y_label="time per call",
            x_unit="count",
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
        benchmark.run_begun.connect(self._show_samples)
        benchmark.run_changed.connect(self._run_changed)
        benchmark.runs_cleared.connect(self._clear)

    @property
    def caption(self) -> str:
        """The plot's contents in words."""
        runs = self._runs_in_question()
        if not runs:
            return ""
        run = runs[-1]
        title = self._benchmark.title_of(run.request.workload)
        words = (title, run.size_label, run.request.dtype, mode_words(run))
        what = " · ".join(part for part in words if part)
        if run.recording:
            what += f" · recording: {run.recording}"
        calls = run.calls_per_sample
        if len(runs) > 1 or not calls:
            return what
        each = "one call" if calls == 1 else f"the mean of {calls} calls"
        return f"{what} · each sample is {each}"

    def select(self, run: Run | None) -> None:
        """Show the samples of one run; None follows the current run."""
        self._selected = run
        self.show_all()
        self._shown.show({})  # restores the legend's order
        self._show_samples()

    def show_ghost(self, run: Run | None, label: str = "") -> None:
        """Draw a kept run as a pale overlay; None removes it."""
        self._ghost = (run, label) if run is not None else None
        self._show_samples()

    def _runs_in_question(self) -> list[Run]:
        """Return the selected run, or each device's latest run of the current work."""
        if self._selected is not None:
            return [self._selected]
        if not self._benchmark.runs:
            return []
        work = _work(self._benchmark.runs[-1])
        latest = {_key(run): run for run in self._benchmark.runs if _work(run) == work}
        return list(latest.values())

    @property
    def _is_raced(self) -> bool:
        """Whether the kept run did the shown work; other work would not be comparable."""
        ghost, runs = self._ghost, self._runs_in_question()
        if ghost is None or not runs:
            return ghost is not None
        ours, theirs = runs[-1].request, ghost[0].request
        same = all(
            getattr(ours, name) == getattr(theirs, name)
            for name in ("workload", "size", "dtype", "cache")
        )
        return same and ours.options.items() <= theirs.options.items()

    def _show_samples(self) -> None:
        curves: dict[str, tuple[Look, CurveSource]] = {}
        runs = self._runs_in_question()
        recording = runs[-1].recording if runs else None
        if self._selected is None and recording == self._recording:
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
            curves[_key(run)] = (look, partial(_samples, run))
        if self._ghost is not None and self._is_raced:
            run, label = self._ghost
            ghost = Look(f"overlay: {label}", self._theme.run_role(run), faint=True)
            curves = {_GHOST: (ghost, partial(_samples, run)), **curves}
        self._shown.show(curves)
        self._describe()

    def _label(self, run: Run) -> str:
        label = run_label(run, self._board.rows)
        return f"{label} · with copies" if run.request.transfers else label

    def _run_changed(self) -> None:
        """Draw the new samples at once, while the run rests."""
        self._describe()
        if self.isVisible():
            self.refresh()

    def _describe(self) -> None:
        runs = self._runs_in_question()
        sentences = [_median_words(self._label(run), run) for run in runs]
        if self._ghost is not None and self._is_raced:
            run, label = self._ghost
            sentences.append(_median_words(f"overlay {label}", run))
        self._show_medians(runs)
        medians = ", ".join(sentence for sentence in sentences if sentence)
        self.describe(f"{self.caption}: {medians or 'no samples yet'}")

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
                    f"{label}: median {format_duration(run.summary.median_s)}"
                    + ("" if run.state.is_over else " so far"),
                    self._theme.run_role(run),
                )
                for label, run in named
                if run.summary is not None
            ]
        )

    def _clear(self) -> None:
        self._selected = None
        self._shown.show({})
        self._show_samples()


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


def _samples(run: Run) -> Series:
    return run.series


def _nothing() -> tuple[ArrayLike, ArrayLike]:
    return (), ()
