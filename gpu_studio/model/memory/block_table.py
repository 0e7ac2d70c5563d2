"""The blocks of one segment as a table, read from the map's arrays for visible rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.memory.segments import STATE_WORDS
from gpu_studio.core.units import format_bytes
from gpu_studio.model.text_rows import TextTable

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.memory.segments import SegmentMap

_AT, _SIZE, _STATE = range(3)


class BlockTable(TextTable):
    """Offset from the segment's start, size and state, one row for each block."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(("Offset", "Size", "State"), numbers=(_AT, _SIZE), parent=parent)
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
            self._emit_all_cells()
            return
        self.beginResetModel()
        self._map, self._first, self._count = blocks, place.start, count
        self.endResetModel()

    @property
    def row_count(self) -> int:
        """The number of blocks."""
        return self._count

    def text(self, row: int, column: int) -> str:
        """Return the text of a cell."""
        assert self._map is not None
        block = self._first + row
        if column == _STATE:
            return STATE_WORDS[int(self._map.block_states[block])]
        sizes = self._map.block_sizes if column == _SIZE else self._map.block_offsets
        return format_bytes(int(sizes[block]))
