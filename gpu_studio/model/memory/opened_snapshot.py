"""A snapshot of somebody's allocator, opened from a file; or why it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import StudioError
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.memory.segments import SegmentMap


_LONGEST_END_MS = 10_000


class OpenedSnapshot(QObject):
    """Reads one file at a time, in a thread: it may be large, and it may be anything.

    Signals:
        changed(): opened, refused or closed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.blocks: SegmentMap | None = None
        self.title = ""
        self.refusal = ""
        self._worker: Worker | None = None

    def open(self, path: Path) -> None:
        """Read a file; does nothing while another is read."""
        if self._worker is not None:
            return
        self.title, self.refusal = path.name, ""

        def read() -> Iterator[SegmentMap | str]:
            from gpu_studio.core.memory.segments import map_of_segments
            from gpu_studio.core.memory.snapshot_file import open_snapshot

            try:
                yield map_of_segments(open_snapshot(path).segments)
            except StudioError as error:
                yield str(error)

        self._worker = Worker(read, self)
        self._worker.value_produced.connect(self._take)
        self._worker.failure_raised.connect(self._take_failure)
        self._worker.finished.connect(self._finish)
        self._worker.start()

    def close(self) -> None:
        """Forget it."""
        self.blocks, self.refusal = None, ""
        self.changed.emit()

    def end(self) -> None:
        """Wait for the thread, which must not outlive its owner."""
        if self._worker is not None:
            self._worker.wait(_LONGEST_END_MS)

    def _take(self, answer: SegmentMap | str) -> None:
        if isinstance(answer, str):
            self.blocks, self.refusal = None, answer
        else:
            self.blocks = answer
        self.changed.emit()

    def _take_failure(self) -> None:
        self.blocks = None
        self.refusal = f"{self.title} is refused: its blocks do not fit together."
        self.changed.emit()

    def _finish(self) -> None:
        if self._worker is not None:
            self._worker.retire()
            self._worker = None
