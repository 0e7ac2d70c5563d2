"""“Will it fit?”: one question at a time, answered by the allocator's model in a thread."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.fit import fit_on, model_fit
from gpu_studio.core.memory.networks import network_of_count
from gpu_studio.core.memory.token_speed import token_reading
from gpu_studio.core.memory.weights.weights_call import (
    LONGEST_S,
    MEMORY_BYTES,
    MODULE,
    MOST_ANSWER_BYTES,
    ask_weights,
)
from gpu_studio.model.file_reading import opening, opening_delay
from gpu_studio.model.worker import Task
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.fit import Fit, ModelFit
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice
    from gpu_studio.core.memory.networks import Network
    from gpu_studio.core.memory.token_speed import TokenReading
    from gpu_studio.core.memory.training import TrainingPlan

_AFTER_TYPING_MS = 200


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A card or the PC's RAM, a network, its data type, its training plan, and texts to write.

    The network is a known one, a file of weights, or only a number of parameters. ``config`` is
    its configuration, if that is not next to the file; ``context`` and ``batch`` are as for
    `token_reading`.
    """

    card: ModelledCardChoice
    network: int | Network | Path
    dtype: str
    plan: TrainingPlan
    config: Path | None = None
    context: int | None = None
    batch: int = 1
    is_ram: bool = False


class FitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What writing text needs; on a card also its limits, and whether the network fits."""

    question: Question
    reading: TokenReading
    fit: Fit | None = None
    model_fit: ModelFit | None = None


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
            asked, self._wanted = self._asked, question
            if (
                asked is not None
                and (asked.network, asked.config) != (question.network, question.config)
                and self._call is not None
            ):
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
        if self._is_closed or self._task is not None:
            return
        if self._wanted is None or self._wanted == self._asked:
            return
        question, known = self._wanted, self._fits.get(self._wanted.card)
        self._asked = question

        def work_out() -> FitAnswer:
            network = self._opened(question)
            context, batch = question.context, question.batch
            if question.is_ram:
                reading = token_reading(network, question.dtype, context, batch)
                return FitAnswer(question=question, reading=reading)
            found = model_fit(
                question.card, network, question.dtype, plan=question.plan,
                context=context, batch=batch,
            )  # fmt: skip
            return FitAnswer(
                question=question,
                reading=found.reading,
                fit=known or fit_on(question.card),
                model_fit=found,
            )

        self._task = Task(work_out, self)
        self._task.succeeded.connect(self._on_answered)
        self._task.failed.connect(self._on_failed)
        self._task.finished.connect(self._finish)
        self._task.start()
        if isinstance(question.network, Path) or question.config is not None:
            self._delay.start()

    def _opened(self, question: Question) -> int | Network:
        """Return the network of a question; in the task's thread."""
        network, config = question.network, question.config
        path = network if isinstance(network, Path) else None
        if path is None and (config is None or not isinstance(network, int)):
            assert not isinstance(network, Path)
            return network
        files = (path, config)
        if self._read is None or self._read[0] != files:
            call = self._call = ChildCall(MODULE, memory_bytes=MEMORY_BYTES)
            ask = partial(call.run, longest_s=LONGEST_S, most_bytes=MOST_ANSWER_BYTES)
            found = ask_weights(
                path, config, ask, lambda: self._is_closed or question != self._wanted
            )
            self._call, self._read = None, (files, found)
        found = self._read[1]
        return network_of_count(network, found.config) if isinstance(network, int) else found

    def _on_delayed(self) -> None:
        asked = self._asked
        if asked is None:
            return
        path = asked.network if isinstance(asked.network, Path) else asked.config
        if path is not None:
            self.opening = opening(path)
            self.delayed.emit()

    def _on_opened(self) -> None:
        self._delay.stop()
        self.opening = ""

    def _on_answered(self, answer: FitAnswer) -> None:
        self._on_opened()
        if answer.fit is not None:
            self._fits[answer.question.card] = answer.fit
        if answer.question == self._wanted:
            self.answered.emit(answer)

    def _on_failed(self, failure: Failure) -> None:
        self._on_opened()
        if self._asked != self._wanted:
            return
        is_refused = failure.kind is FailureKind.BAD_REQUEST
        unknown = "This cannot be computed. The log says why."
        self.failed.emit(failure.message if is_refused else unknown)

    def _finish(self) -> None:
        self._task = None
        self._begin()
