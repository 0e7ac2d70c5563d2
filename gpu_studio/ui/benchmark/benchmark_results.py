"""The table of runs, and the details of the selected run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QActionGroup, QKeySequence, QShortcut
from PySide6.QtWidgets import QHeaderView, QMenu

from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.model.benchmark.results_table import (
    ADDRESS_ROLE,
    RUN_ORDER,
    Column,
    ResultsTable,
    SortedResults,
    facts_of,
)
from gpu_studio.ui.benchmark.swatch import SwatchDelegate
from gpu_studio.ui.parts import Card, Text, letters, show_whole_rows, table
from gpu_studio.ui.scroll_page import keep_row_in_view

if TYPE_CHECKING:
    from PySide6.QtCore import QPoint
    from PySide6.QtGui import QResizeEvent, QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard
    from gpu_studio.ui.theme import Theme


# Hidden in this order in a narrow window; the details of a run show them as well.
_SPARE_COLUMNS = (Column.MODE, Column.DTYPE)
_LONGEST_MEDIAN = "888 ms"  # it appears during a run, after its row was fitted
_CELL_PADDING = 24  # pixels
_FITTED_ROWS = 40  # a thousand would hold the window
_DETAIL_LINES = 4
# A running phase. Other columns make room up to the second; a failure's reason is longer.
_STAMP_LETTERS = (14, 21)


class BenchmarkResults(Card):
    """One row for each size; the page scrolls, not the table.

    A click on a median selects the run of that device, elsewhere in a row the latest one.

    Signals:
        run_selected(Run): a run was selected; None if no row is selected.
        run_hovered(Run): the mouse is on a row; None if it left the rows.
    """

    run_selected = Signal(object)
    run_hovered = Signal(object)

    def __init__(
        self,
        benchmark: Benchmark,
        board: DeviceBoard,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.column.setContentsMargins(1, 1, 1, 8)
        self._benchmark, self._board = benchmark, board
        self._model = SortedResults(ResultsTable(benchmark, board, self), self)
        self._table = table(
            self._model, name="benchmark.results", accessible_name="Results, one row per size"
        )
        self._table.setItemDelegate(SwatchDelegate(theme, ADDRESS_ROLE, self))
        self.setFocusProxy(self._table)
        self._details = Text("", "muted", name="benchmark.details", wraps=True)
        self._details.setIndent(10)
        # Always this many lines: otherwise the plot above would jump with each selection.
        self._details.setMinimumHeight(_DETAIL_LINES * self._details.fontMetrics().lineSpacing())
        self._details.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.column.addWidget(self._table)
        self.column.addWidget(self._details)
        self.column.addStretch(1)
        self._details.hide()
        self._selected: Run | None = None
        selection = self._table.selectionModel()
        selection.selectionChanged.connect(self._selection_changed)
        selection.currentColumnChanged.connect(self._selection_changed)
        self._table.setMouseTracking(True)
        self._table.entered.connect(self._hover)
        self._table.viewportEntered.connect(self._leave)
        self._table.viewport().installEventFilter(self)
        self._prepare_head()
        self._make_sorting()
        # A run ends and the next one begins in the same turn of the event loop: fit once.
        self._fitting = QTimer(self)
        self._fitting.setSingleShot(True)
        self._fitting.timeout.connect(self._fit_columns)
        self._model.rowsInserted.connect(self._fitting.start)
        self._model.columnsInserted.connect(self._place_column)
        self._model.modelReset.connect(self._selection_changed)
        benchmark.run_changed.connect(self._run_changed)

    def _prepare_head(self) -> None:
        # Fitting the columns after each change would measure every row each time.
        header = self._table.horizontalHeader()
        header.setStretchLastSection(False)
        header.setResizeContentsPrecision(_FITTED_ROWS)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(Column.STAMP, QHeaderView.ResizeMode.Stretch)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns into the new width; another height matters by its scroll bar alone.

        A hidden table has its width only when it is shown, and is fitted then.
        """
        super().resizeEvent(event)
        if not self.isVisible():
            return
        if event.size().width() != event.oldSize().width():
            self._fit_columns()
        else:
            self._fitting.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Fit the columns to rows that arrived while the hidden table had no width.

        Its layout often gives it another width in this turn, and that fits them.
        """
        super().showEvent(event)
        self._fitting.start()

    @property
    def selected(self) -> Run | None:
        """The run of the selected row, and in it of the current column."""
        selection = self._table.selectionModel()
        if not selection.hasSelection():
            return None
        (row, *_), current = selection.selectedRows(), selection.currentIndex()
        return self._model.run(row.siblingAtColumn(max(current.column(), 0)))

    @property
    def runs(self) -> list[Run]:
        """All runs in display order."""
        return list(self._model.runs())

    def clear_selection(self) -> None:
        """Follow the current run again."""
        self._table.clearSelection()

    def _selection_changed(self) -> None:
        run = self.selected
        if run is self._selected:
            return
        self._selected = run
        self._describe(run)
        if run is not None and self._table.hasFocus():
            keep_row_in_view(self._table, self._table.currentIndex().row())
        self.run_selected.emit(run)

    def _hover(self, index: QModelIndex) -> None:
        self.run_hovered.emit(self._model.run(index))

    def _leave(self) -> None:
        self.run_hovered.emit(None)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice that the mouse left the table."""
        if event.type() is QEvent.Type.Leave:
            self._leave()
        return super().eventFilter(watched, event)

    def _run_changed(self, run: Run) -> None:
        if run is self.selected:
            self._describe(run)
        if run.state.is_over:
            self._fitting.start()

    def _describe(self, run: Run | None) -> None:
        lines = []
        if run is not None:
            lines = facts_of(run, self._board, self._benchmark)
        self._details.setText("\n".join(lines))
        self._details.setVisible(bool(lines))

    def offer_copies(self, actions: list[QAction]) -> None:
        """Offer the copy actions in the table's context menu, and the first of them by Ctrl+C.

        The Menu key or Shift+F10 opens the menu.
        """
        self._menu.addSeparator()
        self._menu.addActions(actions)
        copy = QShortcut(QKeySequence(QKeySequence.StandardKey.Copy), self._table)
        copy.setContext(Qt.ShortcutContext.WidgetShortcut)
        copy.activated.connect(actions[0].trigger)

    def _make_sorting(self) -> None:
        """Sort by a click on a column header, or from the menu by keyboard."""
        header = self._table.horizontalHeader()
        header.setSectionsClickable(True)
        header.sectionClicked.connect(self._sort_by_click)
        self._menu = QMenu(self._table)
        sorting = self._menu.addMenu("&Sort by")
        group = QActionGroup(self)
        for column in (RUN_ORDER, *Column):
            title = "Order of the runs"
            if column != RUN_ORDER:
                title = self._model.headerData(column, Qt.Orientation.Horizontal)
            action = sorting.addAction(title)
            action.setObjectName(f"benchmark.results.sort.{column}")
            action.setData(int(column))
            group.addAction(action)
        group.triggered.connect(self._sort_by_action)
        self._table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._table.customContextMenuRequested.connect(self._open_menu)

    def _open_menu(self, place: QPoint) -> None:
        self._menu.popup(self._table.viewport().mapToGlobal(place))

    def _sort_by_action(self, action: QAction) -> None:
        self._sort_by_click(action.data())

    def _sort_by_click(self, column: int) -> None:
        """Sort ascending, then descending, then by the order of the runs."""
        upwards, downwards = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
        if column != self._model.sortColumn():
            self._model.sort(column, upwards)
        elif self._model.sortOrder() is upwards and column != RUN_ORDER:
            self._model.sort(column, downwards)
        else:
            self._model.sort(RUN_ORDER, upwards)
        self._fit_columns()

    def _place_column(self, _: QModelIndex, first: int, last: int) -> None:
        """Show the medians of a device that is new left of what is said about all of them."""
        header = self._table.horizontalHeader()
        for column in range(first, last + 1):
            header.moveSection(header.visualIndex(column), header.visualIndex(Column.FASTER))

    def _fit_columns(self) -> None:
        """Make every text fit; a narrow window hides columns that the details repeat."""
        self._fitting.stop()
        runs = self.runs
        medians = range(len(Column), self._model.columnCount())
        unused: dict[int, bool] = {
            Column.WORKLOAD: len({run.request.workload for run in runs}) < 2,
            Column.DTYPE: len({run.request.dtype for run in runs}) < 2,
            Column.MODE: not any(mode_words(run.request, with_copies=False) for run in runs),
            Column.FASTER: len({run.request.device for run in runs}) < 2,
        }
        for column in Column:
            self._table.setColumnHidden(column, unused.get(column, False))
        self._table.resizeColumnsToContents()
        width = self._table.fontMetrics().horizontalAdvance(_LONGEST_MEDIAN) + _CELL_PADDING
        for number in medians:
            self._table.setColumnWidth(number, max(self._table.columnWidth(number), width))
        least, most = (letters(self._table, count) for count in _STAMP_LETTERS)
        stamp = max(least, min(self._table.sizeHintForColumn(Column.STAMP), most))
        needed = stamp + sum(
            self._table.columnWidth(number)
            for number in (*Column, *medians)
            if number != Column.STAMP and not unused.get(number)
        )
        keeps_dtype = len({run.request.dtype for run in runs}) > 1
        for column in _SPARE_COLUMNS:
            if column == Column.DTYPE and keeps_dtype:
                continue  # nothing else tells these rows apart
            if needed > self._table.viewport().width() and not unused.get(column):
                needed -= self._table.columnWidth(column)
                self._table.setColumnHidden(column, True)
        # Fitting narrowed this column, too; stretched again, it takes the remaining width.
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(Column.STAMP, QHeaderView.ResizeMode.Stretch)
        show_whole_rows(self._table)
