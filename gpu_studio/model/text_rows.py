"""A table of plain text, for what a chart says in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

_NO_PARENT = QModelIndex()


class TextRows(QAbstractTableModel):
    """Rows of text under a head; columns of numbers are aligned to the right, head and cells.

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
        self._rows: list[tuple[str, ...]] = []

    def set_rows(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Show other rows; where their number is the same, selection and scrolling stay."""
        if len(rows) == len(self._rows):
            if rows and list(rows) != self._rows:
                self._rows = list(rows)
                last = self.index(len(rows) - 1, len(self._head) - 1)
                self.dataChanged.emit(self.index(0, 0), last)
            return
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def set_head(self, head: Sequence[str]) -> None:
        """Name the columns otherwise."""
        self._head = tuple(head)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._head) - 1)

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of rows."""
        return 0 if parent.isValid() else len(self._rows)

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
            return self._rows[index.row()][index.column()]
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

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        flags = Qt.AlignmentFlag
        return flags.AlignVCenter | (
            flags.AlignRight if column in self._numbers else flags.AlignLeft
        )
