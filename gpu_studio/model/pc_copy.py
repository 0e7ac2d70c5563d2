"""A copy of this program to a PC that the user may add, and has none: offered, then sent."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_copy import CopyOffer, CopyStep
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.model.pc_line import PcPort

_LONGEST_END_MS = 1500


class PcCopy(QObject):
    """Asks what a copy needs, then sends it. Nothing is sent before `send`.

    Args:
        port: reaches the PC.
        parent: owns the copy; may outlive who asked.

    Signals:
        changed(): `notice` or what can be done changed.

    Attributes:
        notice: what was found, what is under way, or how it ended; None before.
        offer: what can be sent now; None if nothing can.
        is_running: whether the PC is asked, or gets something.
        is_ready: whether GPU Studio is there by now, with PyTorch.
    """

    changed = Signal()

    def __init__(self, port: PcPort, parent: QObject) -> None:
        super().__init__(parent)
        self._port = port
        self._is_over = threading.Event()
        self._forget()

    def look(self, address: OtherPc) -> None:
        """Ask a PC what it has for a copy."""
        self._start(lambda is_over: iter([self._port.copy_offer(address, is_over)]))
        self._say(Notice("Looking whether it can be copied…", Tone.QUIET))

    def send(self) -> None:
        """Send what is offered."""
        offer = self.offer
        if offer is not None:
            self._start(partial(self._port.copying, offer))
            self.changed.emit()

    def cancel(self) -> None:
        """Give up; ssh ends soon, and nothing half is left there."""
        self._is_over.set()
        self._forget()

    def close(self) -> None:
        """Give up, and wait until nothing is left running."""
        self.cancel()
        for worker in self.findChildren(Worker):
            worker.wait(_LONGEST_END_MS)

    def _forget(self) -> None:
        self._worker: Worker | None = None
        self.notice: Notice | None = None
        self.offer: CopyOffer | None = None
        self.is_running = self.is_ready = False

    def _start(
        self, values: Callable[[Callable[[], bool]], Iterable[CopyOffer | CopyStep]]
    ) -> None:
        self.cancel()
        self._is_over = threading.Event()
        worker = Worker(partial(values, self._is_over.is_set), self)
        worker.value_produced.connect(self._on_value)
        worker.failure_raised.connect(self._on_failed)
        worker.finished.connect(self._on_finished)
        worker.finished.connect(worker.deleteLater)
        self._worker, self.is_running = worker, True
        worker.start()

    def _on_value(self, value: CopyOffer | CopyStep) -> None:
        if self.sender() is not self._worker:
            return  # cancelled meanwhile
        if isinstance(value, CopyStep):
            self.is_ready = value.is_ready
            tone = Tone.FAILURE if value.has_failed else Tone.QUIET
            self._say(Notice(value.sentence, tone))
            return
        trouble = value.trouble
        self.offer = None if trouble else value
        self._say(Notice(trouble or value.sentence, Tone.AMBER if trouble else Tone.PLAIN))

    def _on_failed(self, failure: Failure) -> None:
        if self.sender() is self._worker:
            self._say(Notice(failure.message, Tone.FAILURE))

    def _on_finished(self) -> None:
        if self.sender() is self._worker:
            self._worker, self.is_running = None, False
            self.changed.emit()

    def _say(self, notice: Notice) -> None:
        self.notice = notice
        self.changed.emit()
