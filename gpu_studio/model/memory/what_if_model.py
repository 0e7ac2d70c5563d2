"""The state of the “What if” page: a history, the choices, and the answers of child processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.failure import Failure
from gpu_studio.core.memory.replay.replay_call import (
    AnsweredSmallest,
    AnsweredWhatIf,
    AskSmallest,
    AskWhatIf,
    NoHistory,
    OpenedHistory,
    OpenHistory,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.model.file_reading import opening, opening_delay
from gpu_studio.model.memory.opened_snapshot import SnapshotChild

if TYPE_CHECKING:
    from gpu_studio.core.memory.replay.replay_call import Answer, Question

_AFTER_CHOOSING_MS = 150


class WhatIfChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The card to replay a history on; see `what_if`."""

    card_bytes: int
    other_bytes: int
    conf: str


class WhatIfModel(QObject):
    """Opens one history at a time, and answers for the newest choices.

    First comes the chosen card, then the smallest card that is enough. What is known for a choice
    is kept as long as the history.

    Signals:
        history_changed(): another history was opened or refused.
        answers_changed(): an answer arrived, or the choices changed.
        no_history_found(Path): the file is a snapshot of one moment.

    Attributes:
        history: the opened one; None before the first.
        name: of its file.
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
        self._path = Path()
        self._opening = SnapshotChild(self)
        self._opening.answered.connect(self._on_opened)
        self._opening.failed.connect(self._on_refused)
        self._delay = opening_delay(self)
        self._delay.timeout.connect(self._on_delayed)
        self._asking = SnapshotChild(self)
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

    def open(self, path: Path) -> None:
        """Open a file, and no earlier one any more; the open history stays until then."""
        if self._is_closed:
            return
        self._path, self.notice = path, Notice()
        question = OpenHistory(path=os.fsencode(path))
        self._opening.ask(question)
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
        found = self._answer_to(0)
        assert found is None or isinstance(found, (AnsweredWhatIf, Failure))
        return found

    @property
    def smallest(self) -> AnsweredSmallest | Failure | None:
        """The smallest card with the chosen setting; None if it is not known yet."""
        found = self._answer_to(1)
        assert found is None or isinstance(found, (AnsweredSmallest, Failure))
        return found

    def _answer_to(self, number: int) -> Answer | Failure | None:
        questions = self._questions()
        return self._answers.get(questions[number]) if questions else None

    def _questions(self) -> tuple[AskWhatIf, AskSmallest] | None:
        """Return what is to be known, the most urgent first; None without a history.

        The history is large and the same for all: it is added when a question is asked.
        """
        chosen = self.choices
        if chosen is None or self.history is None:
            return None
        others, conf = chosen.other_bytes, chosen.conf
        return (
            AskWhatIf(history=b"", card_bytes=chosen.card_bytes, other_bytes=others, conf=conf),
            AskSmallest(history=b"", other_bytes=others, conf=conf),
        )

    def _ask_next(self) -> None:
        questions, history = self._questions(), self.history
        if questions is None or history is None or self._is_closed:
            return
        wanted = next((one for one in questions if one not in self._answers), None)
        if wanted is None:
            self._asking.cancel()
        elif wanted != self._asked or not self._asking.is_busy:
            self._asked = wanted
            self._asking.ask(msgspec.structs.replace(wanted, history=history.history))

    def _keep(self, answer: Answer | Failure) -> None:
        assert self._asked is not None
        self._answers[self._asked] = answer
        self.answers_changed.emit()
        self._ask_next()
