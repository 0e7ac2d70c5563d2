"""The segment map with the fragmentation, and a table of blocks beside it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QHeaderView,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.memory.outcome import free_within
from gpu_studio.core.memory.segments import map_of_segments
from gpu_studio.core.units import counted, format_bytes, format_percent
from gpu_studio.model.memory.opened_snapshot import BlockTable, OpenedSnapshot
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.memory_curves import toggle
from gpu_studio.ui.memory.segment_map import PITCH, SegmentMapView
from gpu_studio.ui.parts import GAP, Card, Text, button, letters, section, table
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent, QShowEvent

    from gpu_studio.core.memory.segments import SegmentMap
    from gpu_studio.core.messages.memory_messages import SegmentsRead
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.theme import Theme

_log = logging.getLogger(__name__)

_OPEN = "Open snapshot…"
_TABLE_LETTERS = 37
_ROW_PADDING = 11
_ANY_WIDTH = (1 << 24) - 1  # QWIDGETSIZE_MAX of Qt
_SWATCH = 12
_LEGEND_SPACING = 14
_LEAST_ROWS = 8  # of the map
_BESIDE_LETTERS = 90  # of the page; on a narrower page the table is under the map
_LEGEND = (("allocated", "solid"), ("free, reserved", "hatched"), ("waiting to free", "amber"))


class SegmentPage(QWidget):
    """Shows the segments of the chosen engine, or of an opened snapshot."""

    def __init__(self, model: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.segments_page")
        self._model = model
        self._shown: SegmentMap | None = None
        self._snapshot = OpenedSnapshot(self)
        model.closing.connect(self._snapshot.end)
        self._view = SegmentMapView(theme, name="memory.segments")
        self._blocks = BlockTable(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(self._make_head())
        below = self._below = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        below.setSpacing(GAP)
        column.addLayout(below, 1)
        map_card = Card(name="memory.segments_card")
        self._add_legend(map_card, theme)
        self._view.setMinimumHeight(_LEAST_ROWS * PITCH)
        map_card.column.addWidget(self._view, 1)
        self._block_words = Text(role="muted", name="memory.block", wraps=True)
        self._block_words.setMinimumHeight(self.fontMetrics().lineSpacing())
        map_card.column.addWidget(self._block_words)
        below.addWidget(map_card, 1)
        self._table_card = self._make_table()
        below.addWidget(self._table_card)
        self._view.block_described.connect(self._block_words.setText)
        self._view.segment_chosen.connect(self._show_blocks)
        model.segments_changed.connect(self._show)
        model.chosen_changed.connect(self._show)
        self._snapshot.changed.connect(self._show)

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_head(self) -> Card:
        card = Card(name="memory.fragmentation_card")
        self._largest = Text(role="headline", name="memory.largest")
        self._fragmentation = Text(role="muted", name="memory.fragmentation", wraps=True)
        self._open = button(
            _OPEN, self._ask_file, name="memory.snapshot.open",
            tip="Open a file of torch.cuda.memory._dump_snapshot; nothing in it is executed",
        )  # fmt: skip
        self._open.setMinimumWidth(self._open.sizeHint().width())  # also as it reads one
        self._close = button(
            "Back to live", self._snapshot.close, name="memory.snapshot.close",
            tip="Close the snapshot and show the allocator again",
        )  # fmt: skip
        scale = toggle(
            "To scale", "memory.segments.to_scale", "Draw all segments to the same scale"
        )
        scale.setChecked(True)
        scale.toggled.connect(self._view.set_to_scale)
        parts = (self._largest, self._close, scale, self._open)
        card.column.addWidget(FlowRow(*parts, fills=self._largest, spacing=GAP))
        card.column.addWidget(self._fragmentation)
        self._outcome = Text(role="muted", name="memory.snapshot.outcome", wraps=True)
        self._outcome.hide()
        card.column.addWidget(self._outcome)
        return card

    def _add_legend(self, card: Card, theme: Theme) -> None:
        entries = [_legend_entry(theme, text, look) for text, look in _LEGEND]
        card.column.addWidget(FlowRow(*entries, fills=entries[-1], spacing=_LEGEND_SPACING))

    def _make_table(self) -> Card:
        card = Card(name="memory.blocks_card")
        self._table_title = section("Blocks of a segment")
        card.column.addWidget(self._table_title)
        view = table(self._blocks, name="memory.blocks", accessible_name="Blocks of a segment")
        view.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        view.verticalHeader().setDefaultSectionSize(view.fontMetrics().height() + _ROW_PADDING)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        card.column.addWidget(view, 1)
        return card

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the table under the map if there is no room beside it."""
        super().resizeEvent(event)
        has_room = self.width() >= letters(self, _BESIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._below.setDirection(directions.LeftToRight if has_room else directions.TopToBottom)
        least = letters(self, _TABLE_LETTERS)
        self._table_card.setMinimumWidth(least)
        self._table_card.setMaximumWidth(least if has_room else _ANY_WIDTH)

    def showEvent(self, event: QShowEvent) -> None:
        """Show changes that came while hidden."""
        super().showEvent(event)
        self._show()

    def _show(self) -> None:
        if not self.isVisible():
            return
        self._outcome.show_notice(self._snapshot.notice)
        self._close.setVisible(self._snapshot.blocks is not None)
        self._open.setText("Reading…" if self._snapshot.is_reading else _OPEN)
        self._open.setEnabled(not self._snapshot.is_reading)
        read = self._model.segments
        if self._snapshot.blocks is not None:
            self._shown = self._snapshot.blocks
            self._show_snapshot(self._snapshot.blocks)
        elif read is None:
            self._shown = None
            self._largest.setText("No segments yet")
            self._fragmentation.setText("")
        else:
            try:
                self._shown = map_of_segments(read)
            except ValueError:
                _log.exception("The engine's segments do not fit together")
                return
            self._show_fragmentation(read)
            if read.left_out_segments:
                self._fragmentation.setText(
                    f"{self._fragmentation.text()} Not drawn: "
                    f"{counted(read.left_out_segments, 'segment')} with "
                    f"{counted(read.left_out_blocks, 'block')}."
                )
        # One takes the place of the other: the map stays where it is.
        is_answered = bool(self._snapshot.notice.sentence)
        self._fragmentation.setVisible(bool(self._fragmentation.text()) and not is_answered)
        self._view.set_empty_text(self._nothing())
        self._view.show_map(self._shown)
        self._show_blocks(self._view.chosen_segment)

    def _show_fragmentation(self, read: SegmentsRead) -> None:
        """Show the largest available block beside the total free memory."""
        largest_bytes, counters = read.largest_block_bytes, read.read
        free_bytes = free_within(
            read.free_total_bytes, counters.allocated_bytes, counters.limit_bytes
        )
        within = free_bytes < read.free_total_bytes
        where = "free within the budget" if within else "free in total"
        modelled = " (simulated)" if self._model.chosen.is_modelled else ""
        share = max(1 - largest_bytes / free_bytes, 0.0) if free_bytes else 0.0
        self._largest.setText(f"{format_bytes(largest_bytes)} in one piece")
        shown = ""
        if self._shown is not None:
            segments = counted(len(self._shown), "segment")
            shown = f" {segments}, {counted(self._shown.block_count, 'block')}."
        self._fragmentation.setText(
            f"is the largest available block, of {format_bytes(free_bytes)} {where}: "
            f"{format_percent(share)} fragmented{modelled}.{shown}"
        )

    def _show_snapshot(self, blocks: SegmentMap) -> None:
        self._largest.setText(self._snapshot.title)
        self._fragmentation.setText(
            f"{counted(len(blocks), 'segment')}, {counted(blocks.block_count, 'block')}: "
            f"{format_bytes(blocks.allocated_bytes)} allocated of "
            f"{format_bytes(blocks.reserved_bytes)} reserved; largest hole "
            f"{format_bytes(blocks.largest_hole_bytes)} of {format_bytes(blocks.holes_bytes)}."
        )

    def _nothing(self) -> str:
        if self._model.chosen.is_cpu:
            return (
                "PyTorch's allocator gets segments from a CUDA card only, not from the CPU. "
                "Choose a card above, or a simulated card."
            )
        if self._model.session is None:
            return "This engine has ended. Run an experiment, or show the other engine."
        if self._model.chosen.is_modelled:
            return (
                "PyTorch has not used this simulated card yet. Run an experiment on the “Break it” "
                "page, or open a snapshot."
            )
        return (
            "PyTorch has not used memory of this card yet. Run an experiment on the “Break it” "
            "page or a benchmark, move a model, or open a snapshot."
        )

    def _show_blocks(self, segment: int) -> None:
        """Show a segment's blocks beside the map; by default the first segment's."""
        segment = max(segment, 0)
        title = "Blocks of a segment"
        if self._shown:
            title = f"Segment at {int(self._shown.addresses[segment]):#x}"
        self._table_title.setText(title.upper())
        self._blocks.show_segment(self._shown, segment)

    def _ask_file(self) -> None:
        path = ask_open_path(self, "Open a snapshot", "Snapshots (*.pickle *.pkl);;All files (*)")
        if path:
            self.open_snapshot(Path(path))

    def open_snapshot(self, path: Path) -> None:
        """Show a snapshot from a file, or why it is refused."""
        self._snapshot.open(path)


def _legend_entry(theme: Theme, text: str, look: str) -> QWidget:
    """Return a square and its meaning, which stay on one line."""
    entry = QWidget()
    line = QHBoxLayout(entry)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(_SWATCH // 2)
    line.addWidget(_Swatch(theme, look))
    line.addWidget(Text(text, "muted"))
    return entry


class _Swatch(QWidget):
    """A square of the legend."""

    def __init__(self, theme: Theme, look: str) -> None:
        super().__init__()
        self._theme, self._look = theme, look
        self.setFixedSize(_SWATCH, _SWATCH)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_SWATCH, _SWATCH)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the square like a block."""
        painter = QPainter(self)
        colour = QColor(self._theme.colour("amber" if self._look == "amber" else "allocated"))
        place = QRectF(0.5, 0.5, _SWATCH - 1, _SWATCH - 1)
        if self._look == "hatched":
            painter.fillRect(place, QColor(colour.red(), colour.green(), colour.blue(), 36))
            painter.setPen(QPen(colour, 1))
            painter.drawLine(1, _SWATCH - 2, _SWATCH - 2, 1)
            painter.drawLine(1, _SWATCH // 2, _SWATCH // 2, 1)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(place)
        else:
            painter.fillRect(place, colour)
