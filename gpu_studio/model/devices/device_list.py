"""The devices of all PCs as an item model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.facts import summary_line
from gpu_studio.model.tool_tip import plain_tip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.model.devices.device_board import DeviceRow

SUMMARY_ROLE = Qt.ItemDataRole.UserRole
DEVICE_ROLE = Qt.ItemDataRole.UserRole + 1

_NO_PARENT = QModelIndex()


class DeviceList(QAbstractListModel):
    """A view of the board for one PC: each device's name, the line under it, and the board's row.

    Attributes:
        is_choice: whether the window has another device, here or in another list.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_choice = False
        self._rows: list[tuple[DeviceRow, str]] = []

    def show(
        self, devices: Sequence[DeviceRow], engine: EngineDescribed | None, *, is_choice: bool
    ) -> None:
        """Show the devices whose facts are known; the selection stays if they are the same.

        Args:
            devices: in their order.
            engine: what the engine of their PC says of itself.
            is_choice: whether the window has another device, here or in another list.
        """
        self.is_choice = is_choice
        rows = [(one, summary_line(one.device, engine)) for one in devices if one.device]
        if [row.identity for row, _ in rows] != [row.identity for row, _ in self._rows]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
        elif rows:
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))

    def row_of(self, identity: str) -> int:
        """Return the row of a device, or -1 if it is not in the list."""
        identities = [row.identity for row, _ in self._rows]
        return identities.index(identity) if identity in identities else -1

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of devices."""
        return 0 if parent.isValid() else len(self._rows)

    def data(
        self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a device's name, its line, the device, or both texts for screen readers."""
        row, summary = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return name_at(row.pc, row.name)
        if role == SUMMARY_ROLE:
            return summary
        if role == DEVICE_ROLE:
            return row
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{name_at(row.pc, row.name)}, {summary}"
        if role == Qt.ItemDataRole.ToolTipRole:
            unreadable = row.device.unreadable if row.device is not None else None
            return plain_tip(f"{name_at(row.pc, row.name)}\n{unreadable or summary}")
        return None
