"""The verdict, how far to trust it, and the buttons that choose the view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.trust import trust_lines
from gpu_studio.core.benchmark.verdict import is_doubted, same_kind, verdict
from gpu_studio.model.tool_tip import rich_tip
from gpu_studio.ui.benchmark.benchmark_plots import View
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Role, Text, button

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QAbstractButton

    from gpu_studio.core.protocol import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.ui.benchmark.export_button import ExportButton
    from gpu_studio.ui.theme import Theme

# Letters in the largest type per pixel of two lines: a longer verdict gets smaller type.
_HEADLINE_LETTERS = 130 / 680
# Replaces the button's text if the buttons do not all fit; name and tool tip stay.
_SHORT_SIZES = "Sizes"
_NAMES = {
    View.LIVE: ("live", "Every sample as it arrives"),
    View.SIZES: ("sizes", "Median time for each size, and where the faster device changes"),
    View.EXPLANATION: (
        "explanation",
        "Two stopwatches, time breakdown, what is normal, findings",
    ),
    View.HISTORY: ("history", "Kept runs, recordings and published results to compare with"),
}


class BenchmarkHead(QWidget):
    """The part above the plots.

    Signals:
        view_chosen(View): the user pressed the button of a view.
    """

    view_chosen = Signal(object)

    def __init__(
        self,
        benchmark: Benchmark,
        export: ExportButton,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._benchmark, self._export = benchmark, export
        self._is_brief = False
        self._verdict = Text("", "headline", name="benchmark.verdict", wraps=True)
        self._trust = Text("", "muted", name="benchmark.trust", wraps=True)
        self._outcome = Text("", "muted", name="benchmark.export.outcome", wraps=True)
        self._clear = button(
            "Clear", benchmark.clear, name="benchmark.clear", tip="Remove these runs from the table"
        )
        self._clear.setIcon(icon("trash", theme))
        self._group = QButtonGroup(self)
        self._buttons = {view: self._view_button(view) for view in _NAMES}
        self._longs = {
            self._buttons[View.SIZES]: View.SIZES.value,
            self._clear: self._clear.text(),
            export: export.text(),
        }
        self._shorts = {self._buttons[View.SIZES]: _SHORT_SIZES, self._clear: "", export: ""}
        self._buttons[View.LIVE].setChecked(True)
        self._group.buttonClicked.connect(self._choose)
        export.told.connect(self.tell)
        self._arrange()

    def _view_button(self, view: View) -> QPushButton:
        name, tip = _NAMES[view]
        made = QPushButton(view.value)
        made.setObjectName(f"benchmark.view.{name}")
        made.setAccessibleName(view.value)
        made.setToolTip(tip)
        made.setCheckable(True)
        self._group.addButton(made)
        return made

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(self._verdict)
        column.addWidget(self._trust)
        column.addWidget(FlowRow(*self.controls))
        column.addWidget(self._outcome)
        self._outcome.hide()

    @property
    def controls(self) -> tuple[QWidget, ...]:
        """The controls in Tab order; among the views, Tab reaches the checked one."""
        return (*self._buttons.values(), self._clear, self._export)

    def show_view(self, view: View) -> None:
        """Check the button of the current view."""
        self._buttons[view].setChecked(True)

    def tell(self, text: str, bad: bool = False) -> None:
        """Show the outcome of an action."""
        self._outcome.set_role("failure" if bad else "muted")
        self._outcome.setText(text)
        self._outcome.setVisible(bool(text))

    def show_results(self) -> None:
        """Update the sentences: at the end of a run, not for each sample."""
        runs = self._benchmark.runs
        for part in (self._clear, self._export):
            part.setVisible(bool(runs))
        for view in (View.SIZES, View.EXPLANATION):
            self._buttons[view].setEnabled(bool(runs))
        self._show_verdict()
        lines = trust_lines(self.latest_kind())
        self._trust.setText("\u00a0\u00a0·  ".join(map(str, lines)))
        self._trust.set_role("muted" if all(line.good for line in lines) else "amber")
        self._trust.setVisible(bool(lines))

    def set_brief(self, in_brief: bool) -> None:
        """Show only the first sentence of the verdict if the plot needs the space."""
        if in_brief != self._is_brief:
            self._is_brief = in_brief
            self._show_verdict()

    def _show_verdict(self) -> None:
        results = self._benchmark.results
        whole = verdict(results)
        if not whole:
            runs = self._benchmark.runs
            whole = "No run has finished yet." if runs else "No results yet."
        brief = verdict(results, in_brief=True) if self._is_brief else ""
        is_cut = bool(brief) and brief != whole
        self._verdict.setText(f"{brief} …" if is_cut else whole)
        self._verdict.setToolTip(rich_tip([whole]) if is_cut else "")
        self._verdict.setAccessibleName(whole)
        self._verdict.set_tone("amber" if is_doubted(results) else "")
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the buttons' texts readable and the verdict within two lines."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        lines = 2 * len(self._verdict.text()) / (self.width() * _HEADLINE_LETTERS or 1)
        if lines <= 2 and not self._is_brief:
            role: Role = "headline"
        else:
            role = "title" if lines <= (2 if self._is_brief else 3) else "value"
        self._verdict.set_role(role)
        for made, text in self._longs.items():
            made.setText(text)
        if sum(control.sizeHint().width() + GAP for control in self.controls) > self.width():
            for made, text in self._shorts.items():
                made.setText(text)

    def show_busy(self, busy: bool) -> None:
        """Disable Clear while runs are still coming in."""
        self._clear.setEnabled(not busy and bool(self._benchmark.runs))
        self._export.setEnabled(bool(self._benchmark.runs))

    def latest_kind(self) -> list[RunFinished]:
        """Return the latest result of each size, device and mode that the verdict is about."""
        results = self._benchmark.results
        latest = {
            (result.size, result.device, result.transfers): result
            for result in results
            if same_kind(result, results[-1])
        }
        return list(latest.values())

    def _choose(self, chosen: QAbstractButton) -> None:
        self.view_chosen.emit(next(view for view, made in self._buttons.items() if made is chosen))
