"""The devices of this PC as an item model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from gpu_studio.model.tool_tip import plain_tip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import EngineDescribed

SUMMARY_ROLE = Qt.ItemDataRole.UserRole
DEVICE_ROLE = Qt.ItemDataRole.UserRole + 1

_NO_PARENT = QModelIndex()


class DeviceList(QAbstractListModel):
    """One row for each device: its name, the line under it, and the device itself."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[tuple[Device, str]] = []

    def show(self, devices: Sequence[Device], engine: EngineDescribed | None) -> None:
        """Show these devices; the selection stays if they are the same devices."""
        rows = []
        if (
            devices
        ):  # imported after the window's first paint: the facts' texts and tables are large
            from gpu_studio.core.devices.facts import summary_line

            rows = [(device, summary_line(device, engine)) for device in devices]
        if [device.identity for device, _ in rows] != [d.identity for d, _ in self._rows]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
        elif rows:
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))

    def row_of(self, identity: str) -> int:
        """Return the row of a device, or -1 if it is not in the list."""
        identities = [device.identity for device, _ in self._rows]
        return identities.index(identity) if identity in identities else -1

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of devices."""
        return 0 if parent.isValid() else len(self._rows)

    def data(
        self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a device's name, its line, the device, or both texts for screen readers."""
        device, summary = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return device.name
        if role == SUMMARY_ROLE:
            return summary
        if role == DEVICE_ROLE:
            return device
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{device.name}, {summary}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(f"{device.name}\n{device.unreadable or summary}")
        return None
