"""“Will it fit?”: one question at a time, answered by the allocator's model in a thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.fit import fit_on, model_fit
from gpu_studio.core.memory.networks import read_network
from gpu_studio.model.file_reading import opening, opening_delay
from gpu_studio.model.task import Task

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.fit import Fit, ModelFit
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice
    from gpu_studio.core.memory.networks import Network
    from gpu_studio.core.memory.training import TrainingPlan

_AFTER_TYPING_MS = 200


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A card, a network, its data type, and its training plan.

    The network is a known one, a safetensors file, or only a number of parameters.
    """

    card: ModelledCardChoice
    network: int | Network | Path
    dtype: str
    plan: TrainingPlan


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The card's limits, and whether the network fits."""

    question: Question
    fit: Fit
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
        self._fits: dict[ModelledCardChoice, Fit] = {}
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
            self._pause.start()

    def close(self) -> None:
        """Stop answering, and wait for the thread: it must not outlive its owner."""
        self._is_closed = True
        self._pause.stop()
        self._delay.stop()
        if self._task is not None:
            self._task.wait()

    def _begin(self) -> None:
        if self._is_closed or self._task is not None:
            return
        if self._wanted is None or self._wanted == self._asked:
            return
        question, known = self._wanted, self._fits.get(self._wanted.card)
        self._asked = question

        def work_out() -> FitAnswer:
            network = question.network
            if isinstance(network, Path):
                network = read_network(network, lambda: self._is_closed or question != self._wanted)
            return FitAnswer(
                question=question,
                fit=known or fit_on(question.card),
                model_fit=model_fit(question.card, network, question.dtype, plan=question.plan),
            )

        self._task = Task(work_out, self)
        self._task.succeeded.connect(self._on_answered)
        self._task.failed.connect(self._on_failed)
        self._task.finished.connect(self._finish)
        self._task.start()
        if isinstance(question.network, Path):
            self._delay.start()

    def _on_delayed(self) -> None:
        if self._asked is not None and isinstance(self._asked.network, Path):
            self.opening = opening(self._asked.network)
            self.delayed.emit()

    def _on_opened(self) -> None:
        self._delay.stop()
        self.opening = ""

    def _on_answered(self, answer: FitAnswer) -> None:
        self._on_opened()
        self._fits[answer.question.card] = answer.fit
        if answer.question == self._wanted:
            self.answered.emit(answer)

    def _on_failed(self, failure: Failure) -> None:
        self._on_opened()
        is_refused = failure.kind is FailureKind.BAD_REQUEST
        unknown = "This cannot be computed. The log says why."
        self.failed.emit(failure.message if is_refused else unknown)

    def _finish(self) -> None:
        self._task = None
        self._begin()
