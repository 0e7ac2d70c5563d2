"""The runs as a table. Texts are built when a run changes, not when a cell is painted."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)

from gpu_studio.core.benchmark.ceilings import believed_share, share_text
from gpu_studio.core.benchmark.run import describe_run, mode_words, sign_of, spread_text
from gpu_studio.core.benchmark.verdict import speed_up
from gpu_studio.core.messages.run_messages import SQUARE
from gpu_studio.core.units import (
    format_duration,
    format_rate,
)
from gpu_studio.model.benchmark.run_labels import run_label
from gpu_studio.model.tool_tip import rich_tip

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard

ADDRESS_ROLE = Qt.ItemDataRole.UserRole
"""The device's address of a cell of `Column.DEVICE`, for its color: ``cpu`` or ``cuda:0``."""
SORT_ROLE = Qt.ItemDataRole.UserRole + 1
"""The sort key of a cell: the number behind its text."""
RUN_ORDER = -1
"""The pseudo column that sorts by the order in which the runs began."""

_NO_PARENT = QModelIndex()
_NOTHING = "–"
_SIGNS = {Qt.SortOrder.AscendingOrder: "↑", Qt.SortOrder.DescendingOrder: "↓"}


class Column(IntEnum):
    """The table's columns, left to right."""

    WORKLOAD = 0
    SIZE = 1
    DTYPE = 2
    DEVICE = 3
    MODE = 4
    MEDIAN = 5
    IQR = 6
    SAMPLES = 7
    THROUGHPUT = 8
    CEILING = 9
    SPEED_UP = 10
    STAMP = 11


_HEAD = {
    Column.WORKLOAD: ("Workload", "The work that ran"),
    Column.SIZE: ("Size", "Work per call; each workload explains its sizes"),
    Column.DTYPE: ("Precision", "Data type of the numbers"),
    Column.DEVICE: ("Device", "Where the workload ran"),
    Column.MODE: ("Mode", "Options of the workload, cold cache, with copies"),
    Column.MEDIAN: ("Median", "Half of the samples took less time per call"),
    Column.IQR: (
        "IQR",
        "How much the times varied: the range of their middle half, as a share of the median",
    ),
    Column.SAMPLES: ("Samples", "Number of timed batches of calls"),
    Column.THROUGHPUT: ("Throughput", "Work per second, from the median"),
    Column.CEILING: ("% of peak", "Throughput as a share of this device's peak"),
    Column.SPEED_UP: ("Speed-up", "How many times faster than the CPU, for the same work"),
    Column.STAMP: ("Trust", "Whether you can trust the number, and if not, why"),
}
_TEXT_COLUMNS = (Column.WORKLOAD, Column.DTYPE, Column.DEVICE, Column.MODE, Column.STAMP)
_LEFT, _RIGHT = (
    side | Qt.AlignmentFlag.AlignVCenter
    for side in (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight)
)
_ALIGNMENTS = tuple(_LEFT if column in _TEXT_COLUMNS else _RIGHT for column in Column)


class ResultsTable(QAbstractTableModel):
    """One row for each run of a `Benchmark`, oldest first."""

    def __init__(
        self, benchmark: Benchmark, board: DeviceBoard, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._benchmark, self._board = benchmark, board
        self._runs: list[Run] = []
        self._texts: list[tuple[str, ...]] = []
        self._keys: list[tuple[float | str, ...]] = []
        benchmark.run_begun.connect(self._add)
        benchmark.run_changed.connect(self._change)
        benchmark.runs_cleared.connect(self._clear)

    def run(self, row: int) -> Run:
        return self._runs[row]

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of runs."""
        return 0 if parent.isValid() else len(self._runs)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(Column)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a cell's text, alignment, sort key or device address, or its row's tool tip."""
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._texts[index.row()][index.column()]
        if role == SORT_ROLE:
            return self._keys[index.row()][index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _ALIGNMENTS[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tool_tip(self._runs[index.row()])
        if role == ADDRESS_ROLE and index.column() == Column.DEVICE:
            return self._runs[index.row()].request.device
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name, its meaning, or its alignment."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return _HEAD[Column(section)][0]
        if role == Qt.ItemDataRole.ToolTipRole:
            return _HEAD[Column(section)][1]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _ALIGNMENTS[section]
        return None

    def _add(self, run: Run) -> None:
        row = len(self._runs)
        self.beginInsertRows(_NO_PARENT, row, row)
        self._runs.append(run)
        self._texts.append(self._row_texts(run))
        self._keys.append(self._row_keys(run))
        self.endInsertRows()

    def _change(self, run: Run) -> None:
        self._renew(self._runs.index(run))
        if run.result is not None:  # other runs of the same work can be compared with it now
            work = _work(run)
            for row, other in enumerate(self._runs):
                if other is not run and other.result is not None and _work(other) == work:
                    self._renew(row)

    def _renew(self, row: int) -> None:
        texts = self._row_texts(self._runs[row])
        if texts != self._texts[row]:
            self._texts[row], self._keys[row] = texts, self._row_keys(self._runs[row])
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(Column) - 1))

    def _clear(self) -> None:
        self.beginResetModel()
        self._runs, self._texts, self._keys = [], [], []
        self.endResetModel()

    def _row_texts(self, run: Run) -> tuple[str, ...]:
        request, result, summary = run.request, run.result, run.summary
        compared = speed_up(result, self._benchmark.results) if result else None
        texts = {
            Column.WORKLOAD: self._benchmark.title_of(request.workload),
            Column.SIZE: run.size_label if run.size_text != SQUARE else str(request.size),
            Column.DTYPE: request.dtype,
            Column.DEVICE: run_label(run, self._board.rows),
            Column.MODE: mode_words(run),
            Column.MEDIAN: format_duration(summary.median_s) if summary else _NOTHING,
            Column.IQR: (
                spread_text(summary.iqr_s, summary.median_s, summary.samples)
                if summary
                else _NOTHING
            ),
            Column.SAMPLES: str(len(run.series)) if summary else _NOTHING,
            Column.THROUGHPUT: (
                format_rate(result.throughput, result.throughput_unit) if result else _NOTHING
            ),
            Column.CEILING: (share_text(result) if result else "") or _NOTHING,
            Column.SPEED_UP: compared.cell if compared else _NOTHING,
            Column.STAMP: sign_of(run),
        }
        return tuple(texts[column] for column in Column)

    def _row_keys(self, run: Run) -> tuple[float | str, ...]:
        """Return the sort key of each cell; missing numbers come last.

        A current run has no numbers as keys, so that its row does not move around.
        """
        result, summary = run.result, run.summary if run.state.is_over else None
        texts = self._texts[self._runs.index(run)]
        compared = speed_up(result, self._benchmark.results) if result else None
        numbers = {
            Column.SIZE: run.request.size,
            Column.MEDIAN: summary.median_s if summary else None,
            Column.IQR: summary.relative_iqr if summary else None,
            Column.SAMPLES: summary.samples if summary else None,
            Column.THROUGHPUT: result.throughput if result else None,
            Column.CEILING: believed_share(result) if result else None,
            Column.SPEED_UP: compared.claimed_ratio if compared else None,
        }
        return tuple(
            texts[column]
            if column not in numbers
            else math.inf
            if (number := numbers[column]) is None
            else float(number)
            for column in Column
        )

    def _tool_tip(self, run: Run) -> str:
        """Return all facts as Qt's HTML, with names from outside escaped."""
        label = run_label(run, self._board.rows)
        title = self._benchmark.title_of(run.request.workload)
        return rich_tip(describe_run(run, label, title))


def _work(run: Run) -> tuple[str, int, str]:
    return run.request.workload, run.request.size, run.request.dtype


class SortedResults(QSortFilterProxyModel):
    """Sorts a `ResultsTable` by the numbers behind the texts; unsorted at first."""

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
        """Return a column's name, with an arrow if the rows are sorted by it."""
        header = super().headerData(section, orientation, role)
        if role == Qt.ItemDataRole.DisplayRole and section == self.sortColumn():
            return f"{header} {_SIGNS[self.sortOrder()]}"
        return header

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column or by the order of the runs, and mark the header."""
        super().sort(column, order)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, self.columnCount() - 1)
