"""The one thread class of the program.

A stream of values (an engine's events, the sensors' readings or a recording) blocks while it waits
for its next value. A `Worker` waits instead of the window and emits each value as a signal, so that
the window's thread never blocks. A `Task` is one job, such as reading a file.

A `TaskQueue` does jobs one after the other: for files, because a disk may be slow.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, QThread, Signal

from gpu_studio.core import limits
from gpu_studio.core.failure import StudioError, failure_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpu_studio.core.failure import Failure


_log = logging.getLogger(__name__)


class Worker(QThread):
    """Iterates over frozen values in a separate thread. Never subclassed; nothing moves to it.

    Signals:
        value_produced(object): the next value; connect it to a method of a QObject of the
            window's thread.
        failure_raised(Failure): the iterator raised, which ends it. The log has the traceback,
            unless it was a `StudioError`, which is expected.
        finished(): the stream has ended and the thread is done (QThread's own).

    Args:
        values: returns the iterable; called in the thread, so a slow start is slow only there.
        parent: owns the worker.
    """

    value_produced = Signal(object)
    failure_raised = Signal(object)

    def __init__(self, values: Callable[[], Iterable[Any]], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._values = values

    def run(self) -> None:
        """Emit every value until the stream ends or the thread is asked to interrupt."""
        try:
            for value in self._values():
                if self.isInterruptionRequested():
                    return
                self.value_produced.emit(value)
        except StudioError as error:
            self.failure_raised.emit(failure_from(error))
        except Exception as error:
            _log.exception("A stream of values ended with an error")
            self.failure_raised.emit(failure_from(error))


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
        return self._worker.wait(limits.current.thread_end_ms if longest_ms is None else longest_ms)

    def _results(self) -> Iterator[Any]:
        work, self._work = self._work, None
        if work is not None:
            yield work()

    def _finish(self) -> None:
        self.finished.emit()
        self.deleteLater()


# A job that reads looks at `TaskQueue.is_closed` and ends at once; Qt ends the program if a thread
# is still running when its owner goes.


class TaskQueue(QObject):
    """Does one job after the other.

    Signals:
        failed(Failure): a job raised an error; the next one begins.
        idled(): the last job has ended.

    Attributes:
        is_closed: whether the window closes: a job that only reads can end.
    """

    failed = Signal(object)
    idled = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs: deque[_Job] = deque()
        self._task: Task | None = None
        self.is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether a job is being done."""
        return self._task is not None

    def add(
        self,
        work: Callable[[], Any],
        then: Callable[[Any], None] | None = None,
        *,
        keeps: bool = True,
    ) -> None:
        """Do a job after those before it.

        Args:
            work: returns the result; called in a thread.
            then: gets the result.
            keeps: whether the job writes something, and is done even if the window closes.
        """
        if self.is_closed:
            return
        self._jobs.append(_Job(work, then, keeps))
        if self._task is None:
            self._next()

    def close(self) -> None:
        """Finish the present job, then the waiting ones that write: no result is lost."""
        self.is_closed = True
        task, self._task = self._task, None
        if task is not None:
            self._jobs.popleft()
            task.wait(limits.current.queue_end_ms)
        for job in self._jobs:
            if job.keeps:
                try:
                    job.work()
                except Exception:  # the window is closing and cannot show it
                    _log.exception("A file was not written while the window closed")
        self._jobs.clear()

    def _next(self) -> None:
        if not self._jobs:
            return
        self._task = Task(self._jobs[0].work, self)
        self._task.succeeded.connect(self._on_succeeded)
        self._task.failed.connect(self._fail)
        self._task.finished.connect(self._finish)
        self._task.start()

    def _on_succeeded(self, result: Any) -> None:
        if not self.is_closed and self._jobs[0].then is not None:
            self._jobs[0].then(result)

    def _fail(self, failure: Failure) -> None:
        if not self.is_closed:
            self.failed.emit(failure)

    def _finish(self) -> None:
        if not self.is_closed:
            self._task = None
            self._jobs.popleft()
            self._next()
            if not self.is_busy:
                self.idled.emit()


class _Job(NamedTuple):
    work: Callable[[], Any]
    then: Callable[[Any], None] | None
    keeps: bool
