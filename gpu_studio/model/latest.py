"""The answer to the newest question, worked out in a thread; earlier questions are dropped.

A question is a file from outside, perhaps on a hanging drive, or what somebody types.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_DELAY_MS = 300
_UNEXPECTED = "This cannot be read. The log says why."
_log = logging.getLogger(__name__)


class Latest(QObject):
    """Answers one question at a time; a later one takes the place of an earlier one.

    Args:
        parent: owns it.
        pause_ms: how long a question has to be the newest before it is asked.

    Attributes:
        notice: that a file is being opened, if it takes long, or why the newest question has no
            answer; empty else.

    Signals:
        delayed(): the newest question has no answer for so long that a person wonders.
        succeeded(object): the answer to the newest question.
        failed(Failure): why the newest question has none.
        idled(): no question is being answered any more, after either signal.
    """

    delayed = Signal()
    succeeded = Signal(object)
    failed = Signal(object)
    idled = Signal()

    def __init__(self, parent: QObject | None = None, *, pause_ms: int = 0) -> None:
        super().__init__(parent)
        self._queue = TaskQueue(self)
        self._queue.idled.connect(self.idled)
        # Most answers are there at once: words that come and go would only flicker.
        self._delay = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._delay.timeout.connect(self._on_delayed)
        self._pause = QTimer(self, singleShot=True, interval=pause_ms)
        self._pause.timeout.connect(self._begin)
        self._work: Callable[[Callable[[], bool]], Any] = lambda _is_over: None
        self._newest, self._is_waiting = 0, False
        self._path: Path | None = None
        self.notice = Notice()

    @property
    def is_busy(self) -> bool:
        """Whether the newest question has no answer yet."""
        return self._is_waiting

    def ask(self, work: Callable[[Callable[[], bool]], Any], path: Path | None = None) -> None:
        """Ask a question, and no earlier one any more.

        Args:
            work: returns the answer; called in a thread, with a function that returns whether that
                is no longer needed.
            path: of the file that it opens, for the notice.
        """
        if self._queue.is_closed:
            return
        self.drop()
        self._work, self._path, self._is_waiting = work, path, True
        self._delay.start()
        if self._pause.interval():
            self._pause.start()
        else:
            self._begin()

    def drop(self) -> None:
        """Ask nothing any more."""
        self._newest += 1
        self._is_waiting, self.notice = False, Notice()
        self._delay.stop()
        self._pause.stop()

    def close(self) -> None:
        """Answer no more, and wait for the thread."""
        self.drop()
        self._queue.close()

    def _begin(self) -> None:
        number, work = self._newest, self._work

        def is_over() -> bool:
            return self._queue.is_closed or number != self._newest

        self._queue.add(lambda: _answer(number, work, is_over), self._on_answered, keeps=False)

    def _on_delayed(self) -> None:
        if self._path is not None:
            self.notice = Notice(opening(self._path))
        self.delayed.emit()

    def _on_answered(self, answer: _Answer) -> None:
        if answer.number != self._newest:
            return
        self._is_waiting, self.notice = False, Notice()
        self._delay.stop()
        if answer.failure is not None:
            is_unexpected = answer.failure.kind is FailureKind.INTERNAL
            words = _UNEXPECTED if is_unexpected else answer.failure.message
            self.notice = Notice(words, Tone.FAILURE)
            self.failed.emit(answer.failure)
        else:
            self.succeeded.emit(answer.result)


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
        _log.exception("A question could not be answered")
        return _Answer(number, failure=failure_from(error))
