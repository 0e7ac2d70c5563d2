"""The state of the “What if” page: a history, the choices, and the answers of child processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.memory.replay.replay_call import (
    LONGEST_ANSWER_S,
    LONGEST_OPENING_S,
    MEMORY_BYTES,
    MODULE,
    MOST_ANSWER_BYTES,
    AnsweredSmallest,
    AnsweredWhatIf,
    AskSettings,
    AskSmallest,
    AskWhatIf,
    NoHistory,
    OpenedHistory,
    OpenHistory,
    Question,
    decode_answer,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.plain_text import file_name
from gpu_studio.model.file_reading import opening, opening_delay
from gpu_studio.model.worker import Task
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from gpu_studio.core.memory.replay.replay_call import Answer

_AFTER_CHOOSING_MS = 150


class WhatIfChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The card to replay a history on; see `what_if`."""

    card_bytes: int
    other_bytes: int
    conf: str
    empty_at: tuple[int, ...] = ()


class HistoryChild(QObject):
    """Asks one question at a time in a child process; the next one ends the one before.

    Signals:
        answered(object): the `Answer` to the last question.
        failed(Failure): why there is no answer to the last question.
    """

    answered = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._call: ChildCall | None = None
        self._tasks: list[Task] = []

    @property
    def is_busy(self) -> bool:
        """Whether the last question has no answer yet."""
        return self._call is not None

    def ask(self, question: Question, longest_s: float) -> None:
        """Ask, and forget the question before."""
        self.cancel()
        call = self._call = ChildCall(MODULE, memory_bytes=MEMORY_BYTES)
        task = Task(lambda: (call, _answer_of(call, question, longest_s)), self)
        self._tasks.append(task)
        task.succeeded.connect(self._on_answered)
        task.finished.connect(self._on_finished)
        task.start()

    def cancel(self) -> None:
        """End the child; its answer is no longer wanted."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def close(self) -> None:
        """End the child, and wait for its thread."""
        self.cancel()
        for task in self._tasks:
            task.wait()

    def _on_answered(self, result: tuple[ChildCall, Answer | Failure]) -> None:
        call, answer = result
        if call is not self._call:
            return
        self._call = None
        if isinstance(answer, Failure):
            self.failed.emit(answer)
        else:
            self.answered.emit(answer)

    def _on_finished(self) -> None:
        task = self.sender()
        assert isinstance(task, Task)
        self._tasks.remove(task)


def _answer_of(call: ChildCall, question: Question, longest_s: float) -> Answer | Failure:
    """Return what a child answers, or why it does not; called in a thread."""
    try:
        ended = call.run(
            msgspec.msgpack.encode(question), longest_s=longest_s, most_bytes=MOST_ANSWER_BYTES
        )
        if ended.exit_code == 0:
            return decode_answer(ended.content)
    except OSError:
        return Failure(FailureKind.FILE_REFUSED, "No process can be started for this history.")
    except msgspec.MsgspecError:
        pass
    reason = ended.reason or (
        "This history takes too long."
        if ended.is_late
        else "This history needs more memory than it is given."
    )
    return Failure(FailureKind.FILE_REFUSED, reason)


class WhatIfModel(QObject):
    """Opens one history at a time, and answers for the newest choices.

    First comes the chosen card, then the smallest card that is enough, then the best setting. What
    is known for a choice is kept as long as the history.

    Signals:
        history_changed(): another history was opened or refused.
        answers_changed(): an answer arrived, or the choices changed.
        no_history_found(Path): the file is a snapshot of one moment.

    Attributes:
        history: the opened one; None before the first.
        name: of its file.
        opened_path: its file.
        notice: what is being opened, or why it is refused.
        choices: the newest ones; None before the first.
    """

    history_changed = Signal()
    answers_changed = Signal()
    no_history_found = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.history: OpenedHistory | None = None
        self.name = ""
        self.notice = Notice()
        self.choices: WhatIfChoices | None = None
        self._path = self.opened_path = Path()
        self._opening = HistoryChild(self)
        self._opening.answered.connect(self._on_opened)
        self._opening.failed.connect(self._on_refused)
        self._delay = opening_delay(self)
        self._delay.timeout.connect(self._on_delayed)
        self._asking = HistoryChild(self)
        self._asking.answered.connect(self._keep)
        self._asking.failed.connect(self._keep)
        self._asked: Question | None = None
        self._answers: dict[Question, Answer | Failure] = {}
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_AFTER_CHOOSING_MS)
        self._pause.timeout.connect(self._ask_next)
        self._is_closed = False

    # ── the history ──────────────────────────────────────────────────────────────────────────

    @property
    def is_opening(self) -> bool:
        """Whether a file is being read."""
        return self._opening.is_busy

    def open(self, path: Path, device_index: int | None = None) -> None:
        """Open a file, and no earlier one any more; the open history stays until then.

        Args:
            path: the file.
            device_index: the card; None for the first one with memory.
        """
        if self._is_closed:
            return
        self._path, self.notice = path, Notice()
        question = OpenHistory(path=os.fsencode(path), device_index=device_index)
        self._opening.ask(question, LONGEST_OPENING_S)
        self._delay.start()
        self.history_changed.emit()

    def close(self) -> None:
        """End all work, and wait for the threads."""
        self._is_closed = True
        self._delay.stop()
        self._pause.stop()
        self._opening.close()
        self._asking.close()

    def _on_delayed(self) -> None:
        self.notice = Notice(opening(self._path))
        self.history_changed.emit()

    def _on_opened(self, answer: OpenedHistory | NoHistory) -> None:
        self._delay.stop()
        if isinstance(answer, NoHistory):
            self.notice = Notice(
                f"{file_name(self._path)} is a snapshot of one moment, without a history. “Record "
                "one” has the lines that record a history.",
                Tone.AMBER,
            )
            self.history_changed.emit()
            self.no_history_found.emit(self._path)
            return
        self._asking.cancel()
        self.notice, self.history, self.name = Notice(), answer, file_name(self._path)
        self.opened_path = self._path
        self._answers.clear()
        self.history_changed.emit()
        self._ask_next()

    def _on_refused(self, failure: Failure) -> None:
        self._delay.stop()
        self.notice = Notice(failure.message, Tone.FAILURE)
        self.history_changed.emit()

    # ── the answers ──────────────────────────────────────────────────────────────────────────

    def choose(self, choices: WhatIfChoices) -> None:
        """Answer for these choices, and no earlier ones any more."""
        if choices != self.choices:
            self.choices = choices
            self._pause.start()
            self.answers_changed.emit()

    @property
    def on_card(self) -> AnsweredWhatIf | Failure | None:
        """What happens on the chosen card; None if it is not known yet."""
        questions = self._questions()
        found = self._answers.get(questions[0]) if questions else None
        assert found is None or isinstance(found, (AnsweredWhatIf, Failure))
        return found

    @property
    def smallest(self) -> AnsweredSmallest | Failure | None:
        """The smallest card with the chosen setting; None if it is not known yet."""
        return self._smallest_of(1)

    @property
    def best(self) -> AnsweredSmallest | Failure | None:
        """The best setting of those that are tried; None if it is not known yet."""
        return self._smallest_of(2)

    def _smallest_of(self, number: int) -> AnsweredSmallest | Failure | None:
        questions = self._questions()
        found = self._answers.get(questions[number]) if questions else None
        assert found is None or isinstance(found, (AnsweredSmallest, Failure))
        return found

    def _questions(self) -> tuple[AskWhatIf, AskSmallest, AskSettings] | None:
        """Return what is to be known, the most urgent first; None without a history.

        The history is large and the same for all: it is added when a question is asked.
        """
        chosen = self.choices
        if chosen is None or self.history is None:
            return None
        others, conf, empty_at = chosen.other_bytes, chosen.conf, chosen.empty_at
        return (
            AskWhatIf(
                replayed=b"", card_bytes=chosen.card_bytes, other_bytes=others, conf=conf,
                empty_at=empty_at,
            ),
            AskSmallest(replayed=b"", other_bytes=others, conf=conf, empty_at=empty_at),
            AskSettings(replayed=b"", other_bytes=others),
        )  # fmt: skip

    def _ask_next(self) -> None:
        questions, history = self._questions(), self.history
        if questions is None or history is None or self._is_closed:
            return
        wanted = next((one for one in questions if one not in self._answers), None)
        if wanted is None:
            self._asking.cancel()
        elif wanted != self._asked or not self._asking.is_busy:
            self._asked = wanted
            question = msgspec.structs.replace(wanted, replayed=history.replayed)
            self._asking.ask(question, LONGEST_ANSWER_S)

    def _keep(self, answer: Answer | Failure) -> None:
        assert self._asked is not None
        self._answers[self._asked] = answer
        self.answers_changed.emit()
        self._ask_next()
