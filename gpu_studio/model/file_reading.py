"""Reads files that come from outside: dropped, chosen or named, and perhaps on a hanging drive."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import Failure, StudioError, failure_from
from gpu_studio.core.texts import file_name
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_OPENING_DELAY_MS = 300
_log = logging.getLogger(__name__)


class FileReading(QObject):
    """Reads one file at a time in a thread; a later file takes the place of an earlier one.

    Signals:
        delayed(): the last file has not been read for so long that a person wonders.
        succeeded(object): what the last file holds.
        failed(Failure): why the last file cannot be read.
        idled(): no file is being read any more, after either signal.
    """

    delayed = Signal()
    succeeded = Signal(object)
    failed = Signal(object)
    idled = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._files = TaskQueue(self)
        self._files.idled.connect(self.idled)
        self._delay = opening_delay(self)
        self._delay.timeout.connect(self.delayed)
        self._last = 0

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._files.is_busy

    def read(self, work: Callable[[Callable[[], bool]], Any]) -> None:
        """Read a file, and no earlier one any more.

        Args:
            work: returns what the file holds; called in a thread, with a function that returns
                whether that is no longer needed.
        """
        self._last += 1
        number = self._last

        def is_over() -> bool:
            return self._files.is_closed or number != self._last

        self._files.add(lambda: _answer(number, work, is_over), self._on_read, keeps=False)
        self._delay.start()

    def close(self) -> None:
        """Read no more, and wait for the thread."""
        self._delay.stop()
        self._files.close()

    def _on_read(self, answer: _Answer) -> None:
        if answer.number != self._last:
            return
        self._delay.stop()
        if answer.failure is not None:
            self.failed.emit(answer.failure)
        else:
            self.succeeded.emit(answer.result)


def opening_delay(parent: QObject) -> QTimer:
    """Return a timer for the words that a file is being opened.

    Most files are there at once: words that come and go would only flicker.
    """
    timer = QTimer(parent)
    timer.setSingleShot(True)
    timer.setInterval(_OPENING_DELAY_MS)
    return timer


def opening(path: Path) -> str:
    """Return the words that a file is being opened."""
    return f"Opening {file_name(path)}…"


class _Answer(NamedTuple):
    number: int
    result: Any = None
    failure: Failure | None = None


def _answer(
    number: int, work: Callable[[Callable[[], bool]], Any], is_over: Callable[[], bool]
) -> _Answer:
    if is_over():
        return _Answer(number)
    try:
        return _Answer(number, work(is_over))
    except StudioError as error:
        return _Answer(number, failure=failure_from(error))
    except Exception as error:
        _log.exception("A file could not be read")
        return _Answer(number, failure=failure_from(error))
