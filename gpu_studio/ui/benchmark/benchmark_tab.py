"""The Benchmark tab: the same work on every device, with numbers that you can trust."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.notice import Notice
from gpu_studio.model.benchmark.benchmark import Benchmark
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.pages import BENCHMARK
from gpu_studio.ui.benchmark.benchmark_choices import BenchmarkChoices
from gpu_studio.ui.benchmark.benchmark_head import BenchmarkHead
from gpu_studio.ui.benchmark.benchmark_plots import (
    BenchmarkPlots,
    BenchmarkViews,
    View,
)
from gpu_studio.ui.benchmark.benchmark_results import BenchmarkResults
from gpu_studio.ui.benchmark.benchmark_run_panel import BenchmarkRunPanel
from gpu_studio.ui.benchmark.export_button import ExportButton
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, letters
from gpu_studio.ui.scroll_page import LazyPage, PageStack
from gpu_studio.ui.tabs import TabContents

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.benchmark.history_page import HistoryPage
    from gpu_studio.ui.theme import Theme

_LEFT_LETTERS = 36
_PLOT_TO_TABLE = (62, 38)
# In a window that is this narrow, in pixels or in letters, the choices are a bar on top.
_NARROW, _NARROW_LETTERS = 1024, 132
_LEAST_PLOT = 242  # pixels: a lower one is unreadable
_WITH_PLOTS = (View.LIVE, View.SIZES, View.EXPLANATION)
_INDENT = 8


class BenchmarkTab(TabContents):
    """Choices on the left; on the right the verdict, the curves and the table."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio, self._theme = studio, theme
        self.benchmark = Benchmark(studio, self)
        self._choices = BenchmarkChoices(studio, theme, self)
        self._history = HistoryModel(studio, self.benchmark, self)
        self._comparison = QuickComparison(studio, self)
        self._panel = BenchmarkRunPanel(studio, self.benchmark, theme, self)
        self._plots = BenchmarkPlots(self.benchmark, studio.board, theme, self)
        self._results = BenchmarkResults(self.benchmark, studio.board, theme, self)
        export = ExportButton(
            studio,
            lambda: self._results.runs,
            self._plots,
            theme,
            head=lambda: self._head.portrait(),
        )
        self._results.offer_copies(export.copy_actions)
        self._head = BenchmarkHead(studio, self.benchmark, theme, self)
        self._views = BenchmarkViews(self.benchmark, export, theme, self)
        export.notified.connect(self._panel.show_outcome)
        self._caption = Text("", "muted", name="benchmark.plot.caption", wraps=True)
        self._caption.setContentsMargins(_INDENT, 0, 0, 0)
        self._view = View.LIVE
        self._view_was_chosen = False
        self._history_page = LazyPage(
            "gpu_studio.ui.benchmark.history_page:HistoryPage",
            self._history, theme, parent=self,
        )  # fmt: skip
        self._history_page.created.connect(self._place_actions)
        QShortcut(
            QKeySequence(Qt.Key.Key_Escape),
            self,
            self._escape,
            context=Qt.ShortcutContext.WidgetWithChildrenShortcut,
        )
        self.pages_later = (self._history_page,)
        self._connect()
        self._choices_changed()
        self._arrange()

    def _connect(self) -> None:
        self._choices.changed.connect(self._choices_changed)
        self._choices.run_wanted.connect(self._run)
        self._panel.run_wanted.connect(self._run)
        self._views.view_chosen.connect(self._choose_view)
        self._head.run_again_wanted.connect(self._run_again)
        self._head.invitation.published_wanted.connect(self._choose_history)
        self._head.invitation.recording_wanted.connect(self._choose_recording)
        self._history.published.begun.connect(self._plan_begun)
        self._history.player.begun.connect(self._plan_begun)
        self._history.ghost_changed.connect(self._show_ghost)
        self._history.notified.connect(self._show_history_notice)
        self._results.run_selected.connect(self._run_selected)
        self._results.run_hovered.connect(self._run_hovered)
        self._plots.run_pointed.connect(self._run_hovered)
        self.benchmark.run_changed.connect(self._run_changed)
        self.benchmark.run_begun.connect(self._run_begun)
        self.benchmark.runs_cleared.connect(self._show_results)
        self.benchmark.runs_cleared.connect(self._show_code)
        self.benchmark.plan_changed.connect(self._plan_changed)

    def _arrange(self) -> None:
        below = QVBoxLayout(self)
        below.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        below.setSpacing(GAP)
        below.addWidget(self._views)
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        below.addLayout(self._line, 1)
        self._line.setSpacing(MARGIN)
        self._line.addWidget(self._arrange_left())
        column = QVBoxLayout()
        column.setSpacing(GAP)
        self._line.addLayout(column, 1)
        self._arrange_right(column)
        self._order_by_tab_key()
        self._fold()
        self._show_results()

    def _order_by_tab_key(self) -> None:
        """Let the Tab key follow the reading order."""
        first_choice, last_device, more, last_option = self._choices.controls
        before = (*self._views.controls, *self._panel.controls, first_choice)
        after = (*self._head.controls, *self._plots.views, self._results)
        for first, second in (*itertools.pairwise(before), (last_device, more)):
            QWidget.setTabOrder(first, second)
        parts = (last_option, self._panel.last_control, *after)
        for first, second in itertools.pairwise(parts):
            QWidget.setTabOrder(first, second)

    def _arrange_left(self) -> QWidget:
        left = self._left = Card(name="benchmark.choices")
        left.column.setSpacing(GAP)
        self._bar = FlowRow(spacing=2 * GAP)
        self._is_bar = True  # as the bar has nothing yet, the first fold always moves the parts
        left.column.addWidget(self._bar)
        self._below_bar = QWidget()  # “More options”, and beside it what Run will do
        line = QHBoxLayout(self._below_bar)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(2 * GAP)
        left.column.addWidget(self._below_bar)
        left.column.addWidget(self._panel)
        left.column.addWidget(self._choices)
        left.column.addWidget(self._choices.more)
        left.column.addWidget(self._panel.trouble)
        left.column.addStretch(1)
        self._set_bar(False)
        return left

    def _fold(self) -> None:
        """Make the choices a bar on top of a narrow page, or a column at its left."""
        is_bar = self.width() <= max(_NARROW, letters(self, _NARROW_LETTERS))
        if is_bar != self._is_bar:
            self._set_bar(is_bar)

    def _set_bar(self, is_bar: bool) -> None:
        self._is_bar = is_bar
        focused = self.window().focusWidget()
        for part in (self._choices, self._panel, self._choices.more):
            part.set_bar(is_bar)
        if is_bar:
            self._bar.set_widgets(self._panel.buttons, self._choices)
            line = self._below_bar.layout()
            assert isinstance(line, QHBoxLayout)
            line.addWidget(self._choices.more.handle, 0, Qt.AlignmentFlag.AlignTop)
            line.addWidget(self._panel, 1)
        else:
            self._bar.set_widgets()
            self._left.column.insertWidget(2, self._panel)
            self._left.column.insertWidget(3, self._choices)
        self._bar.setVisible(is_bar)
        self._below_bar.setVisible(is_bar)
        policies, directions = QSizePolicy.Policy, QBoxLayout.Direction
        # In a column exactly as wide as the widest choice. The choices arrive with the engine.
        self._left.setMinimumWidth(0 if is_bar else letters(self, _LEFT_LETTERS))
        self._left.setSizePolicy(
            policies.Preferred if is_bar else policies.Fixed,
            policies.Preferred,
        )
        self._line.setDirection(directions.TopToBottom if is_bar else directions.LeftToRight)
        self._show_choices()
        if focused is not None and self._left.isAncestorOf(focused):
            focused.setFocus()  # a widget that gets another parent loses it

    def _show_choices(self) -> None:
        """Show what is to be run, unless it would only take the room of the view."""
        is_above = self._is_bar and self._view is View.HISTORY
        self._left.setVisible(not is_above)

    def _arrange_right(self, column: QVBoxLayout) -> None:
        column.addWidget(self._head)
        plots = Card()
        plots.column.setContentsMargins(6, 8, 6, 4)
        plots.setMinimumHeight(_LEAST_PLOT)
        plots.column.addWidget(self._caption)
        plots.column.addWidget(self._plots, 1)
        runs = QWidget()
        halves = QVBoxLayout(runs)
        halves.setContentsMargins(0, 0, 0, 0)
        halves.setSpacing(GAP)
        for part, share in zip((plots, self._results), _PLOT_TO_TABLE, strict=True):
            halves.addWidget(part, share)
        self._pages = PageStack()
        self._pages.add(runs)
        self._pages.add(self._history_page)
        column.addWidget(self._pages, 1)
        self._right = column

    def _place_actions(self, page: HistoryPage) -> None:
        self._right.insertWidget(0, page.action_row)
        page.action_row.setVisible(self._view is View.HISTORY)

    def _choose_history(self) -> None:
        self._choose_view(View.HISTORY)

    def _choose_recording(self) -> None:
        self._choose_history()
        self._history_page.make().ask_files()

    def _run(self) -> None:
        if not self._panel.can_run:
            return
        self._choices.keep()
        self._plan_begun()
        self.benchmark.start(self._choices.run_plan)

    def _run_again(self) -> None:
        if self.benchmark.can_run_again:
            self._plan_begun()
            self.benchmark.run_again()

    def go_to(self, destination: Destination) -> None:
        """Compare the CPU and the cards, or open files."""
        if destination.page.part or destination.paths:
            self._choose_history()
            self._history.open_files(destination.paths)
        plan = self._comparison.plan
        if destination.starts and plan.devices and not self.benchmark.state.is_busy:
            self._plan_begun()
            self.benchmark.start(plan)

    def _plan_begun(self) -> None:
        """Show the live view for the plan that starts now."""
        self._view_was_chosen = False
        self._results.clear_selection()
        self._show_view(View.LIVE)
        self._panel.show_outcome(Notice())

    def _escape(self) -> None:
        if self.benchmark.state.is_busy:
            self.benchmark.stop()
        else:
            self._results.clear_selection()

    def _choices_changed(self) -> None:
        plan = self._choices.plan
        self._panel.show_plan(plan, self._choices.problem, is_sweep=self._choices.is_sweep)
        self._head.show_devices(plan.devices, is_known=bool(plan.workload))

    def _choose_view(self, view: View) -> None:
        self._view_was_chosen = True
        self._show_view(view)

    def _show_view(self, view: View) -> None:
        self._view = view
        self._views.show_view(view)
        has_plot = view in _WITH_PLOTS
        self._head.show_result(has_plot)
        self._show_choices()
        if has_plot:
            self._plots.show_view(view)
        self._show_page()
        self._show_caption()
        page: HistoryPage | None = self._history_page.page  # type: ignore[assignment]
        if page is not None:
            page.action_row.setVisible(view is View.HISTORY)

    def _show_caption(self) -> None:
        self._caption.setText(self._plots.caption)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the choices above the results, or beside them."""
        super().resizeEvent(event)
        self._fold()

    def _show_page(self) -> None:
        """Show the runs, the history or the comparison; before the first run, the top alone."""
        filled = bool(self.benchmark.runs) or self._history.ghost is not None
        is_empty = not filled and self._view in _WITH_PLOTS
        self._head.set_empty(is_empty)
        self._pages.setVisible(not is_empty)
        self._right.setStretchFactor(self._head, int(is_empty))
        if not is_empty:
            self._pages.show_page(int(self._view is View.HISTORY))

    def _show_history_notice(self, notice: Notice) -> None:
        if self._view is not View.HISTORY:  # the History page shows it itself
            self._panel.show_outcome(notice)

    def _show_ghost(self) -> None:
        run, label = self._history.ghost or (None, "")
        self._plots.live.show_ghost(run, label)
        if run is not None:
            self._choose_view(View.LIVE)
        self._show_page()

    def _run_selected(self, run: Run | None) -> None:
        self._plots.select(run)
        self._head.choose(run)
        self._show_code()
        if run is not None and not self._plots.explains:
            self._show_view(View.LIVE)
        self._show_caption()

    def _run_hovered(self, run: Run | None) -> None:
        """Show the size under the cursor at the top, and then the selected one again."""
        self._head.choose(run or self._results.selected)

    def _show_code(self) -> None:
        """Show the code of the selected run, or else of the last one."""
        begun = (run for run in reversed(self.benchmark.runs) if run.has_begun)
        run = self._results.selected or next(begun, None)
        self._studio.snippets.show(run.snippet if run is not None else "", BENCHMARK)

    def _run_begun(self) -> None:
        self._show_caption()
        self._show_code()
        if len(self.benchmark.runs) == 1:
            self._show_results()

    def _run_changed(self, run: Run) -> None:
        self._show_caption()
        self._show_code()
        if run.state.is_over:
            self._show_results()

    def _plan_changed(self) -> None:
        busy = self.benchmark.state.is_busy
        self._views.show_runs()
        self._head.show_hero()
        if not busy and not self._view_was_chosen and self._results.selected is None:
            sizes = {result.size for result in self._head.latest_kind()}
            if len(sizes) > 1:
                self._show_view(View.SIZES)

    def _show_results(self) -> None:
        """Update the sentences above the plot: at the end of a run, not for each sample."""
        self._show_page()
        self._head.show_results()
        self._plan_changed()
