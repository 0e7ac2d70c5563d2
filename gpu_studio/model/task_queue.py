"""Jobs on a separate thread, one after the other: for files, because a disk may be slow."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.model.worker import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.failure import Failure

_log = logging.getLogger(__name__)
# A job that reads looks at `TaskQueue.is_closed` and ends at once; Qt ends the program if a thread
# is still running when its owner goes.
_LONGEST_END_MS = 10_000


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
            task.wait(_LONGEST_END_MS)
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
