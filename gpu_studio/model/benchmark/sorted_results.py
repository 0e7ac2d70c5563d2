"""The table of runs in another order; the head says by which column, and which way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSortFilterProxyModel, Qt

from gpu_studio.model.benchmark.results_table import SORT_ROLE, ResultsTable

if TYPE_CHECKING:
    from PySide6.QtCore import QModelIndex, QObject

    from gpu_studio.core.benchmark.runs import Run

_SIGNS = {Qt.SortOrder.AscendingOrder: "↑", Qt.SortOrder.DescendingOrder: "↓"}
RUN_ORDER = -1
"""The column to sort by for the order in which the runs began."""


class SortedResults(QSortFilterProxyModel):
    """The rows of a `ResultsTable`, by the numbers behind the texts; unsorted until told."""

    def __init__(self, results: ResultsTable, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._results = results
        self.setSourceModel(results)
        self.setSortRole(SORT_ROLE)

    @property
    def runs(self) -> list[Run]:
        """The runs in the order of the rows."""
        return [self.run(self.index(row, 0)) for row in range(self.rowCount())]

    def run(self, index: QModelIndex) -> Run:
        """Return the run of a row."""
        return self._results.run(self.mapToSource(index).row())

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name, with an arrow where the rows are sorted by it."""
        told = super().headerData(section, orientation, role)
        if role == Qt.ItemDataRole.DisplayRole and section == self.sortColumn():
            return f"{told} {_SIGNS[self.sortOrder()]}"
        return told

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column, or by the order of the runs; the heads say so."""
        super().sort(column, order)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, self.columnCount() - 1)
