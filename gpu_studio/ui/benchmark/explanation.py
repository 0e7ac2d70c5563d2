"""One result explained: two stopwatches, the time breakdown, the peak, the findings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from gpu_studio.core.benchmark.ceilings import is_this_normal, share_text
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import (
    PARTS_BESIDE_MEDIAN,
    part_rows,
    parts_sentence,
)
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_bytes, format_duration
from gpu_studio.model.benchmark.run_labels import run_label
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.parts import Card, Text, show_whole_rows, table
from gpu_studio.ui.plots.live_plot import Curve, LivePlot
from gpu_studio.ui.result_bars import BarPart, ResultBar, ResultBars
from gpu_studio.ui.scroll_page import PageColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.theme import Theme

_HATCHES = {
    "copy in": Qt.BrushStyle.BDiagPattern,
    "copying": Qt.BrushStyle.BDiagPattern,
    "loading": Qt.BrushStyle.Dense6Pattern,
    "copy out": Qt.BrushStyle.FDiagPattern,
}
_DEVICE_PARTS = ("compute", "computing")
_ASKING = "launch"

_PLOT_HEIGHT = 190


class Explanation(PageColumn):
    """Shows the selected or latest result, and the others of the same work beside it.

    Args:
        benchmark: its results.
        board: names the devices.
        theme: gives the colors.
        selected: returns the run to explain; None explains the one that finished last.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        selected: Callable[[], Run | None],
    ) -> None:
        super().__init__("The result explained")
        self.setObjectName("benchmark.explanation")
        self._benchmark, self._board, self._theme = benchmark, board, theme
        self._selected = selected
        self._shown: list[object] = []
        self._is_filled = False

    def showEvent(self, event: QShowEvent) -> None:
        """Create the parts on first use, and show results that arrived while hidden."""
        super().showEvent(event)
        if not self._is_filled:
            self._is_filled = True
            self._title = Text("", "muted", name="benchmark.explanation.run", wraps=True)
            self.column.addWidget(self._title)
            self._make_stopwatches()
            self._make_parts()
            self._make_ceiling()
            self._findings = FindingsCard(self._theme)
            self.column.addWidget(self._findings)
            self.column.addStretch(1)
        self._show()

    @property
    def caption(self) -> str:
        """The name of the explained result."""
        run = self._run
        if run is None:
            return "No run has finished yet. Each finished run is explained here."
        parts = (
            self._benchmark.title_of(run.request.workload), run.size_label, run.request.dtype,
            mode_words(run.request), self._label(run),
        )  # fmt: skip
        return " · ".join(part for part in parts if part)

    def update_run(self) -> None:
        """Explain another run, or the same one beside new results."""
        if [self._run, len(self._benchmark.results), self._board.rows] != self._shown:
            self._show()

    # ── its cards ────────────────────────────────────────────────────────────────────────────

    def _make_stopwatches(self) -> None:
        card = _card("benchmark.naive", "Two stopwatches")
        self._naive_bars = ResultBars(self._theme, name="benchmark.naive.bars", is_dense=True)
        self._naive_bars.setAccessibleName("The measured time and the naive time")
        self._naive = Text("", name="benchmark.naive.sentence", wraps=True)
        card.column.addWidget(self._naive_bars)
        card.column.addWidget(self._naive)
        self.column.addWidget(card)

    def _make_parts(self) -> None:
        card = _card("benchmark.parts", "Time breakdown")
        self._part_bars = ResultBars(self._theme, name="benchmark.parts.bars", is_dense=True)
        self._part_bars.setAccessibleName("Parts of one call")
        self._part_sentence = Text("", name="benchmark.parts.sentence", wraps=True)
        self._part_rows = TextRows(("Device", "Part", "Time", "Share"), (2, 3), self)
        self._part_table = table(
            self._part_rows, name="benchmark.parts.table", accessible_name="Parts of one call"
        )
        self._part_table.horizontalHeader().setStretchLastSection(False)
        for part in (self._part_bars, self._part_sentence, self._part_table):
            card.column.addWidget(part)
        self.column.addWidget(card)

    def _make_ceiling(self) -> None:
        card = _card("benchmark.ceiling", "Is this normal?")
        self._ceiling_bars = ResultBars(
            self._theme, name="benchmark.ceiling.bars", is_dense=True, full=1.0
        )
        self._ceiling_bars.setAccessibleName("Share of the device's peak")
        self._ceiling = Text("", name="benchmark.ceiling.sentence", wraps=True)
        card.column.addWidget(self._ceiling_bars)
        card.column.addWidget(self._ceiling)
        self.column.addWidget(card)

    # ── their contents ───────────────────────────────────────────────────────────────────────

    @property
    def _run(self) -> Run | None:
        selected = self._selected()
        if selected is not None and selected.result is not None:
            return selected
        finished = (run for run in reversed(self._benchmark.runs) if run.result is not None)
        return next(finished, None)

    def _beside(self, run: Run) -> list[Run]:
        """Return the run and the latest other of the same work for each device and mode."""
        work = (run.request.workload, run.request.size, run.request.dtype, run.recording)
        latest: dict[tuple[str, str], Run] = {}
        for other in self._benchmark.runs:
            request = other.request
            theirs = (request.workload, request.size, request.dtype, other.recording)
            if other.result and theirs == work:
                latest[request.device, mode_words(request)] = other
        latest[run.request.device, mode_words(run.request)] = run
        return list(latest.values())

    def _label(self, run: Run) -> str:
        return run_label(run, self._board.rows)

    def _full_label(self, run: Run) -> str:
        mode = mode_words(run.request)
        return f"{self._label(run)} · {mode}" if mode else self._label(run)

    def _show(self) -> None:
        run = self._run
        self._shown = [run, len(self._benchmark.results), self._board.rows]
        self._title.setText(self.caption)
        self._title.show()
        for card in self.findChildren(Card):
            card.setVisible(run is not None)
        if run is not None and run.result is not None:
            self._show_stopwatches(run, run.result)
            self._show_parts(run)
            self._show_ceiling(run, run.result)
            beside = {
                self._full_label(other): other.result
                for other in self._beside(run)
                if other.result is not None
            }
            self._findings.show_result(run.result, beside)

    def _show_stopwatches(self, run: Run, result: RunFinished) -> None:
        naive = result.details.naive
        self._naive_bars.setVisible(naive is not None)
        if naive is None:
            self._naive.setText(
                "Off. Tick “Also time it naively” in More options and run again to see the time "
                "that a careless script would print."
            )
            return
        role = self._theme.run_role(run)
        hatch = Qt.BrushStyle.FDiagPattern
        bars = [
            ("honest: median", result.median_s, Qt.BrushStyle.SolidPattern),
            ("naive: printed by a script", naive.printed_s, hatch),
        ]
        if not is_cpu(run.request.device):  # the CPU returns only when it is done
            bars.append(("finished on the device", naive.finished_s, Qt.BrushStyle.Dense5Pattern))
        self._naive_bars.show_bars(
            [
                ResultBar(label, role, seconds, format_duration(seconds), hatch)
                for label, seconds, hatch in bars
            ]
        )
        self._naive.setText(naive.sentence)

    def _show_parts(self, run: Run) -> None:
        split = [
            other for other in self._beside(run) if other.result and other.result.details.parts_s
        ]
        bars, rows, sentences = [], [], []
        for other in split:
            assert other.result is not None
            label = self._full_label(other)
            bars.append(_parts_bar(label, other.result, self._theme.run_role(other)))
            rows += [(label, *row) for row in part_rows(other.result)]
            sentences.append(parts_sentence(other.result, label))
        if any(len(other.result.details.parts_s) > 1 for other in split if other.result):
            sentences.append(PARTS_BESIDE_MEDIAN)
        self._part_bars.setVisible(bool(bars))
        self._part_table.setVisible(bool(rows))
        self._part_bars.show_bars(bars)
        self._part_rows.set_rows(rows)
        show_whole_rows(self._part_table)
        self._part_sentence.setText(
            " ".join(filter(None, sentences)) or "This workload has no time breakdown."
        )

    def _show_ceiling(self, run: Run, result: RunFinished) -> None:
        known = [
            (other, shown, there.reached.share)
            for other in self._beside(run)
            if (there := other.result) is not None and there.reached is not None
            # A share that is not credible has no text, and gets no bar.
            if (shown := share_text(there))
        ]
        self._ceiling_bars.setVisible(bool(known))
        self._ceiling_bars.show_bars(
            [
                ResultBar(self._full_label(other), self._theme.run_role(other), share, shown)
                for other, shown, share in known
            ]
        )
        row = self._board.at(run.request.device) if run.recording is None else None
        sentence = is_this_normal(result, row.device if row is not None else None)
        self._ceiling.setText(
            f"{self._full_label(run)}: {sentence}"
            if sentence
            else "This device's peak is not known, so there is nothing to compare with."
        )


def _card(name: str, title: str) -> Card:
    card = Card(name=name)
    card.column.addWidget(Text(title, "title"))
    return card


def _parts_bar(label: str, result: RunFinished, role: str) -> ResultBar:
    parts = tuple(
        BarPart(
            name,
            part_s,
            _part_role(name, role),
            _HATCHES.get(name, Qt.BrushStyle.SolidPattern),
        )
        for name, part_s in result.details.parts_s.items()
    )
    whole_s = sum(result.details.parts_s.values())
    return ResultBar(label, role, whole_s, format_duration(whole_s), parts=parts)


def _part_role(name: str, role: str) -> str:
    if name in _DEVICE_PARTS:
        return role
    return "context" if name == _ASKING else "other"


class FindingsCard(Card):
    """The findings of a result; `plot` is created with the first result that has a curve."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="benchmark.findings")
        self._theme = theme
        self.plot: LivePlot | None = None
        self._text = Text("", name="benchmark.findings.text", wraps=True)
        self.column.addWidget(Text("Findings", "title"))
        self.column.addWidget(self._text)

    def show_result(self, result: RunFinished, beside: Mapping[str, RunFinished]) -> None:
        """Show the findings of one result.

        Args:
            result: the explained result.
            beside: all results of the same work by label, including this one.
        """
        lines = [*result.details.findings]
        peaks = [
            f"{label} {format_bytes(other.details.peak_allocated_bytes)}"
            for label, other in beside.items()
            if other.details.peak_allocated_bytes is not None
        ]
        if peaks:
            lines.append(f"Peak allocated memory: {', '.join(peaks)}.")
        lines.append(
            f"The first call of the warm-up took {format_duration(result.times.first_call_s)}. The "
            "median leaves it out."
        )
        self._text.setText("\n".join(lines))
        self._show_curves(result)

    def _show_curves(self, result: RunFinished) -> None:
        if result.details.curves and self.plot is None:
            self.plot = LivePlot(
                self._theme, name="benchmark.findings.plot", x_label="step", x_unit="count"
            )
            self.plot.setAccessibleName("Curves of the workload")
            self.plot.setFixedHeight(_PLOT_HEIGHT)
            self.column.addWidget(self.plot)
        if self.plot is None:
            return
        self.plot.clear()
        self.plot.setVisible(bool(result.details.curves))
        curves_in_words = []
        for name, values in result.details.curves.items():
            role = self._theme.device_role(result.device)
            self.plot.set_curve(name, Curve(name, role, partial(_steps, values), smooth=True))
            if values:
                curves_in_words.append(f"{name} from {values[0]:.3g} to {values[-1]:.3g}")
        self.plot.describe("; ".join(curves_in_words))


def _steps(values: tuple[float, ...]) -> tuple[ArrayLike, ArrayLike]:
    return range(1, len(values) + 1), values
