"""The check's own engine: a process that a bad card may hang or end, which is then the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.model.task import Task
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from gpu_studio.core.engine import Engine, EngineEnvironment, EngineFactory
    from gpu_studio.core.messages.check_messages import RunCheck
    from gpu_studio.core.messages.message import Event

_STOP_PATIENCE_MS = 10_000  # a step of a check takes a second at most, on a slow card some more
_LONGEST_FAREWELL_MS = 3000  # for an engine that was ended in the middle of a call
_LONGEST_END_MS = 1500


class CheckEngine(QObject):
    """Runs one round after the other in one engine.

    Signals:
        event_received(Event): the next event of the round.
        fell_silent(): the engine said nothing for longer than its patience, and is ended now.
        finished(): the last event of the round was received.
    """

    event_received = Signal(object)
    fell_silent = Signal()
    finished = Signal()

    def __init__(self, factory: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self._engine: Engine | None = None
        self._worker: Worker | None = None
        self._request: RunCheck | None = None
        self._is_answered = False
        self._endings: list[Task] = []
        self._silence = self._timer(self._end_silent)
        self._patience = self._timer(self._abandon)
        self._farewell = self._timer(self._part)

    def run(self, request: RunCheck, environment: EngineEnvironment) -> None:
        """Start a round; the one before is over."""
        if self._engine is None:
            self._engine = self._factory(environment)
        engine = self._engine
        self._request, self._is_answered = request, False
        self._worker = Worker(lambda: engine.run(request), self)
        self._worker.value_produced.connect(self._receive)
        self._worker.finished.connect(self._finish)
        self._worker.start()

    def expect_within(self, seconds: float) -> None:
        """Wait this long for the next event."""
        if self._worker is not None:
            self._silence.start(round(1000 * seconds))

    def stop(self) -> None:
        """Ask the round to end between two steps; end the engine if that takes too long."""
        if self._engine is not None and self._worker is not None:
            self._engine.stop()
            self._patience.start(_STOP_PATIENCE_MS)

    def end(self) -> None:
        """End the engine without waiting for it: its context would use memory of the card."""
        engine, self._engine = self._engine, None
        if engine is not None:
            ending = Task(engine.close, self)
            self._endings.append(ending)
            ending.finished.connect(self._forget_ended)
            ending.start()

    def close(self) -> None:
        """End everything and wait for it."""
        for timer in (self._silence, self._patience, self._farewell):
            timer.stop()
        worker, self._worker = self._worker, None
        if self._engine is not None:
            self._engine.close()
        if worker is not None:
            worker.wait(_LONGEST_END_MS)
        for ending in self._endings:
            ending.wait()

    def _receive(self, event: Event) -> None:
        if self.sender() is not self._worker:
            return  # of an engine that was given up
        assert self._request is not None
        self._silence.stop()
        self._is_answered = event.ends(self._request)
        self.event_received.emit(event)

    def _finish(self) -> None:
        worker = self.sender()
        assert isinstance(worker, Worker)
        worker.deleteLater()
        if worker is self._worker:
            self._conclude()

    def _conclude(self) -> None:
        self._worker = None
        for timer in (self._silence, self._patience, self._farewell):
            timer.stop()
        if not self._is_answered:
            self.event_received.emit(EngineEnded(exit_code=None, stopped=True))
        self.finished.emit()

    def _end_silent(self) -> None:
        self.fell_silent.emit()
        self._abandon()

    def _abandon(self) -> None:
        if self._engine is not None:
            self._engine.abandon()
            self._farewell.start(_LONGEST_FAREWELL_MS)

    def _part(self) -> None:
        """Go on without an engine that a hung driver keeps alive; its thread stays behind."""
        if self._worker is not None:
            self._conclude()

    def _forget_ended(self) -> None:
        self._endings = [one for one in self._endings if one is not self.sender()]

    def _timer(self, slot: object) -> QTimer:
        made = QTimer(self)
        made.setSingleShot(True)
        made.timeout.connect(slot)
        return made
