"""A snapshot of an allocator, read from a file by a child process; or why it is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import Failure, StudioError, failure_from
from gpu_studio.core.memory.replay.replay_call import (
    MEMORY_BYTES,
    MODULE,
    MOST_ANSWER_BYTES,
    OpenedSegments,
    OpenSegments,
    ask,
)
from gpu_studio.core.memory.segments import map_of_segments
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.model.file_reading import opening, opening_delay
from gpu_studio.model.worker import Task
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from gpu_studio.core.memory.replay.replay_call import Answer, Question
    from gpu_studio.core.memory.segments import SegmentMap
    from gpu_studio.process.child_call import ChildAnswer


class SnapshotChild(QObject):
    """Asks one question at a time in a child process; the next one ends the one before.

    Signals:
        answered(object): the `Answer` to the last question.
        failed(Failure): why there is no answer to the last question.
    """

    answered = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._call: ChildCall | None = None
        self._tasks: list[Task] = []

    @property
    def is_busy(self) -> bool:
        """Whether the last question has no answer yet."""
        return self._call is not None

    def ask(self, question: Question) -> None:
        """Ask, and forget the question before."""
        self.cancel()
        call = self._call = ChildCall(MODULE, memory_bytes=MEMORY_BYTES)
        task = Task(lambda: (call, _answer_of(call, question)), self)
        self._tasks.append(task)
        task.succeeded.connect(self._on_answered)
        task.finished.connect(self._on_finished)
        task.start()

    def cancel(self) -> None:
        """End the child; its answer is no longer wanted."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def close(self) -> None:
        """End the child, and wait for its thread."""
        self.cancel()
        for task in self._tasks:
            task.wait()

    def _on_answered(self, result: tuple[ChildCall, Answer | Failure]) -> None:
        call, answer = result
        if call is not self._call:
            return
        self._call = None
        if isinstance(answer, Failure):
            self.failed.emit(answer)
        else:
            self.answered.emit(answer)

    def _on_finished(self) -> None:
        task = self.sender()
        assert isinstance(task, Task)
        self._tasks.remove(task)


def _answer_of(call: ChildCall, question: Question) -> Answer | Failure:
    """Return what a child answers, or why it does not; called in a thread."""

    def run(content: bytes, longest_s: float) -> ChildAnswer:
        return call.run(content, longest_s=longest_s, most_bytes=MOST_ANSWER_BYTES)

    try:
        return ask(question, run, lambda: call.is_cancelled)
    except StudioError as error:
        return failure_from(error)


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
        self._child = SnapshotChild(self)
        self._child.answered.connect(self._on_opened)
        self._child.failed.connect(self._on_refused)
        self._delay = opening_delay(self)
        self._delay.timeout.connect(self._on_delayed)

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._child.is_busy

    def open(self, path: Path) -> None:
        """Read a file, and no earlier one any more."""
        self._path, self.notice = path, Notice()
        self._child.ask(OpenSegments(os.fsencode(path)))
        self._delay.start()
        self.changed.emit()

    def close(self) -> None:
        """Show no snapshot any more."""
        self.blocks, self.notice = None, Notice()
        self.changed.emit()

    def end(self) -> None:
        """Stop reading, and wait for the thread: it must not outlive its owner."""
        self._delay.stop()
        self._child.close()

    def _on_opened(self, answer: OpenedSegments) -> None:
        self._delay.stop()
        self.blocks = map_of_segments(answer.segments)
        self.title, self.notice = file_name(self._path), Notice()
        self.changed.emit()

    def _on_delayed(self) -> None:
        self.notice = Notice(opening(self._path))
        self.changed.emit()

    def _on_refused(self, failure: Failure) -> None:
        self._delay.stop()
        self.blocks, self.notice = None, Notice(failure.message, Tone.FAILURE)
        self.changed.emit()
