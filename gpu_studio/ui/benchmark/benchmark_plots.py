"""The views of the runs, one visible at a time, and the buttons that choose one."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton

from gpu_studio.ui.benchmark.explanation import Explanation
from gpu_studio.ui.benchmark.live_view import LiveView
from gpu_studio.ui.benchmark.size_view import SizeView
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, button
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.scroll_page import PageStack

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QAbstractButton, QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.theme import Theme


class View(Enum):
    """A view of the runs; its value is the text of its button."""

    LIVE = "Live"
    SIZES = "Time over size"
    EXPLANATION = "Explained"
    HISTORY = "History"


class BenchmarkPlots(PageStack):
    """Live samples, time over size, or one result explained.

    Signals:
        run_pointed(Run): the run of the size under the mouse; None if it left the sizes.
    """

    run_pointed = Signal(object)

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.live = LiveView(benchmark, board, theme)
        self._sizes = SizeView(benchmark, board, theme)
        self._explanation = Explanation(benchmark, board, theme)
        self._by_view = {
            View.LIVE: self.live,
            View.SIZES: self._sizes,
            View.EXPLANATION: self._explanation,
        }
        for page in self._by_view.values():
            self.add(page)
        self._last_plot: LivePlot = self.live
        self._sizes.run_pointed.connect(self.run_pointed)

    @property
    def views(self) -> tuple[QWidget, ...]:
        """All pages; one of them is visible."""
        return tuple(self._by_view.values())

    @property
    def explains(self) -> bool:
        """Whether the explanation is visible."""
        return self.shown is self._explanation

    @property
    def front(self) -> LivePlot:
        """The visible plot, or the last one before an explanation without a plot."""
        curves = self._explanation.plot
        if self.explains and curves is not None and not curves.isHidden():
            return curves
        return self._last_plot

    @property
    def front_caption(self) -> str:
        """What `front` shows, in words."""
        return self._caption_of(self.front)

    @property
    def caption(self) -> str:
        """The visible page's contents in words."""
        return self._caption_of(self.shown)

    def _caption_of(self, page: object) -> str:
        if page is self._sizes:
            return self._sizes.caption
        return self._explanation.caption if page is self._explanation else self.live.caption

    def show_view(self, view: View) -> None:
        """Show a page."""
        self.show_page(list(self._by_view).index(view))
        if isinstance(self.shown, LivePlot):
            self._last_plot = self.shown

    def select(self, run: Run | None) -> None:
        """Show one run; None follows the current run."""
        self.live.select(run)
        self._sizes.select(run)
        self._explanation.select(run)


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
        self, benchmark: Benchmark, export: QPushButton, theme: Theme, parent: QWidget
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
