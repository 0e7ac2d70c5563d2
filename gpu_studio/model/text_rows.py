"""Tables of plain text, for what a chart says in numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

_NO_PARENT = QModelIndex()


class TextTable(QAbstractTableModel):
    """Text under a head; columns of numbers are aligned to the right, head and cells.

    Args:
        head: the columns' names.
        numbers: the columns that hold numbers.
    """

    def __init__(
        self, head: Sequence[str], numbers: Sequence[int] = (), parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._head = tuple(head)
        self._numbers = frozenset(numbers)

    @property
    @abstractmethod
    def row_count(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def text(self, row: int, column: int) -> str:
        """Return what stands in a cell."""

    def set_head(self, head: Sequence[str]) -> None:
        """Name the columns otherwise."""
        self._head = tuple(head)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._head) - 1)

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of rows."""
        return 0 if parent.isValid() else self.row_count

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self._head)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a cell's text or its alignment."""
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(index.row(), index.column())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name or its alignment."""
        if orientation is Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return self._head[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return self._alignment(section)
        return None

    def _tell_all_cells(self) -> None:
        """Say that every cell may be another, the rows being as many as before."""
        if self.row_count:
            last = self.index(self.row_count - 1, len(self._head) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        flags = Qt.AlignmentFlag
        return flags.AlignVCenter | (
            flags.AlignRight if column in self._numbers else flags.AlignLeft
        )


class TextRows(TextTable):
    """A table whose rows are kept."""

    def __init__(
        self, head: Sequence[str], numbers: Sequence[int] = (), parent: QObject | None = None
    ) -> None:
        super().__init__(head, numbers, parent)
        self._rows: list[tuple[str, ...]] = []

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def text(self, row: int, column: int) -> str:
        """Return what stands in a cell."""
        return self._rows[row][column]

    def set_rows(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Show other rows; where their number is the same, selection and scrolling stay."""
        if len(rows) == len(self._rows):
            if list(rows) != self._rows:
                self._rows = list(rows)
                self._tell_all_cells()
            return
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()
