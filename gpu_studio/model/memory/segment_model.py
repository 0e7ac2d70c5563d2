"""The segments of a card's memory: now, when an experiment failed, or of an opened snapshot."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.memory.outcome import free_within
from gpu_studio.core.memory.replay.replay_call import OpenedSegments, OpenSegments, ask
from gpu_studio.core.memory.segments import map_of_segments
from gpu_studio.core.notice import Notice
from gpu_studio.core.texts import file_name
from gpu_studio.core.units import counted, format_bytes
from gpu_studio.model.latest import Latest
from gpu_studio.model.page_model import PageModel
from gpu_studio.process.child_call import call_child

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.core.memory.segments import SegmentMap
    from gpu_studio.core.messages.memory_messages import SegmentsRead
    from gpu_studio.model.memory.memory_model import MemoryModel

_log = logging.getLogger(__name__)


class SegmentModel(PageModel):
    """Shows an opened snapshot, or the moment when an experiment failed, or else what is now.

    Attributes:
        blocks: the shown segments; None without any.
        block: the chosen block in words; the page tells it.
    """

    def __init__(self, memory: MemoryModel, parent: QObject | None = None) -> None:
        super().__init__(None, parent)
        self._memory, self._experiment = memory, memory.experiment
        self._file = Latest(self)
        self._file.succeeded.connect(self._on_opened)
        self._file.failed.connect(self._on_refused)
        self._file.delayed.connect(self.changed)
        self._path, self._title = Path(), ""
        self._opened: SegmentMap | None = None
        self._shows_now = False
        self.blocks: SegmentMap | None = None
        self._drawn: SegmentsRead | None = None
        self.block = ""
        memory.studio.closing.connect(self._file.close)
        self._experiment.results_changed.connect(self._on_results)
        self.follow_seen(self._on_segments, memory.memory_changed, memory.chosen_changed)

    def see(self, *, is_seen: bool) -> None:
        """Read the segments while the page is visible."""
        if is_seen:
            self._memory.watch(with_segments=True)
        else:
            self._memory.unwatch()
        super().see(is_seen=is_seen)

    def on_seen(self) -> None:
        self._read_map()

    # ── which moment ─────────────────────────────────────────────────────────────────────────

    @property
    def _failed(self) -> SegmentsRead | None:
        """The segments of the last experiment's end on the chosen card, unless left."""
        results = self._experiment.results
        if self._shows_now or not results:
            return None
        identity = self._memory.studio.board.identity_of(results[-1].request.device)
        return results[-1].segments if identity == self._memory.chosen.identity else None

    @property
    def moment(self) -> str:
        """The moment that is shown, if it is not now."""
        if self._opened is not None:
            return self._title
        return "" if self._failed is None else "When the experiment ended"

    @property
    def notice(self) -> Notice:
        """What becomes of a file that is opened."""
        return self._file.notice

    def show_now(self) -> None:
        """Leave an opened snapshot, or the moment of the experiment."""
        if self._opened is None:
            self._shows_now = True
        self._file.notice = Notice()
        self._show(None)

    def open_snapshot(self, path: Path) -> None:
        """Show a snapshot from a file, or say why it is refused."""
        self._path, question = path, OpenSegments(os.fsencode(path))
        self._file.ask(lambda is_over: ask(question, call_child, is_over), path)
        self.changed.emit()

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._file.is_busy

    def _on_opened(self, answer: OpenedSegments) -> None:
        self._title = file_name(self._path)
        self._show(map_of_segments(answer.segments))

    def _on_refused(self) -> None:
        self._show(None)

    def _show(self, opened: SegmentMap | None) -> None:
        self._opened = opened
        self._on_segments()

    # ── the answer ───────────────────────────────────────────────────────────────────────────

    @property
    def largest(self) -> str:
        """The largest hole, which is the answer."""
        blocks = self.blocks
        if not blocks:
            return "No segments yet"
        if not blocks.holes_bytes:
            return "No holes"
        return f"Largest hole: {format_bytes(blocks.largest_hole_bytes)}"

    @property
    def meaning(self) -> str:
        """What it means for the next tensor; empty without segments, as the map says why."""
        blocks, read = self.blocks, self._read
        if not blocks:
            return ""
        holes_bytes, largest_bytes = blocks.holes_bytes, blocks.largest_hole_bytes
        if read is None:
            return f"All holes together: {format_bytes(holes_bytes)}."
        counters = read.read
        free_bytes = free_within(
            read.free_total_bytes, counters.allocated_bytes, counters.limit_bytes
        )
        within = "within the budget" if free_bytes < read.free_total_bytes else "in total"
        largest = max(largest_bytes, read.largest_block_bytes)
        if largest >= free_bytes:
            return f"A tensor of {format_bytes(largest)} fits: all that is free {within}."
        return (
            f"A tensor over {format_bytes(largest)} does not fit, although "
            f"{format_bytes(free_bytes)} are free {within}: the pieces are too small."
        )

    @property
    def sums(self) -> str:
        """What is reserved and allocated, and whether all of it is drawn."""
        blocks, read = self.blocks, self._read
        if not blocks:
            return ""
        left_out = read.left_out_segments if read is not None else 0
        hidden = f", {counted(left_out, 'segment')} not drawn" if left_out else ""
        return (
            f"Reserved {format_bytes(blocks.reserved_bytes)}, allocated "
            f"{format_bytes(blocks.allocated_bytes)}{hidden}"
        )

    @property
    def nothing(self) -> str:
        """Where segments come from, if there are none."""
        if self._memory.chosen.is_cpu:
            return "Only a card has segments. Choose a card on the page Now."
        return "PyTorch has not used this card's memory yet. Run an experiment on the page Now."

    @property
    def _read(self) -> SegmentsRead | None:
        if self._opened is not None:
            return None
        return self._failed or self._memory.segments

    def describe_block(self, words: str) -> None:
        """Take the words about the chosen block."""
        self.block = words
        self.changed.emit()

    # ── events ───────────────────────────────────────────────────────────────────────────────

    def _on_results(self) -> None:
        self._shows_now, self._file.notice = False, Notice()
        self._on_segments()

    def _on_segments(self) -> None:
        if self.is_seen:
            self._read_map()
            self.changed.emit()

    def _read_map(self) -> None:
        if self._opened is not None:
            self.blocks, self._drawn = self._opened, None
            return
        read = self._read
        if read is self._drawn and read is not None:
            return
        try:
            self.blocks, self._drawn = map_of_segments(read) if read is not None else None, read
        except ValueError:
            _log.exception("The engine's segments do not fit together")
