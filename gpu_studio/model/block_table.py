"""The blocks of one segment as a table, read from the map's arrays when a row is in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.memory.segment_map import SegmentMap

_HEAD = ("At", "Size", "State")
_NO_PARENT = QModelIndex()


class BlockTable(QAbstractTableModel):
    """Offset from the segment's start, size and state, a row a block."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._map: SegmentMap | None = None
        self._first = self._count = 0

    def show_segment(self, blocks: SegmentMap | None, segment: int) -> None:
        """Show the blocks of a segment; none for a segment of -1."""
        place = slice(0, 0)
        if blocks is not None and 0 <= segment < len(blocks):
            place = blocks.blocks_of(segment)
        count = place.stop - place.start
        if count == self._count:
            self._map, self._first = blocks, place.start
            if count:
                self.dataChanged.emit(self.index(0, 0), self.index(count - 1, len(_HEAD) - 1))
            return
        self.beginResetModel()
        self._map, self._first, self._count = blocks, place.start, count
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of blocks."""
        return 0 if parent.isValid() else self._count

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(_HEAD)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a cell's text or its alignment."""
        from gpu_studio.core.memory.segment_map import STATE_WORDS

        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role != Qt.ItemDataRole.DisplayRole or self._map is None:
            return None
        block = self._first + index.row()
        if index.column() == 2:
            return STATE_WORDS[int(self._map.block_states[block])]
        sizes = self._map.block_sizes if index.column() else self._map.block_offsets
        return format_bytes(int(sizes[block]))

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name or its alignment."""
        if orientation is Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return _HEAD[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(section)
        return None


def _alignment(column: int) -> Qt.AlignmentFlag:
    flags = Qt.AlignmentFlag
    return flags.AlignVCenter | (flags.AlignLeft if column == 2 else flags.AlignRight)
