"""The buttons that choose a view of the runs, and what one does with all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton

from gpu_studio.ui.benchmark.benchmark_plots import View
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, button

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QAbstractButton, QWidget

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.ui.benchmark.export_button import ExportButton
    from gpu_studio.ui.theme import Theme

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


class BenchmarkViews(FlowRow):
    """Stands at the top of the page: what comes below, as high as it gets, moves no button.

    Signals:
        view_chosen(View): the user pressed the button of a view.
    """

    view_chosen = Signal(object)

    def __init__(
        self, benchmark: Benchmark, export: ExportButton, theme: Theme, parent: QWidget
    ) -> None:
        self._benchmark, self._export = benchmark, export
        self._clear = button(
            "Clear", benchmark.clear, name="benchmark.clear", tip="Remove these runs from the table"
        )
        self._clear.setIcon(icon("trash", theme))
        self._buttons = {view: _view_button(view) for view in _NAMES}
        self.controls = (*self._buttons.values(), self._clear, export)
        super().__init__(*self.controls, parent=parent)
        self._longs = {
            self._buttons[View.SIZES]: View.SIZES.value,
            self._clear: self._clear.text(),
            export: export.text(),
        }
        self._shorts = {self._buttons[View.SIZES]: _SHORT_SIZES, self._clear: "", export: ""}
        self._group = QButtonGroup(self)
        for shown in self._buttons.values():
            self._group.addButton(shown)
        self._buttons[View.LIVE].setChecked(True)
        self._group.buttonClicked.connect(self._choose)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep all buttons on one line: what is below has its place, with runs and without."""
        super().resizeEvent(event)
        for texts in (self._longs, self._shorts):
            for shown, text in texts.items():
                shown.setText(text)
            if sum(shown.sizeHint().width() + GAP for shown in self.controls) <= self.width():
                break

    def show_view(self, view: View) -> None:
        """Check the button of the current view."""
        self._buttons[view].setChecked(True)

    def show_runs(self) -> None:
        """Offer what there are runs for."""
        runs, busy = bool(self._benchmark.runs), self._benchmark.state.is_busy
        for part in (self._clear, self._export):
            part.setVisible(runs)
        for view in (View.SIZES, View.EXPLANATION):
            self._buttons[view].setEnabled(runs)
        self._clear.setEnabled(runs and not busy)
        self._export.setEnabled(runs)

    def _choose(self, chosen: QAbstractButton) -> None:
        self.view_chosen.emit(
            next(view for view, shown in self._buttons.items() if shown is chosen)
        )


def _view_button(view: View) -> QPushButton:
    name, tip = _NAMES[view]
    shown = QPushButton(view.value)
    shown.setObjectName(f"benchmark.view.{name}")
    shown.setAccessibleName(view.value)
    shown.setToolTip(tip)
    shown.setCheckable(True)
    return shown
