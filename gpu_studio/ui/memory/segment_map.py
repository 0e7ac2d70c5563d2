"""The segment map: a row for each segment, with each block in the color of its state.

It paints only the visible rows, from arrays, so that ten thousand blocks ten times a second do not
block the event loop. A block smaller than a pixel colors its share of it. The arrow keys move up
and down between segments, left and right between blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QHelpEvent, QImage, QPainter, QPalette, QPen
from PySide6.QtWidgets import QAbstractScrollArea, QToolTip, QWidget

from gpu_studio.core.memory.segments import STATE_WORDS
from gpu_studio.core.units import counted, format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent

    from gpu_studio.core.memory.segments import SegmentMap
    from gpu_studio.ui.theme import Theme

_LEFT_PAD = 8
_NOTHING = -1

BAR_HEIGHT, PITCH = 20, 26
LEAST_BAR = 28  # pixels: the mouse can still hit a segment of 2 MiB beside one of 20 GiB
_RIGHT_PAD = 4

_HATCH = 7
_LEAST_BORDERED = 4  # pixels: narrower blocks are drawn without a border


class SegmentMapView(QAbstractScrollArea):
    """Shows a `SegmentMap`.

    Signals:
        block_described(str): the block under the mouse or the keyboard, in words; empty for none.
        segment_chosen(int): another segment is current; -1 for none.

    Attributes:
        blocks: the shown map.
    """

    block_described = Signal(str)
    segment_chosen = Signal(int)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Segments and their blocks")
        self.setFrameShape(self.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setMouseTracking(True)
        self.viewport().setBackgroundRole(QPalette.ColorRole.NoRole)
        self.viewport().setAutoFillBackground(False)
        self._theme = theme
        self.blocks: SegmentMap | None = None
        self._block = self._pointed = _NOTHING
        self._to_scale = True
        self._label_width = 0
        self._empty_text = ""
        theme.changed.connect(self.viewport().update)

    # ── contents ─────────────────────────────────────────────────────────────────────────────

    @property
    def chosen_segment(self) -> int:
        """The current segment; -1 for none."""
        if self.blocks is None or self._block == _NOTHING:
            return _NOTHING
        return self.blocks.segment_of(self._block)

    def show_map(self, blocks: SegmentMap | None) -> None:
        """Show other blocks; the current place stays if it still exists."""
        was = self.blocks, self._block
        self.blocks = blocks
        self._pointed = _NOTHING
        self._block = self._same_place(*was)
        self._label_width = self._widest_label()
        self._fit_scroll_bar()
        self.setAccessibleDescription(self._sentence())
        self.viewport().update()

    def set_empty_text(self, text: str) -> None:
        if text != self._empty_text:
            self._empty_text = text
            self.setAccessibleDescription(self._sentence())
            self.viewport().update()

    def set_to_scale(self, to_scale: bool) -> None:
        """Draw all segments to the same scale, or each over the full width."""
        self._to_scale = to_scale
        self.viewport().update()

    @property
    def places(self) -> SegmentPlaces:
        """The geometry of the map in the viewport; the map must not be empty."""
        assert self.blocks is not None
        scrolled = self.verticalScrollBar().value()
        return SegmentPlaces(
            self.blocks, self.viewport().width(), self._label_width, scrolled,
            to_scale=self._to_scale,
        )  # fmt: skip

    def minimumSizeHint(self) -> QSize:
        """Return a size for two rows."""
        return QSize(260, 2 * PITCH)

    # ── painting ─────────────────────────────────────────────────────────────────────────────

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the visible rows and the frame of the current block."""
        painter = QPainter(self.viewport())
        if self.blocks is None or not len(self.blocks):
            painter.setPen(QColor(self._theme.colour("muted")))
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(
                self.viewport().rect().adjusted(24, 0, -24, 0), flags, self._empty_text
            )
            return
        scrolled = self.verticalScrollBar().value()
        first = scrolled // PITCH
        last = min(len(self.blocks), (scrolled + self.viewport().height()) // PITCH + 1)
        picture, places = RowPicture(self._theme, self.devicePixelRatioF()), self.places
        for segment in range(first, last):
            row = places.row(segment)
            image = picture.of(self.blocks, segment, row.width(), row.height())
            painter.drawImage(row, image)
            self._paint_label(painter, segment, row)
        if self._block != _NOTHING and first <= self.blocks.segment_of(self._block) < last:
            role = "accent" if self.hasFocus() else "muted"
            painter.setPen(QPen(QColor(self._theme.colour(role)), 2))
            place = places.block(self._block)
            painter.drawRect(place.adjusted(-1, -2, max(3 - place.width(), 1), 2))

    def _paint_label(self, painter: QPainter, segment: int, row: QRectF) -> None:
        assert self.blocks is not None
        is_chosen = segment == self.chosen_segment
        painter.setPen(QColor(self._theme.colour("text" if is_chosen else "muted")))
        place = QRectF(0, row.y(), self._label_width - _LEFT_PAD, row.height())
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(
            place,
            middle | Qt.AlignmentFlag.AlignRight,
            format_bytes(int(self.blocks.sizes[segment])),
        )
        address = f"{int(self.blocks.addresses[segment]):#x}"
        painter.drawText(place.adjusted(2, 0, 0, 0), middle | Qt.AlignmentFlag.AlignLeft, address)

    def _widest_label(self) -> int:
        """Return the width of the longest address, a gap and a size."""
        if self.blocks is None or not len(self.blocks):
            return 0
        metrics = self.fontMetrics()
        address = f"{int(self.blocks.addresses.max()):#x}"
        wide = "0x" + "0" * (len(address) - 2)
        return metrics.horizontalAdvance(wide + "   99.99 MiB") + 2 * _LEFT_PAD

    # ── mouse and keyboard ───────────────────────────────────────────────────────────────────

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with arrows, Home and End in a segment (Ctrl: in the map); Page Up and Down."""
        if self.blocks is None or not len(self.blocks):
            super().keyPressEvent(event)
            return
        if self._block == _NOTHING:
            self._walk_to(0)
            return
        place, places = self.blocks.blocks_of(self.chosen_segment), self.places
        page = max(self.viewport().height() // PITCH - 1, 1)
        with_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        target = {
            Qt.Key.Key_Right: self._block + 1,
            Qt.Key.Key_Left: self._block - 1,
            Qt.Key.Key_Home: 0 if with_control else place.start,
            Qt.Key.Key_End: (self.blocks.block_count if with_control else place.stop) - 1,
            Qt.Key.Key_Up: places.below(self._block, -1),
            Qt.Key.Key_Down: places.below(self._block, 1),
            Qt.Key.Key_PageUp: places.below(self._block, -page),
            Qt.Key.Key_PageDown: places.below(self._block, page),
        }.get(Qt.Key(event.key()))
        if target is None:
            super().keyPressEvent(event)
        else:
            self._walk_to(min(max(target, 0), self.blocks.block_count - 1))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Report the block under the mouse."""
        pointed = self._block_at(event.position())
        if pointed != self._pointed:
            self._pointed = pointed
            self._describe_block()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Make the clicked block current."""
        clicked = self._block_at(event.position())
        if clicked != _NOTHING:
            self._walk_to(clicked)

    def leaveEvent(self, event: QEvent) -> None:
        """Report the current block again."""
        super().leaveEvent(event)
        self._pointed = _NOTHING
        self._describe_block()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the keyboard focus."""
        super().focusInEvent(event)
        if self._block == _NOTHING and self.blocks is not None and len(self.blocks):
            self._walk_to(0)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Remove the keyboard focus."""
        super().focusOutEvent(event)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Set the scroll range to the rows that do not fit."""
        super().resizeEvent(event)
        self._fit_scroll_bar()

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the block under the mouse as a tool tip as well."""
        if isinstance(event, QHelpEvent):
            words = self._words_of(self._block_at(QPointF(event.pos())))
            QToolTip.showText(event.globalPos(), words, self)
            return True
        if event.type() is QEvent.Type.Leave:
            self.leaveEvent(event)
        return super().viewportEvent(event)

    def _block_at(self, position: QPointF) -> int:
        block = self.places.block_at(position) if self.blocks is not None else None
        return _NOTHING if block is None else block

    def _walk_to(self, block: int) -> None:
        before = self.chosen_segment
        self._block, self._pointed = block, _NOTHING
        segment = self.chosen_segment
        bar = self.verticalScrollBar()
        top = segment * PITCH
        bar.setValue(min(max(bar.value(), top + PITCH - self.viewport().height()), top))
        if segment != before:
            self.segment_chosen.emit(segment)
        self._describe_block()
        self.viewport().update()

    def _describe_block(self) -> None:
        block = self._pointed if self._pointed != _NOTHING else self._block
        self.block_described.emit(self._words_of(block))

    def _words_of(self, block: int) -> str:
        if self.blocks is None or block == _NOTHING:
            return ""
        return block_in_words(self.blocks, block)

    def _same_place(self, before: SegmentMap | None, block: int) -> int:
        """Return the block at the current address."""
        if before is None or block == _NOTHING or self.blocks is None or not len(self.blocks):
            return _NOTHING
        old = before.segment_of(block)
        same = (self.blocks.addresses == before.addresses[old]).nonzero()[0]
        if not len(same):
            return _NOTHING
        return self.blocks.block_at(int(same[0]), int(before.block_offsets[block]))

    def _fit_scroll_bar(self) -> None:
        rows = len(self.blocks) if self.blocks is not None else 0
        bar = self.verticalScrollBar()
        bar.setRange(0, max(rows * PITCH - self.viewport().height(), 0))
        bar.setSingleStep(PITCH)
        bar.setPageStep(max(self.viewport().height(), PITCH))

    def _sentence(self) -> str:
        return map_in_words(self.blocks) if self.blocks else self._empty_text


class SegmentPlaces:
    """The geometry of a map at the current scroll position.

    Args:
        blocks: the shown map; its first segment is the largest.
        width: of the viewport, in pixels.
        label_width: the width of the labels on the left, in pixels.
        scrolled: the number of pixels above the viewport.
        to_scale: all segments to the same scale; otherwise each over the full width.
    """

    def __init__(
        self, blocks: SegmentMap, width: int, label_width: int, scrolled: int, *, to_scale: bool
    ) -> None:
        self._map = blocks
        self._room = max(width - label_width - _RIGHT_PAD, LEAST_BAR)
        self._left, self._scrolled, self._to_scale = label_width, scrolled, to_scale

    def row(self, segment: int) -> QRectF:
        """Return a segment's rectangle."""
        top = segment * PITCH - self._scrolled + (PITCH - BAR_HEIGHT) / 2
        return QRectF(self._left, top, self._bar_width(segment), BAR_HEIGHT)

    def block(self, block: int) -> QRectF:
        """Return a block's rectangle."""
        segment = self._map.segment_of(block)
        row = self.row(segment)
        scale = row.width() / int(self._map.sizes[segment])
        left = row.x() + int(self._map.block_offsets[block]) * scale
        return QRectF(left, row.y(), int(self._map.block_sizes[block]) * scale, row.height())

    def block_at(self, position: QPointF) -> int | None:
        """Return the block at this point; None for none."""
        segment = int(position.y() + self._scrolled) // PITCH
        if not 0 <= segment < len(self._map):
            return None
        row = self.row(segment)
        share = (position.x() - row.x()) / row.width()
        if not 0 <= share <= 1:
            return None
        return self._map.block_at(segment, int(share * int(self._map.sizes[segment])))

    def below(self, block: int, rows: int) -> int:
        """Return the block a number of rows below another, at about the same x."""
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


class RowPicture:
    """Draws the rows: allocated is solid, free is hatched, waiting is in between.

    Args:
        theme: gives the colors.
        scale: device pixels per logical pixel.
    """

    def __init__(self, theme: Theme, scale: float) -> None:
        self._scale = scale
        self._hatching: dict[int, NDArray[np.bool_]] = {}

        def rgb(role: str) -> NDArray[np.float64]:
            colour = QColor(theme.colour(role))
            return np.array([colour.blue(), colour.green(), colour.red()], np.float64)

        ground, ink = rgb("card"), rgb("allocated")
        self._solid = ink
        self._border = 0.55 * ink + 0.45 * ground
        self._waiting = rgb("amber")
        self._wash = 0.14 * ink + 0.86 * ground
        self._hatch = 0.75 * ink + 0.25 * ground

    def of(self, blocks: SegmentMap, segment: int, width: float, height: float) -> QImage:
        """Return the picture of one segment.

        Args:
            blocks: the map.
            segment: its index.
            width: in logical pixels.
            height: in logical pixels.
        """
        columns = max(round(width * self._scale), 1)
        rows = max(round(height * self._scale), 3)
        solid = blocks.coverage(segment, columns)[:, None]
        waiting = blocks.coverage(segment, columns, state=1)[:, None]
        free = 1.0 - solid - waiting
        held = solid * self._solid + waiting * self._waiting
        base = _packed(held + free * self._wash)
        struck = _packed(held + free * self._hatch)
        border = _packed(self._border[None])[0]
        starts = self._borders(blocks, segment, columns)
        base[starts] = struck[starts] = border
        picture = np.where(self._strikes(rows, columns), struck, base)
        picture[0] = picture[-1] = struck  # a line in the hatching's color frames the holes
        picture[:, 0] = picture[:, -1] = border
        image = QImage(picture.data, columns, rows, 4 * columns, QImage.Format.Format_RGB32)
        return image.copy()  # the array ends with this call

    def _strikes(self, rows: int, columns: int) -> NDArray[np.bool_]:
        """Return the mask of the hatching, the same for all rows of a size."""
        known = self._hatching.get(rows)
        if known is None or known.shape[1] < columns:
            ys, xs = np.ogrid[:rows, :columns]
            known = (xs + ys) % round(_HATCH * self._scale) < self._scale
            self._hatching[rows] = known
        return known[:, :columns]

    @staticmethod
    def _borders(blocks: SegmentMap, segment: int, columns: int) -> NDArray[np.int64]:
        """Return the first columns of the blocks that are wide enough for a border."""
        place = blocks.blocks_of(segment)
        scale = columns / int(blocks.sizes[segment])
        starts = (blocks.block_offsets[place] * scale).astype(np.int64)
        wide = blocks.block_sizes[place] * scale >= _LEAST_BORDERED
        return np.minimum(starts[wide], columns - 1)


def _packed(colours: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return blue, green and red, shape (n, 3), as pixel values of `QImage`, shape (n,)."""
    whole = colours.astype(np.uint32)
    opaque = np.uint32(0xFF000000)
    packed: NDArray[np.uint32] = (
        whole[:, 2] << np.uint32(16) | whole[:, 1] << np.uint32(8) | whole[:, 0] | opaque
    )
    return packed


def block_in_words(blocks: SegmentMap, block: int) -> str:
    """Return a block's state, size and place in words."""
    segment = blocks.segment_of(block)
    place = blocks.blocks_of(segment)
    size_bytes = int(blocks.block_sizes[block])
    state = STATE_WORDS[int(blocks.block_states[block])]
    exact = f" ({size_bytes} bytes)" if size_bytes >= 1 << 10 else ""
    pool = "small" if blocks.is_small[segment] else "large"
    return (
        f"Block {block - place.start + 1} of {place.stop - place.start}: {state}, "
        f"{format_bytes(size_bytes)}{exact}, {format_bytes(blocks.block_offsets[block])} "
        f"into the {pool} segment of {format_bytes(blocks.sizes[segment])} at "
        f"{int(blocks.addresses[segment]):#x}."
    )


def map_in_words(blocks: SegmentMap) -> str:
    """Return a sentence about the whole map."""
    return (
        f"{counted(len(blocks), 'segment')} with {counted(blocks.block_count, 'block')}: "
        f"{format_bytes(blocks.allocated_bytes)} allocated, "
        f"{format_bytes(blocks.holes_bytes)} free in between, largest free block "
        f"{format_bytes(blocks.largest_hole_bytes)}."
    )
