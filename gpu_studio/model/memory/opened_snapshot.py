"""A snapshot of an allocator, read from a file by a child process; or why it is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.memory.replay.replay_call import OpenedSegments, OpenSegments, ask
from gpu_studio.core.memory.segments import map_of_segments
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.model.latest import Latest, opening
from gpu_studio.process.child_call import call_child

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.segments import SegmentMap


class OpenedSnapshot(QObject):
    """Reads the segments of one file at a time.

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
        self._file = Latest(self)
        self._file.succeeded.connect(self._on_opened)
        self._file.failed.connect(self._on_refused)
        self._file.delayed.connect(self._on_delayed)

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._file.is_busy

    def open(self, path: Path) -> None:
        """Read a file, and no earlier one any more."""
        self._path, self.notice = path, Notice()
        question = OpenSegments(os.fsencode(path))
        self._file.ask(lambda is_over: ask(question, call_child, is_over))
        self.changed.emit()

    def close(self) -> None:
        """Show no snapshot any more."""
        self.blocks, self.notice = None, Notice()
        self.changed.emit()

    def end(self) -> None:
        """Stop reading, and wait for the thread: it must not outlive its owner."""
        self._file.close()

    def _on_opened(self, answer: OpenedSegments) -> None:
        self.blocks = map_of_segments(answer.segments)
        self.title, self.notice = file_name(self._path), Notice()
        self.changed.emit()

    def _on_delayed(self) -> None:
        self.notice = Notice(opening(self._path))
        self.changed.emit()

    def _on_refused(self, failure: Failure) -> None:
        self.blocks, self.notice = None, Notice(failure.message, Tone.FAILURE)
        self.changed.emit()
