"""What is asked of a PC that the user may add: its answers come until they are not wanted."""

from __future__ import annotations

import threading
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpu_studio.core.failure import Failure
    from gpu_studio.model.pc_line import PcPort

_LONGEST_END_MS = 1500


class PcErrand(QObject):
    """Asks in a thread, one thing at a time; what a cancelled thread still answers is dropped.

    Args:
        port: reaches the PC.
        parent: owns the errand; may outlive who asked, so that a cancelled ssh can end.

    Signals:
        changed(): something else is known or can be done, or the errand is over.

    Attributes:
        is_running: whether the PC is still asked, or gets something.
    """

    changed = Signal()

    def __init__(self, port: PcPort, parent: QObject) -> None:
        super().__init__(parent)
        self._port = port
        self._is_over = threading.Event()
        self.cancel()

    def cancel(self) -> None:
        """Give up, and forget the answers; ssh ends by itself soon."""
        self._is_over.set()
        self._worker: Worker | None = None
        self.is_running = False
        self._forget()

    def close(self) -> None:
        """Give up, and wait until nothing is left running."""
        self.cancel()
        for worker in self.findChildren(Worker):
            worker.wait(_LONGEST_END_MS)

    def _start(self, answers: Callable[[threading.Event], Iterable[Any]]) -> None:
        """Ask for something, and for nothing else any more.

        Args:
            answers: yields them, in a thread; ends soon after its event is set.
        """
        self.cancel()
        self._is_over = threading.Event()
        worker = Worker(partial(answers, self._is_over), self)
        worker.value_produced.connect(self._receive)
        worker.failure_raised.connect(self._fail)
        worker.finished.connect(self._finish)
        worker.finished.connect(worker.deleteLater)
        self._worker, self.is_running = worker, True
        worker.start()

    def _receive(self, answer: object) -> None:
        if self.sender() is self._worker:
            self._on_answer(answer)

    def _fail(self, failure: Failure) -> None:
        if self.sender() is self._worker:
            self._on_failure(failure)

    def _finish(self) -> None:
        if self.sender() is self._worker:
            self._worker, self.is_running = None, False
            self._on_end()
            self.changed.emit()

    @abstractmethod
    def _forget(self) -> None:
        """Forget all answers."""

    @abstractmethod
    def _on_answer(self, answer: Any) -> None:
        """Note an answer of the present thread."""

    @abstractmethod
    def _on_failure(self, failure: Failure) -> None:
        """Note why the present thread has failed."""

    def _on_end(self) -> None:
        """Note what the last answer has left open."""
