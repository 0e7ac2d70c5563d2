"""Where the segment map's rows and blocks are, in its viewport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF

if TYPE_CHECKING:
    from gpu_studio.core.memory.segment_map import SegmentMap

BAR_HEIGHT, PITCH = 20, 26
LEAST_BAR = 28  # pixels: a segment of 2 MiB beside one of 20 GiB can still be pointed at
_RIGHT_PAD = 4


class SegmentPlaces:
    """The places on a map as it is scrolled now.

    Args:
        blocks: what is shown; its first segment is the largest.
        width: of the viewport, in pixels.
        label_width: what the labels on the left take of it.
        scrolled: how many pixels are above the viewport.
        to_scale: all segments at one scale; else each over the whole width.
    """

    def __init__(
        self, blocks: SegmentMap, width: int, label_width: int, scrolled: int, *, to_scale: bool
    ) -> None:
        self._map = blocks
        self._room = max(width - label_width - _RIGHT_PAD, LEAST_BAR)
        self._left, self._scrolled, self._to_scale = label_width, scrolled, to_scale

    def row(self, segment: int) -> QRectF:
        """Return where a segment is painted."""
        top = segment * PITCH - self._scrolled + (PITCH - BAR_HEIGHT) / 2
        return QRectF(self._left, top, self._bar_width(segment), BAR_HEIGHT)

    def block(self, block: int) -> QRectF:
        """Return where a block is painted."""
        segment = self._map.segment_of(block)
        row = self.row(segment)
        scale = row.width() / int(self._map.sizes[segment])
        left = row.x() + int(self._map.block_offsets[block]) * scale
        return QRectF(left, row.y(), int(self._map.block_sizes[block]) * scale, row.height())

    def block_at(self, position: QPointF) -> int | None:
        """Return the block that is painted there; None for none."""
        segment = int(position.y() + self._scrolled) // PITCH
        if not 0 <= segment < len(self._map):
            return None
        row = self.row(segment)
        share = (position.x() - row.x()) / row.width()
        if not 0 <= share <= 1:
            return None
        return self._map.block_at(segment, int(share * int(self._map.sizes[segment])))

    def below(self, block: int, rows: int) -> int:
        """Return the block so many rows below another, about under it."""
        segment = self._map.segment_of(block)
        target = min(max(segment + rows, 0), len(self._map) - 1)
        x = self.block(block).center().x()
        row = self.row(target)
        share = min(max((x - row.x()) / row.width(), 0.0), 1.0)
        return self._map.block_at(target, int(share * int(self._map.sizes[target])))

    def _bar_width(self, segment: int) -> float:
        if not self._to_scale:
            return float(self._room)
        share = int(self._map.sizes[segment]) / int(self._map.sizes[0])
        return round(LEAST_BAR + (self._room - LEAST_BAR) * share)
