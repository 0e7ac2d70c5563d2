"""A snapshot of an allocator, opened from a file; or why it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.segments import map_of_segments
from gpu_studio.core.memory.snapshot_file import open_snapshot
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.plain_text import file_name
from gpu_studio.model.file_reading import FileReading, opening

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.segments import SegmentMap


class OpenedSnapshot(QObject):
    """Reads one file at a time in a thread: it may be large, and it may contain anything.

    Signals:
        changed(): a snapshot was opened, refused or closed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.blocks: SegmentMap | None = None
        self.title = ""
        self.notice = Notice()
        self._path = Path()
        self._reading = FileReading(self)
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self._show)
        self._reading.failed.connect(self._refuse)
        self._reading.idled.connect(self.changed)

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._reading.is_reading

    def open(self, path: Path) -> None:
        """Read a file, and no earlier one any more."""
        self._path = path
        self.notice = Notice()
        self._reading.read(
            lambda is_over: map_of_segments(open_snapshot(path, None, is_over).segments)
        )
        self.changed.emit()

    def close(self) -> None:
        self.blocks, self.notice = None, Notice()
        self.changed.emit()

    def end(self) -> None:
        """Stop reading, and wait for the thread: it must not outlive its owner."""
        self._reading.close()

    def _show(self, blocks: SegmentMap) -> None:
        self.blocks, self.title, self.notice = blocks, file_name(self._path), Notice()
        self.changed.emit()

    def _on_delayed(self) -> None:
        self.notice = Notice(opening(self._path))
        self.changed.emit()

    def _refuse(self, failure: Failure) -> None:
        self.blocks = None
        is_expected = failure.kind is not FailureKind.INTERNAL
        unforeseen = f"{file_name(self._path)} is refused: its blocks do not fit together."
        self.notice = Notice(failure.message if is_expected else unforeseen, Tone.FAILURE)
        self.changed.emit()
