"""What a check keeps on the disk, in a thread: a slow disk never holds the window."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.check.record_page import read_record
from gpu_studio.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.check.check_folder import CheckFolder, CutOffCheck
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_run import CheckRun, CheckState
    from gpu_studio.core.failure import Failure

_log = logging.getLogger(__name__)


class EarlierCheck(NamedTuple):
    """The last record of the card with this fingerprint; None if there is none."""

    fingerprint: str
    record: CheckRecord | None


class CheckKeeper(QObject):
    """Does one thing after the other.

    Signals:
        looked(tuple[CutOffCheck, ...], tuple[CheckRecord, ...]): the checks that were cut off,
            and the kept records, the last one first.
        others_found(bool): whether another program of this user runs a check now.
        earlier_found(EarlierCheck): the last record of a card.
        opened(CheckRecord): the record in a file.
        failed(str): something could not be written or read, as a sentence.
    """

    looked = Signal(object, object)
    others_found = Signal(bool)
    earlier_found = Signal(object)
    opened = Signal(object)
    failed = Signal(str)

    def __init__(self, folder: CheckFolder, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._waiting: deque[tuple[Callable[[], Any], Callable[[Any], None] | None]] = deque()
        self._task: Task | None = None
        self._tell: Callable[[Any], None] | None = None

    def look(self) -> None:
        """Look for checks that were cut off, and for records."""
        folder = self._folder

        def found() -> tuple[tuple[CutOffCheck, ...], tuple[CheckRecord, ...]]:
            return folder.cut_off(), folder.records()

        self._add(found, lambda found: self.looked.emit(*found))

    def find_others(self) -> None:
        """Find out whether another program of this user runs a check now."""
        self._add(self._folder.runs_elsewhere, self.others_found.emit)

    def find_earlier(self, fingerprint: str) -> None:
        """Find the last record of a card."""
        folder = self._folder
        self._add(
            lambda: EarlierCheck(fingerprint, folder.earlier(fingerprint)), self.earlier_found.emit
        )

    def keep_state(self, state: CheckState) -> None:
        """Keep the state of the running check."""
        folder = self._folder
        self._add(lambda: folder.keep_state(state))

    def conclude(self, run: CheckRun, record: CheckRecord) -> None:
        """Keep the record of a check that is over, and forget its state."""
        folder, check_id, fingerprint = self._folder, run.check_id, run.fingerprint
        if run.device is not None:  # otherwise, nothing was tested
            self._add(lambda: folder.keep_record(record, check_id, fingerprint))
        self._add(lambda: folder.forget_state(check_id))

    def open_file(self, path: Path) -> None:
        """Open the record in a file."""
        self._add(lambda: read_record(path), self.opened.emit)

    def close(self) -> None:
        """Finish what waits; the state of a check that is still kept is found at the next start."""
        if self._task is not None:
            self._task.wait()
        while self._waiting:
            work, _ = self._waiting.popleft()
            try:
                work()
            except Exception:
                _log.exception("A check could not be kept")
        self._folder.close()

    def _add(self, work: Callable[[], Any], tell: Callable[[Any], None] | None = None) -> None:
        self._waiting.append((work, tell))
        self._next()

    def _next(self) -> None:
        if self._task is not None or not self._waiting:
            return
        work, self._tell = self._waiting.popleft()
        self._task = Task(work, self)
        self._task.succeeded.connect(self._succeed)
        self._task.failed.connect(self._fail)
        self._task.finished.connect(self._finish)
        self._task.start()

    def _succeed(self, result: Any) -> None:
        if self._tell is not None:
            self._tell(result)

    def _fail(self, failure: Failure) -> None:
        self.failed.emit(failure.message)

    def _finish(self) -> None:
        self._task = None
        self._next()
