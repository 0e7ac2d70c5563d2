"""The tensors that were moved, with their device before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt

from gpu_studio.core.units import format_count
from gpu_studio.model.text_rows import TextTable, plain_tip

if TYPE_CHECKING:
    from gpu_studio.core.messages.placement_messages import PlaceRow

HEADINGS = ("Tensor", "Shape", "Type", "Bytes", "Before", "After")
NAME, SHAPE, TYPE, BYTES, BEFORE, AFTER = range(6)
DEVICE_ROLE = Qt.ItemDataRole.UserRole  # the device that a cell names, for its color
_NO_PARENT = QModelIndex()
_KINDS = {"parameter": " (learned in training)", "buffer": " (kept, but not learned)"}


class PlacementTable(TextTable):
    """One row for each tensor, in the engine's order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(HEADINGS, (BYTES,), parent)
        self._tensors: list[PlaceRow] = []

    @property
    def row_count(self) -> int:
        return len(self._tensors)

    def text(self, row: int, column: int) -> str:
        return _texts(self._tensors[row])[column]

    def append(self, row: PlaceRow) -> None:
        self.beginInsertRows(_NO_PARENT, self.row_count, self.row_count)
        self._tensors.append(row)
        self.endInsertRows()

    def clear(self) -> None:
        if self._tensors:
            self.beginResetModel()
            self._tensors.clear()
            self.endResetModel()

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        row, column = self._tensors[index.row()], index.column()
        if role == DEVICE_ROLE:
            return {BEFORE: row.device_before, AFTER: row.device_after}.get(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            kind = f"{row.kind}{_KINDS.get(row.kind, '')}"
            return plain_tip(f"{row.name}: {kind}, {row.dtype}")
        return super().data(index, role)


def _texts(row: PlaceRow) -> tuple[str, ...]:
    shape = " × ".join(map(str, row.shape)) or "scalar"
    return (
        row.name, shape, row.dtype, format_count(row.bytes), row.device_before,
        row.device_after,
    )  # fmt: skip
