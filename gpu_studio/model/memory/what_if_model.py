"""A recorded history, and what child processes answer about it on a card."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import Failure
from gpu_studio.core.memory.replay.replay_call import (
    AnsweredWhatIf,
    AskWhatIf,
    NoHistory,
    OpenedHistory,
    OpenHistory,
    ask,
)
from gpu_studio.core.memory.replay.what_if_words import history_answer
from gpu_studio.core.memory.tank import FitAnswer, FitVerdict
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.core.units import format_gib
from gpu_studio.model.latest import Latest, opening
from gpu_studio.process.child_call import call_child

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.replay.replay_call import Answer, Question

_AFTER_CHOOSING_MS = 150


class WhatIfModel(QObject):
    """Opens one history at a time, and answers for the newest card.

    Signals:
        history_opened(): another history was opened.
        changed(): a history was opened or refused, or an answer arrived.
        no_history_found(Path): the file is a snapshot of one moment.

    Attributes:
        history: the opened one; None before the first.
        name: of its file.
        notice: what is being opened, or why it is refused.
    """

    history_opened = Signal()
    changed = Signal()
    no_history_found = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.history: OpenedHistory | None = None
        self.name = ""
        self.notice = Notice()
        self._path = Path()
        self._opening = Latest(self)
        self._opening.succeeded.connect(self._on_opened)
        self._opening.failed.connect(self._on_refused)
        self._opening.delayed.connect(self._on_delayed)
        self._asking = Latest(self, pause_ms=_AFTER_CHOOSING_MS)
        self._asking.succeeded.connect(self._keep)
        self._asking.failed.connect(self._keep)
        self._question: AskWhatIf | None = None
        self._found: Answer | Failure | None = None

    # ── the history ──────────────────────────────────────────────────────────────────────────

    def open(self, path: Path) -> None:
        """Open a file, and no earlier one any more; the open history stays until then."""
        self._path, self.notice = path, Notice()
        self._opening.ask(partial(_asked, OpenHistory(path=os.fsencode(path))))
        self.changed.emit()

    def close(self) -> None:
        """End all work, and wait for the threads."""
        self._opening.close()
        self._asking.close()

    def _on_delayed(self) -> None:
        self.notice = Notice(opening(self._path))
        self.changed.emit()

    def _on_opened(self, answer: OpenedHistory | NoHistory) -> None:
        if isinstance(answer, NoHistory):
            self.notice = Notice(
                f"{file_name(self._path)} is a snapshot of one moment, without a history. “Record "
                "one” has the lines that record a history.",
                Tone.AMBER,
            )
            self.no_history_found.emit(self._path)
        else:
            self.notice, self.history, self.name = Notice(), answer, file_name(self._path)
            self._question = self._found = None
            self.history_opened.emit()
        self.changed.emit()

    def _on_refused(self, failure: Failure) -> None:
        self.notice = Notice(failure.message, Tone.FAILURE)
        self.changed.emit()

    # ── the answers ──────────────────────────────────────────────────────────────────────────

    def ask(self, *, card_bytes: int, other_bytes: int, conf: str) -> None:
        """Answer for a card, and for no earlier one any more; see `what_if`."""
        # The history is large and the same for all: it is added when a question is asked.
        question = AskWhatIf(history=b"", card_bytes=card_bytes, other_bytes=other_bytes, conf=conf)
        if question != self._question and self.history is not None:
            self._question, self._found = question, None
            whole = msgspec.structs.replace(question, history=self.history.history)
            self._asking.ask(partial(_asked, whole))

    @property
    def answer(self) -> FitAnswer:
        """What happens on the card, and which one is enough."""
        found = self._found
        if self.history is not None and isinstance(found, AnsweredWhatIf):
            return history_answer(self.history, found.found)
        words = Notice("Replaying…" if found is None else "No answer", Tone.QUIET)
        sentence = found.message if isinstance(found, Failure) else ""
        return FitAnswer((FitVerdict(words),), sentence)

    @property
    def lines_at_peak(self) -> list[tuple[str, str]]:
        """Which lines of code held most when the most was allocated."""
        return [
            (held.line or "Unknown, or from before the history", format_gib(held.size_bytes))
            for held in (self.history.at_peak if self.history is not None else ())
        ]

    def _keep(self, answer: Answer | Failure) -> None:
        self._found = answer
        self.changed.emit()


def _asked(question: Question, is_over: Callable[[], bool]) -> Answer:
    return ask(question, call_child, is_over)
