"""Every parameter and buffer of a moved model, with its device before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from gpu_studio.core.units import format_count
from gpu_studio.model.tool_tip import plain_tip

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.protocol import PlaceRow

HEADINGS = ("Name", "Kind", "Shape", "Type", "Bytes", "Before", "After")
NAME, KIND, SHAPE, TYPE, BYTES, BEFORE, AFTER = range(7)
DEVICE_ROLE = Qt.ItemDataRole.UserRole  # the device that a cell names, whose ink it takes
_NO_PARENT = QModelIndex()


class PlacementTable(QAbstractTableModel):
    """One row a tensor, in the order the engine tells them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[PlaceRow] = []

    def append(self, row: PlaceRow) -> None:
        """Add a tensor at the end."""
        self.beginInsertRows(_NO_PARENT, len(self._rows), len(self._rows))
        self._rows.append(row)
        self.endInsertRows()

    def clear(self) -> None:
        """Take all away."""
        self.beginResetModel()
        self._rows.clear()
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of tensors."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(HEADINGS)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a cell's text, alignment, device or tool tip."""
        row, column = self._rows[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return _texts(row)[column]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == DEVICE_ROLE:
            return {BEFORE: row.device_before, AFTER: row.device_after}.get(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            kind = "learned in training" if row.kind == "parameter" else "kept, but not learned"
            return plain_tip(f"{row.name}: {row.kind} ({kind}), {row.dtype}")
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name or its alignment."""
        if orientation is Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return HEADINGS[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(section)
        return None


def _texts(row: PlaceRow) -> tuple[str, ...]:
    shape = " × ".join(map(str, row.shape)) or "scalar"
    return (
        row.name, row.kind, shape, row.dtype, format_count(row.bytes), row.device_before,
        row.device_after,
    )  # fmt: skip


def _alignment(column: int) -> Qt.AlignmentFlag:
    flags = Qt.AlignmentFlag
    return flags.AlignVCenter | (flags.AlignRight if column == BYTES else flags.AlignLeft)
