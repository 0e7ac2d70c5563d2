"""The segment map with the fragmentation."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from gpu_studio.core.memory.outcome import free_within
from gpu_studio.core.memory.segments import ALLOCATED, AWAITING_FREE, INACTIVE, map_of_segments
from gpu_studio.core.units import counted, format_bytes, format_percent
from gpu_studio.model.memory.opened_snapshot import OpenedSnapshot
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.segment_map import PITCH, SegmentMapView, paint_state
from gpu_studio.ui.parts import GAP, Card, Text, button
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QShowEvent

    from gpu_studio.core.memory.segments import SegmentMap
    from gpu_studio.core.messages.memory_messages import SegmentsRead
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.theme import Theme

_log = logging.getLogger(__name__)

_OPEN = "Open snapshot…"
_SWATCH = 12
_LEGEND_SPACING = 14
_LEAST_ROWS = 8  # of the map
_LEGEND = {ALLOCATED: "allocated", INACTIVE: "free, reserved", AWAITING_FREE: "waiting to free"}


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
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(self._make_head())
        map_card = Card(name="memory.segments_card")
        column.addWidget(map_card, 1)
        entries = [_legend_entry(theme, state) for state in _LEGEND]
        legend = FlowRow(*entries, fills=entries[-1], spacing=_LEGEND_SPACING)
        map_card.column.addWidget(legend)
        self._area = QScrollArea()
        self._area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setObjectName("memory.segments_area")
        self._area.setAccessibleName("Segment map")
        self._area.setWidget(self._view)
        for layer in (self._area.viewport(), self._view):  # the card shows through
            layer.setAutoFillBackground(False)
        self._area.setMinimumHeight(_LEAST_ROWS * PITCH)
        map_card.column.addWidget(self._area, 1)
        self._block_words = Text(role="muted", name="memory.block", wraps=True)
        self._block_words.setMinimumHeight(self.fontMetrics().lineSpacing())
        map_card.column.addWidget(self._block_words)
        self._view.block_described.connect(self._block_words.setText)
        self._view.row_chosen.connect(self._on_row_chosen)
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
        parts = (self._largest, self._close, self._open)
        card.column.addWidget(FlowRow(*parts, fills=self._largest, spacing=GAP))
        card.column.addWidget(self._fragmentation)
        self._outcome = Text(role="muted", name="memory.snapshot.outcome", wraps=True)
        self._outcome.hide()
        card.column.addWidget(self._outcome)
        return card

    # ── showing ──────────────────────────────────────────────────────────────────────────────

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
        self._view.show_map(self._shown, self._nothing())

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

    def _on_row_chosen(self, y: int) -> None:
        self._area.ensureVisible(0, y + PITCH // 2, 0, PITCH // 2)

    def _ask_file(self) -> None:
        path = ask_open_path(self, "Open a snapshot", "Snapshots (*.pickle *.pkl);;All files (*)")
        if path:
            self.open_snapshot(Path(path))

    def open_snapshot(self, path: Path) -> None:
        """Show a snapshot from a file, or why it is refused."""
        self._snapshot.open(path)


def _legend_entry(theme: Theme, state: int) -> QWidget:
    """Return a square and its meaning, which stay on one line."""
    entry = QWidget()
    line = QHBoxLayout(entry)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(_SWATCH // 2)
    line.addWidget(_Swatch(theme, state))
    line.addWidget(Text(_LEGEND[state], "muted"))
    return entry


class _Swatch(QWidget):
    """A square of the legend, painted like a block."""

    def __init__(self, theme: Theme, state: int) -> None:
        super().__init__()
        self._theme, self._state = theme, state
        self.setFixedSize(_SWATCH, _SWATCH)
        theme.changed.connect(self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the square."""
        paint_state(QPainter(self), self._theme, self._state, [QRectF(self.rect())])
