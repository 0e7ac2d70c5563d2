"""One job on a separate thread, such as reading a file or computing an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_LONGEST_END_MS = 1500


class Task(QObject):
    """Does one job once, and reports the result to the thread that created it.

    Signals:
        succeeded(object): the result.
        failed(Failure): the work raised an error; the message of a `StudioError` can be shown.
        finished(): the thread has ended, after either signal.

    Args:
        work: returns the result; called in the thread.
        parent: owns the task.
    """

    succeeded = Signal(object)
    failed = Signal(object)
    finished = Signal()

    def __init__(self, work: Callable[[], Any], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work: Callable[[], Any] | None = work
        self._worker = Worker(self._results, self)
        self._worker.value_produced.connect(self.succeeded)
        self._worker.failure_raised.connect(self.failed)
        self._worker.finished.connect(self._finish)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def wait(self, longest_ms: int | None = None) -> bool:
        """Wait for the thread, which must not outlive its owner; return whether it has ended."""
        return self._worker.wait(_LONGEST_END_MS if longest_ms is None else longest_ms)

    def _results(self) -> Iterator[Any]:
        work, self._work = self._work, None
        if work is not None:
            yield work()

    def _finish(self) -> None:
        self.finished.emit()
        self.deleteLater()
