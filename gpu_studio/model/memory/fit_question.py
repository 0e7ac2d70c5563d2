"""“Will it fit?”: one question at a time, answered in a thread."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.fit import model_fit
from gpu_studio.core.memory.networks import Network
from gpu_studio.core.memory.weights import weights_file
from gpu_studio.model.file_reading import opening, opening_delay
from gpu_studio.model.worker import Task
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.fit import ModelFit, TrainingPlan
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice

_AFTER_TYPING_MS = 200


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A card or the PC's RAM, a network, its data type, its training plan, and texts to write.

    The network is a known one, a file of weights, or only a number of parameters. ``config`` is
    its configuration, if that is not next to the file; ``context`` and ``batch`` are as for
    `token_reading`.
    """

    card: ModelledCardChoice
    network: Network | Path
    dtype: str
    plan: TrainingPlan
    config: Path | None = None
    context: int | None = None
    batch: int = 1
    is_ram: bool = False

    @property
    def files(self) -> tuple[Path | None, Path | None]:
        """The file of weights and the configuration to read for it."""
        return (self.network if isinstance(self.network, Path) else None, self.config)


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a network fits, and what writing text needs."""

    question: Question
    model_fit: ModelFit


class FitQuestion(QObject):
    """Answers the newest question and drops those in between.

    Signals:
        answered(FitAnswer)
        delayed(): a network's file has not been read for a while; `opening` says which.
        failed(str): there is no answer, for this reason.

    Attributes:
        opening: the words that a file is being opened; empty if none is, or not for long.
    """

    answered = Signal(object)
    delayed = Signal()
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted: Question | None = None
        self._asked: Question | None = None
        self._call: ChildCall | None = None
        self._read: tuple[tuple[Path | None, Path | None], Network] | None = None
        self._task: Task | None = None
        self._is_closed = False
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_AFTER_TYPING_MS)
        self._pause.timeout.connect(self._begin)
        self.opening = ""
        self._delay = opening_delay(self)
        self._delay.timeout.connect(self._on_delayed)

    def ask(self, question: Question) -> None:
        """Ask; repeating the last question does nothing."""
        if question != self._wanted and not self._is_closed:
            self._wanted = question
            if self._call and self._asked and self._asked.files != question.files:
                self._call.cancel()
            self._pause.start()

    def close(self) -> None:
        """Stop answering, and wait for the thread: it must not outlive its owner."""
        self._is_closed = True
        self._pause.stop()
        self._delay.stop()
        if self._call is not None:
            self._call.cancel()
        if self._task is not None:
            self._task.wait()

    def _begin(self) -> None:
        question = self._wanted
        if self._is_closed or self._task or question is None or question == self._asked:
            return
        self._asked = question
        self._task = Task(partial(self._answer, question), self)
        self._task.succeeded.connect(self._on_answered)
        self._task.failed.connect(self._on_failed)
        self._task.finished.connect(self._on_finished)
        self._task.start()
        if any(question.files):
            self._delay.start()

    def _answer(self, question: Question) -> FitAnswer:
        """Return the answer; in the task's thread."""
        found = model_fit(
            question.card, self._opened(question), question.dtype, question.plan,
            context=question.context, batch=question.batch,
        )  # fmt: skip
        return FitAnswer(question=question, model_fit=found)

    def _opened(self, question: Question) -> Network:
        files, network = question.files, question.network
        if isinstance(network, Network) and (network.name or not question.config):
            return network
        if self._read is None or self._read[0] != files:
            call = self._call = ChildCall(
                weights_file.MODULE, memory_bytes=weights_file.MEMORY_BYTES
            )
            ask = partial(
                call.run,
                longest_s=weights_file.LONGEST_S,
                most_bytes=weights_file.MOST_ANSWER_BYTES,
            )
            found = weights_file.ask_weights(
                *files, ask, lambda: self._is_closed or question != self._wanted
            )
            self._call, self._read = None, (files, found)
        found = self._read[1]
        if isinstance(network, Network):
            return msgspec.structs.replace(network, config=found.config)
        return found

    def _on_delayed(self) -> None:
        path = next(filter(None, self._asked.files), None) if self._asked else None
        if path is not None:
            self.opening = opening(path)
            self.delayed.emit()

    def _on_read(self) -> None:
        self._delay.stop()
        self.opening = ""

    def _on_answered(self, answer: FitAnswer) -> None:
        self._on_read()
        if answer.question == self._wanted:
            self.answered.emit(answer)

    def _on_failed(self, failure: Failure) -> None:
        self._on_read()
        if self._asked == self._wanted:
            is_refused = failure.kind is FailureKind.BAD_REQUEST
            unknown = "This cannot be computed. The log says why."
            self.failed.emit(failure.message if is_refused else unknown)

    def _on_finished(self) -> None:
        self._task = None
        self._begin()
