"""What a check keeps on the disk, in a thread: a slow disk never holds the window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.check.check_record import read_record
from gpu_studio.model.file_reading import FileReading
from gpu_studio.model.task_queue import TaskQueue

if TYPE_CHECKING:
    from gpu_studio.core.check.check_folder import CheckFolder, CutOffCheck
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.check.check_run import CheckRun, CheckState
    from gpu_studio.core.failure import Failure


class EarlierCheck(NamedTuple):
    """The last record of the card with this fingerprint; None if there is none."""

    fingerprint: str
    record: CheckRecord | None


class CheckKeeper(QObject):
    """Keeps and finds checks, one after the other.

    Signals:
        looked(tuple[CutOffCheck, ...], tuple[CheckRecord, ...]): the checks that were cut off,
            and the kept records, the last one first.
        claimed(bool): whether it is this program's turn to check: no other one of this user does.
        earlier_found(EarlierCheck): the last record of a card.
        delayed(Path): the file from elsewhere with a record has not come for a while.
        opened(CheckRecord): the record in a file from elsewhere.
        failed(str): something could not be written or read, as a sentence.
    """

    looked = Signal(object, object)
    claimed = Signal(bool)
    earlier_found = Signal(object)
    delayed = Signal(object)
    opened = Signal(object)
    failed = Signal(str)

    def __init__(self, folder: CheckFolder, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._folder = folder
        self._files = TaskQueue(self)
        self._files.failed.connect(self._fail)
        self._reading = FileReading(self)  # a drive that hangs must not hold what is kept
        self._path = Path()
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self.opened)
        self._reading.failed.connect(self._fail)

    @property
    def is_busy(self) -> bool:
        """Whether files are being read or written."""
        return self._files.is_busy or self._reading.is_reading

    def look(self) -> None:
        """Look for checks that were cut off, and for records."""
        folder = self._folder

        def found() -> tuple[tuple[CutOffCheck, ...], tuple[CheckRecord, ...]]:
            return folder.cut_off(), folder.records()

        self._files.add(found, lambda found: self.looked.emit(*found), keeps=False)

    def claim(self) -> None:
        """Take the turn to check, which only one program of this user has."""
        self._files.add(self._folder.claim, self.claimed.emit, keeps=False)

    def release(self) -> None:
        """Give the turn to check back."""
        self._files.add(self._folder.release)

    def find_earlier(self, fingerprint: str) -> None:
        """Find the last record of a card."""
        folder = self._folder
        self._files.add(
            lambda: EarlierCheck(fingerprint, folder.earlier(fingerprint)),
            self.earlier_found.emit,
            keeps=False,
        )

    def keep_state(self, state: CheckState) -> None:
        """Keep the state of the running check."""
        folder = self._folder
        self._files.add(lambda: folder.keep_state(state))

    def conclude(self, run: CheckRun, record: CheckRecord) -> None:
        """Keep the record of a check that is over, and forget its state."""
        folder, check_id, fingerprint = self._folder, run.check_id, run.fingerprint
        if record.has_tested:
            self._files.add(lambda: folder.keep_record(record, check_id, fingerprint))
        self._files.add(lambda: folder.forget_state(check_id))

    def open_file(self, path: Path) -> None:
        """Open the record in a file, and no earlier one any more."""
        self._path = path
        self._reading.read(lambda is_over: read_record(path, is_over))

    def close(self) -> None:
        """Finish what waits; the state of a check that is still kept is found at the next start."""
        self._reading.close()
        self._files.close()
        self._folder.close()

    def _on_delayed(self) -> None:
        self.delayed.emit(self._path)

    def _fail(self, failure: Failure) -> None:
        self.failed.emit(failure.message)
