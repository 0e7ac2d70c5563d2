"""The table of runs, and all that is known of the selected one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, Qt, QTimer, Signal
from PySide6.QtWidgets import QHeaderView

from gpu_studio.core.run_words import describe_run
from gpu_studio.model.benchmark_devices import device_label
from gpu_studio.model.results_table import ADDRESS_ROLE, Column, ResultsTable
from gpu_studio.ui.parts import Card, Text, table
from gpu_studio.ui.swatch import SwatchDelegate

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.runs import Run
    from gpu_studio.model.benchmark import Benchmark
    from gpu_studio.model.sensors import Sensors
    from gpu_studio.ui.theme import Theme


_DETAIL_LINES = 4
_TABLE_HEIGHT = 96  # the head and two rows
_NARROWEST_STAMP = 100  # pixels: a running phase
_WIDEST_STAMP = 150  # pixels for which other columns make room; a failure's reason is longer


class BenchmarkResults(Card):
    """One row a run.

    Signals:
        run_selected(Run): a row was selected, None where no row is any more.
    """

    run_selected = Signal(object)

    def __init__(
        self,
        benchmark: Benchmark,
        sensors: Sensors,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.column.setContentsMargins(1, 1, 1, 8)
        self._sensors = sensors
        self._model = ResultsTable(benchmark, sensors, self)
        self._table = table(
            self._model, name="benchmark.results", accessible_name="Results, one run a row"
        )
        self._table.setItemDelegateForColumn(
            Column.DEVICE, SwatchDelegate(theme, ADDRESS_ROLE, self)
        )
        self._table.setMinimumHeight(_TABLE_HEIGHT)
        self.setFocusProxy(self._table)
        self._details = Text("", "muted", name="benchmark.details", wraps=True)
        self._details.setIndent(10)
        # So many lines are always there: the plot above does not jump with each selection.
        self._details.setMinimumHeight(_DETAIL_LINES * self._details.fontMetrics().lineSpacing())
        self._details.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.column.addWidget(self._table, 1)
        self.column.addWidget(self._details)
        self._details.hide()
        self._table.selectionModel().selectionChanged.connect(self._selection_changed)
        # Fitting the columns to each change would measure every row each time.
        header = self._table.horizontalHeader()
        header.setStretchLastSection(False)
        header.setResizeContentsPrecision(0)  # fit what is in sight, not a thousand rows
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(Column.STAMP, QHeaderView.ResizeMode.Stretch)
        self._model.rowsInserted.connect(self._rows_inserted)
        self._model.modelReset.connect(self._selection_changed)
        benchmark.run_changed.connect(self._run_changed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns into another width."""
        super().resizeEvent(event)
        self._fit_columns()
        self._follow()

    @property
    def selected(self) -> Run | None:
        """The run of the selected row."""
        rows = self._table.selectionModel().selectedRows()
        return self._model.run(rows[0].row()) if rows else None

    def clear_selection(self) -> None:
        """Follow what is running again."""
        self._table.clearSelection()

    def select(self, run: Run) -> None:
        """Select the row of a run."""
        self._table.selectionModel().select(
            self._model.index(self._model.row_of(run), 0),
            QItemSelectionModel.SelectionFlag.ClearAndSelect
            | QItemSelectionModel.SelectionFlag.Rows,
        )

    def _selection_changed(self) -> None:
        run = self.selected
        self._describe(run)
        self.run_selected.emit(run)
        # The line of details takes its room first.
        QTimer.singleShot(0, self, self._show_selected)

    def _show_selected(self) -> None:
        for index in self._table.selectionModel().selectedRows():
            self._table.scrollTo(index)

    def _run_changed(self, run: Run) -> None:
        if run is self.selected:
            self._describe(run)
        if run.state.is_over:
            self._fit_columns()
            self._follow()

    def _describe(self, run: Run | None) -> None:
        lines = []
        if run is not None:
            lines = describe_run(run, device_label(run.request.device, self._sensors.inventory))
        self._details.setText("\n".join(lines))
        self._details.setVisible(bool(lines))

    def _fit_columns(self) -> None:
        """Make every text fit; in a narrow window the number of samples makes room."""
        workloads = {self._model.run(row).request.workload for row in range(self._model.rowCount())}
        self._table.setColumnHidden(Column.WORKLOAD, len(workloads) < 2)
        self._table.setColumnHidden(Column.SAMPLES, False)
        self._table.resizeColumnsToContents()
        stamp = max(
            _NARROWEST_STAMP, min(self._table.sizeHintForColumn(Column.STAMP), _WIDEST_STAMP)
        )
        needed = stamp + sum(
            self._table.columnWidth(column) for column in Column if column != Column.STAMP
        )
        self._table.setColumnHidden(Column.SAMPLES, needed > self._table.viewport().width())
        # Fitting has narrowed it as well: set again, it takes the rest of the width.
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(Column.STAMP, QHeaderView.ResizeMode.Stretch)

    def _rows_inserted(self) -> None:
        self._fit_columns()
        self._follow()

    def _follow(self) -> None:
        """Keep the newest run in sight while no other was chosen."""
        if self.selected is None:
            self._table.scrollToBottom()
