"""The runs as a table, a row for each size. Texts are built when a run changes, not when shown."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSortFilterProxyModel,
    Qt,
)

from gpu_studio.core.benchmark.ceilings import share_text
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import RunState, describe_run, sign_of
from gpu_studio.core.benchmark.verdict import reference_of, speed_up
from gpu_studio.core.messages.run_messages import SQUARE
from gpu_studio.core.units import (
    format_duration,
    format_rate,
)
from gpu_studio.model.benchmark.run_labels import run_label
from gpu_studio.model.devices.device_board import label_of
from gpu_studio.model.text_rows import rich_tip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtCore import QObject

    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard

ADDRESS_ROLE = Qt.ItemDataRole.UserRole
"""The device's address of a median, for its color: ``cpu`` or ``cuda:0``."""
SORT_ROLE = Qt.ItemDataRole.UserRole + 1
"""The sort key of a cell: the number behind its text."""
RUN_ORDER = -1
"""The pseudo column that sorts by the order in which the runs began."""

_NO_PARENT = QModelIndex()
_NOTHING = "–"
_SIGNS = {Qt.SortOrder.AscendingOrder: "↑", Qt.SortOrder.DescendingOrder: "↓"}


class Column(IntEnum):
    """The columns that are always there. Those of the devices follow, one each."""

    WORKLOAD = 0
    SIZE = 1
    DTYPE = 2
    MODE = 3
    FASTER = 4
    STAMP = 5


_HEAD = {
    Column.WORKLOAD: ("Workload", "The work that ran"),
    Column.SIZE: ("Size", "Work per call; each workload explains its sizes"),
    Column.DTYPE: ("Precision", "Data type of the numbers"),
    Column.MODE: ("Mode", "Options of the workload, cold cache"),
    Column.FASTER: ("Faster", "Which device is faster for the same work, and how many times"),
    Column.STAMP: ("Trust", "Whether you can trust the numbers, and if not, why"),
}
_MEDIAN_TIP = "Median: half of the samples took less time per call"
_TEXT_COLUMNS = (Column.WORKLOAD, Column.DTYPE, Column.MODE, Column.STAMP)
_LEFT, _RIGHT = (
    side | Qt.AlignmentFlag.AlignVCenter
    for side in (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight)
)
_ALIGNMENTS = tuple(_LEFT if column in _TEXT_COLUMNS else _RIGHT for column in Column)


class _Medians(NamedTuple):
    """A column of medians: a device, without or with copies, here or of a recording."""

    address: str
    transfers: bool
    recording: str | None


class _Row:
    """The runs of one work, at most one in each column of medians."""

    def __init__(self, work: tuple[object, ...]) -> None:
        self.work = work
        self.runs: dict[_Medians, Run] = {}
        self.texts: tuple[str, ...] = ()
        self.keys: tuple[float | str, ...] = ()

    @property
    def first(self) -> Run:
        """Return the oldest run, which says what the work is."""
        return next(iter(self.runs.values()))

    @property
    def latest(self) -> Run:
        """Return the run that began last, or else the one that will be first."""
        begun = [run for run in self.runs.values() if run.has_begun]
        return begun[-1] if begun else self.first


def facts_of(run: Run, board: DeviceBoard, benchmark: Benchmark) -> list[str]:
    """Return all that is known about a run, a sentence a line."""
    title = benchmark.title_of(run.request.workload)
    lines = describe_run(run, run_label(run, board.rows), title)
    if (result := run.result) is not None:
        share = share_text(result)
        of_peak = f", {share} of this device's peak" if share else ""
        lines.append(f"{format_rate(result.throughput, result.throughput_unit)}{of_peak}.")
    return lines


class ResultsTable(QAbstractTableModel):
    """A row for each size of a `Benchmark`, oldest first, with the median of each device.

    A work that is measured again has a row of its own, so that no run is hidden by another.
    """

    def __init__(
        self, benchmark: Benchmark, board: DeviceBoard, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._benchmark, self._board = benchmark, board
        self._rows: list[_Row] = []
        # Each with its first run, whose device names the column.
        self._medians: dict[_Medians, Run] = {}
        benchmark.run_begun.connect(self._add)
        benchmark.run_changed.connect(self._change)
        benchmark.runs_cleared.connect(self._clear)

    def run(self, row: int, column: int = 0) -> Run:
        """Return the run of a median; in another column the latest of the row."""
        shown = self._rows[row]
        median = self._median_at(column)
        return (shown.runs.get(median) if median is not None else None) or shown.latest

    def runs(self, row: int) -> list[Run]:
        """Return the runs of a row, in the order of the columns."""
        return [run for one in self._medians if (run := self._rows[row].runs.get(one)) is not None]

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of sizes."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of columns, with those of the devices."""
        return 0 if parent.isValid() else len(Column) + len(self._medians)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a cell's text, alignment, sort key or device address, or its row's tool tip."""
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return row.texts[column]
        if role == SORT_ROLE:
            return row.keys[column]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tool_tip(index.row(), column)
        median = self._median_at(column)
        if role == ADDRESS_ROLE and median is not None and median in row.runs:
            return median.address
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name, its meaning, or its alignment."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        is_tip = role == Qt.ItemDataRole.ToolTipRole
        median = self._median_at(section)
        if median is not None:
            return _MEDIAN_TIP if is_tip else self._label(median)
        return _HEAD[Column(section)][is_tip]

    def _add(self, run: Run) -> None:
        column = _Medians(run.request.device, run.request.transfers, run.recording)
        if column not in self._medians:
            last = self.columnCount()
            self.beginInsertColumns(_NO_PARENT, last, last)
            self._medians[column] = run
            for row in self._rows:
                row.texts, row.keys = (*row.texts, _NOTHING), (*row.keys, math.inf)
            self.endInsertColumns()
        work = _work(run)
        for number, row in enumerate(self._rows):
            if row.work == work and column not in row.runs:
                row.runs[column] = run
                self._renew(number)
                return
        row = _Row(work)
        row.runs[column] = run
        row.texts, row.keys = self._cells(row)
        number = len(self._rows)
        self.beginInsertRows(_NO_PARENT, number, number)
        self._rows.append(row)
        self.endInsertRows()

    def _change(self, run: Run) -> None:
        work = _work(run)
        for number, row in enumerate(self._rows):
            # Other runs of the same work can be compared with a result now.
            if run in row.runs.values() or (run.result is not None and row.work == work):
                self._renew(number)

    def _renew(self, number: int) -> None:
        row = self._rows[number]
        cells = self._cells(row)
        if cells[0] != row.texts:
            row.texts, row.keys = cells
            last = self.columnCount() - 1
            self.dataChanged.emit(self.index(number, 0), self.index(number, last))

    def _clear(self) -> None:
        self.beginResetModel()
        self._rows, self._medians = [], {}
        self.endResetModel()

    def _median_at(self, section: int) -> _Medians | None:
        return list(self._medians)[section - len(Column)] if section >= len(Column) else None

    def _label(self, medians: _Medians) -> str:
        """Return the name of a device, as its first run says it."""
        name = run_label(self._medians[medians], self._board.rows)
        return f"{name} + copies" if medians.transfers else name

    def _cells(self, row: _Row) -> tuple[tuple[str, ...], tuple[float | str, ...]]:
        """Return the text of each cell and its sort key; missing numbers come last.

        A current run has no numbers as keys, so that its row does not move around.
        """
        run = row.first
        faster = self._fastest(row)
        lead = faster[0].said_ratio if faster else None
        size = run.size_label if run.size_text != SQUARE else str(run.request.size)
        cells: dict[Column, tuple[str, float | str | None]] = {
            Column.WORKLOAD: _text(self._benchmark.title_of(run.request.workload)),
            Column.SIZE: (size, run.request.size),
            Column.DTYPE: _text(run.request.dtype),
            Column.MODE: _text(mode_words(run.request, with_copies=False)),
            Column.FASTER: (self._faster_words(*faster) if faster else _NOTHING, lead),
            Column.STAMP: _text(sign_of(max(row.runs.values(), key=_concern))),
        }
        every = [cells[column] for column in Column]
        every += [_median(row.runs.get(one)) for one in self._medians]
        texts, keys = zip(*every, strict=True)
        return texts, tuple(
            math.inf if key is None else key if isinstance(key, str) else float(key) for key in keys
        )

    def _fastest(self, row: _Row) -> tuple[Claim, Run] | None:
        """Return the fastest card's comparison with the CPU; without copies if it has both."""
        own = [run.result for run in row.runs.values() if run.result is not None]
        found = [
            (compared, run)
            for run in row.runs.values()
            if run.result is not None
            and (
                compared := speed_up(run.result, own)
                or speed_up(run.result, self._benchmark.results)
            )
        ]
        return max(
            found, key=lambda one: (not one[1].request.transfers, one[0].ratio), default=None
        )

    def _faster_words(self, compared: Claim, run: Run) -> str:
        if not compared.sign:
            return compared.words
        rows = self._board.rows
        devices = [result.device for result in self._benchmark.results]
        cpu = label_of(reference_of(run.request.device, devices), rows)
        return f"{run_label(run, rows) if compared.sign > 0 else cpu} {compared.times}"

    def _tool_tip(self, number: int, column: int) -> str:
        """Return all facts as Qt's HTML, with names from outside escaped."""
        is_of_one = self._median_at(column) in self._rows[number].runs
        shown = [self.run(number, column)] if is_of_one else self.runs(number)
        lines: list[str] = []
        for run in shown:
            lines += facts_of(run, self._board, self._benchmark)
        return rich_tip(lines)


def _alignment(column: int) -> Qt.AlignmentFlag:
    return _ALIGNMENTS[column] if column < len(Column) else _RIGHT


def _text(text: str) -> tuple[str, str]:
    return text, text


def _median(run: Run | None) -> tuple[str, float | None]:
    summary = run.summary if run is not None else None
    if run is None or summary is None:
        return _NOTHING, None
    return format_duration(summary.median_s), summary.median_s if run.state.is_over else None


def _work(run: Run) -> tuple[object, ...]:
    return run.request.kind, run.request.size, run.recording


def _concern(run: Run) -> int:
    """Return how much a run matters to its row: one under way, then what is wrong with others."""
    if run.state is RunState.FAILED:
        return 6
    if not run.state.is_over:
        return 5 if run.has_begun else 4
    if run.result is not None and run.result.verified is False:
        return 3
    stamp = run.stamp
    return 2 if stamp is None else 1 if stamp.doubts else 0


class SortedResults(QSortFilterProxyModel):
    """Sorts a `ResultsTable` by the numbers behind the texts; unsorted at first."""

    def __init__(self, results: ResultsTable, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._results = results
        self.setSourceModel(results)
        self.setSortRole(SORT_ROLE)

    def runs(self) -> Iterator[Run]:
        """Yield the runs in the order of the rows, and in a row in that of the devices."""
        for row in range(self.rowCount()):
            yield from self._results.runs(self.mapToSource(self.index(row, 0)).row())

    def run(self, index: QModelIndex) -> Run:
        """Return the run of a median; in another column the latest of the row."""
        return self._results.run(self.mapToSource(index).row(), index.column())

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
