"""The segment map: a row for each segment, with each block in the color of its state.

Only visible rows are painted, so that ten thousand blocks ten times a second do not block the event
loop. A block smaller than a pixel colors its share of it. The mouse and the keys Left, Right, Home
and End choose a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QPainter, QPen
from PySide6.QtWidgets import QWidget

from gpu_studio.core.memory.segments import ALLOCATED, AWAITING_FREE, INACTIVE, STATE_WORDS
from gpu_studio.core.units import counted, format_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent

    from gpu_studio.core.memory.segments import SegmentMap
    from gpu_studio.ui.theme import Theme

_LEAST_PITCH, _MOST_PITCH, _BETWEEN = 26, 76, 6
_LEAST_BAR = 28  # pixels: the mouse can still hit a segment of 2 MiB beside one of 20 GiB
_LEFT_PAD, _RIGHT_PAD = 8, 4
_LEAST_BORDERED = 4  # pixels: narrower blocks are drawn without a border
_WASH_ALPHA = 36
_NOTHING = -1


class SegmentMapView(QWidget):
    """Shows a `SegmentMap`, all segments to the same scale; put it into a scroll area.

    Signals:
        block_described(str): the chosen block in words; empty for none.
        row_chosen(int): the keyboard moved to the row at this y.

    Attributes:
        blocks: the shown map; its first segment is the largest.
    """

    block_described = Signal(str)
    row_chosen = Signal(int)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Segments and their blocks")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._theme = theme
        self.blocks: SegmentMap | None = None
        self._block = _NOTHING
        self._label_width = 0
        self._empty_text = ""
        theme.changed.connect(self.update)

    def show_map(self, blocks: SegmentMap | None, empty_text: str) -> None:
        """Show other blocks, or a text without any; the current place stays if it still exists."""
        was = self.blocks, self._block
        self.blocks, self._empty_text = blocks, empty_text
        self._block = self._same_place(*was)
        self._label_width = self._widest_label()
        self.setMinimumHeight(_LEAST_PITCH * max(len(blocks or ()), 2))
        rows = (
            f"{counted(len(blocks), 'segment')}, {counted(blocks.block_count, 'block')}"
            if blocks
            else ""
        )
        self.setAccessibleDescription(rows or empty_text)
        self.update()

    # ── places ───────────────────────────────────────────────────────────────────────────────

    @property
    def pitch(self) -> int:
        """The height of a row and the gap below it: few segments have high rows."""
        rows = max(len(self.blocks or ()), 1)
        return min(max(self.height() // rows, _LEAST_PITCH), _MOST_PITCH)

    def row(self, segment: int) -> QRectF:
        """Return a segment's rectangle."""
        assert self.blocks is not None
        room = max(self.width() - self._label_width - _RIGHT_PAD, _LEAST_BAR)
        share = int(self.blocks.sizes[segment]) / int(self.blocks.sizes[0])
        width = round(_LEAST_BAR + (room - _LEAST_BAR) * share)
        top = segment * self.pitch + _BETWEEN // 2
        return QRectF(self._label_width, top, width, self.pitch - _BETWEEN)

    def place_of(self, block: int) -> QRectF:
        """Return a block's rectangle."""
        assert self.blocks is not None
        segment = self.blocks.segment_of(block)
        row = self.row(segment)
        scale = row.width() / int(self.blocks.sizes[segment])
        left = row.x() + int(self.blocks.block_offsets[block]) * scale
        return QRectF(left, row.y(), int(self.blocks.block_sizes[block]) * scale, row.height())

    def _block_at(self, position: QPointF) -> int:
        segment = int(position.y()) // self.pitch
        if self.blocks is None or not 0 <= segment < len(self.blocks):
            return _NOTHING
        row = self.row(segment)
        share = (position.x() - row.x()) / row.width()
        if not 0 <= share <= 1:
            return _NOTHING
        return self.blocks.block_at(segment, int(share * int(self.blocks.sizes[segment])))

    def _same_place(self, before: SegmentMap | None, block: int) -> int:
        """Return the block at the current address."""
        if before is None or block == _NOTHING or not self.blocks:
            return _NOTHING
        old = before.segment_of(block)
        same = (self.blocks.addresses == before.addresses[old]).nonzero()[0]
        if not len(same):
            return _NOTHING
        return self.blocks.block_at(int(same[0]), int(before.block_offsets[block]))

    def _widest_label(self) -> int:
        if not self.blocks:
            return 0
        return self.fontMetrics().horizontalAdvance(f"Segment {len(self.blocks)}") + 2 * _LEFT_PAD

    # ── painting ─────────────────────────────────────────────────────────────────────────────

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the visible rows and the frame of the current block."""
        painter = QPainter(self)
        if not self.blocks:
            painter.setPen(QColor(self._theme.colour("muted")))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(24, 0, -24, 0), flags, self._empty_text)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        first = max(event.rect().top() // self.pitch, 0)
        last = min(len(self.blocks), event.rect().bottom() // self.pitch + 1)
        for segment in range(first, last):
            self._paint_row(painter, segment)
            self._paint_label(painter, segment)
        if self._block != _NOTHING:
            role = "accent" if self.hasFocus() else "text"
            painter.setPen(QPen(QColor(self._theme.colour(role)), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            place = self.place_of(self._block)
            painter.drawRect(place.adjusted(-1, -2, max(3 - place.width(), 1), 2))

    def _paint_row(self, painter: QPainter, segment: int) -> None:
        assert self.blocks is not None
        row, place = self.row(segment), self.blocks.blocks_of(segment)
        scale = row.width() / int(self.blocks.sizes[segment])
        lefts = row.x() + self.blocks.block_offsets[place] * scale
        widths = self.blocks.block_sizes[place] * scale
        paint_state(painter, self._theme, INACTIVE, [row])
        for state in (ALLOCATED, AWAITING_FREE):
            shown = self.blocks.block_states[place] == state
            pairs = zip(lefts[shown].tolist(), widths[shown].tolist(), strict=True)
            rectangles = [QRectF(x, row.y(), width, row.height()) for x, width in pairs]
            paint_state(painter, self._theme, state, rectangles)
        painter.setPen(QPen(QColor(self._theme.colour("card")), 1))
        xs = lefts[widths >= _LEAST_BORDERED].tolist()
        painter.drawLines([QLineF(x, row.top(), x, row.bottom()) for x in xs])
        self._paint_sizes(painter, segment, widths)

    def _paint_sizes(self, painter: QPainter, segment: int, widths: NDArray[np.floating]) -> None:
        """Write the sizes of the blocks that have room for them."""
        assert self.blocks is not None
        metrics, first = self.fontMetrics(), self.blocks.blocks_of(segment).start
        least = metrics.horizontalAdvance("9.99 MiB") + 2 * _LEFT_PAD
        for at in (widths >= least).nonzero()[0].tolist():
            place = self.place_of(first + at)
            text = format_bytes(int(self.blocks.block_sizes[first + at]))
            role = "on_device"
            if int(self.blocks.block_states[first + at]) == INACTIVE:
                ground = QRectF(0, 0, metrics.horizontalAdvance(text) + 8, metrics.height())
                ground.moveCenter(place.center())
                painter.fillRect(ground, QColor(self._theme.colour("card")))
                role = "allocated_ink"
            painter.setPen(QColor(self._theme.colour(role)))
            painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_label(self, painter: QPainter, segment: int) -> None:
        assert self.blocks is not None
        is_chosen = self._block != _NOTHING and segment == self.blocks.segment_of(self._block)
        painter.setPen(QColor(self._theme.colour("text" if is_chosen else "muted")))
        pitch = self.pitch
        place = QRectF(2, segment * pitch, self._label_width - _LEFT_PAD - 2, pitch)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, f"Segment {segment + 1}")

    # ── mouse and keyboard ───────────────────────────────────────────────────────────────────

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move from block to block, or to the first and the last."""
        last = self.blocks.block_count - 1 if self.blocks else _NOTHING
        targets = {Qt.Key.Key_Left: max(self._block - 1, 0), Qt.Key.Key_Home: 0,
                   Qt.Key.Key_Right: min(self._block + 1, last), Qt.Key.Key_End: last}  # fmt: skip
        key = Qt.Key(event.key())
        if key in targets and self.blocks:
            self._choose(targets[key])
            self.row_chosen.emit(self.blocks.segment_of(self._block) * self.pitch)
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Choose the block under the mouse."""
        pointed = self._block_at(event.position())
        if pointed not in (_NOTHING, self._block):
            self._choose(pointed)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the keyboard focus."""
        super().focusInEvent(event)
        if self._block == _NOTHING and self.blocks:
            self._choose(0)
        self.update()

    def _choose(self, block: int) -> None:
        assert self.blocks is not None
        self._block = block
        self.block_described.emit(block_in_words(self.blocks, block))
        self.update()


def paint_state(painter: QPainter, theme: Theme, state: int, places: list[QRectF]) -> None:
    """Fill rectangles in the look of a block's state: free is hatched."""
    colour = QColor(theme.colour("amber" if state == AWAITING_FREE else "allocated"))
    painter.setPen(Qt.PenStyle.NoPen)
    if state != INACTIVE:
        painter.setBrush(colour)
        painter.drawRects(places)
        return
    wash = QColor(colour)
    wash.setAlpha(_WASH_ALPHA)
    for brush in (QBrush(wash), QBrush(colour, Qt.BrushStyle.BDiagPattern)):
        painter.setBrush(brush)
        painter.drawRects(places)


def block_in_words(blocks: SegmentMap, block: int) -> str:
    """Return a block's size, the line of code that made it, its state and its place in words."""
    segment = blocks.segment_of(block)
    place = blocks.blocks_of(segment)
    size_bytes, state = int(blocks.block_sizes[block]), int(blocks.block_states[block])
    line = blocks.line_of(block) if state != INACTIVE else ""
    pool = "small" if blocks.is_small[segment] else "large"
    return (
        f"{format_bytes(size_bytes)} in segment {segment + 1}, {STATE_WORDS[state]}"
        f"{f', made by {line}' if line else ''}. Block {block - place.start + 1} of "
        f"{place.stop - place.start}, {format_bytes(blocks.block_offsets[block])} into the {pool} "
        f"segment of {format_bytes(blocks.sizes[segment])} at {int(blocks.addresses[segment]):#x}."
    )
