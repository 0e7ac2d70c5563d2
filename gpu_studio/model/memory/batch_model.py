"""Histories of one script with other batch sizes, and what another batch would need."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.replay.batch_line import (
    MOST_BATCH,
    BatchLine,
    BatchPeak,
    batch_line,
    batch_sentence,
    largest_sentence,
)
from gpu_studio.core.memory.replay.replay_call import (
    LONGEST_OPENING_S,
    OpenedHistory,
    OpenHistory,
)
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.plain_text import file_name
from gpu_studio.model.file_reading import opening
from gpu_studio.model.memory.what_if_model import HistoryChild

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.memory.replay.replay_call import NoHistory

MOST_HISTORIES = 4
_IN_NAME = re.compile(r"(?:batch|bs|b)[ _-]?(\d{1,6})", re.ASCII | re.IGNORECASE)


class BatchHistory(NamedTuple):
    """A history, and its batch size; None if that is not known yet."""

    name: str
    peak_bytes: int
    ooms: int
    batch: int | None


class BatchModel(QObject):
    """The open history and up to three further ones.

    Signals:
        changed(): a history, a batch size or the answer.

    Attributes:
        histories: the open one first.
        notice: what is being opened, or why it is refused.
        line: through the peaks; None if there is none.
        wanted: the batch that was asked for; None before the first.
        answer: the sentence about it, or why there is none.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.histories: tuple[BatchHistory, ...] = ()
        self.notice = Notice()
        self.line: BatchLine | None = None
        self.answer = Notice()
        self.wanted: int | None = None
        self._card_bytes = self._other_bytes = 0
        self._path: Path | None = None
        self._child = HistoryChild(self)
        self._child.answered.connect(self._on_opened)
        self._child.failed.connect(self._on_refused)

    def begin(self, history: OpenedHistory, name: str) -> None:
        """Begin with the open history; the further ones belonged to another one."""
        self._child.cancel()
        self.notice = Notice()
        self.histories = (_of(history, name),)
        self._update()

    def add(self, path: Path) -> None:
        """Add a history of the same script."""
        self._path = path
        self.notice = Notice(opening(path))
        self._child.ask(OpenHistory(path=os.fsencode(path)), LONGEST_OPENING_S)
        self.changed.emit()

    def remove(self, number: int) -> None:
        """Remove a further history."""
        self.histories = self.histories[:number] + self.histories[number + 1 :]
        self._update()

    def set_batch(self, number: int, batch: int | None) -> None:
        """Set the batch size of a history."""
        known = list(self.histories)
        known[number] = known[number]._replace(batch=batch)
        self.histories = tuple(known)
        self._update()

    def ask(self, batch: int | None, card_bytes: int, other_bytes: int) -> None:
        """Ask for a batch on a card of which others hold a part."""
        self.wanted, self._card_bytes, self._other_bytes = batch, card_bytes, other_bytes
        self._update()

    def close(self) -> None:
        """End all work."""
        self._child.close()

    def _on_opened(self, answer: OpenedHistory | NoHistory) -> None:
        assert self._path is not None
        name = file_name(self._path)
        if isinstance(answer, OpenedHistory):
            self.notice = Notice()
            self.histories = (*self.histories, _of(answer, name))
        else:
            self.notice = Notice(f"{name} has no history.", Tone.AMBER)
        self._update()

    def _on_refused(self, failure: Failure) -> None:
        self.notice = Notice(failure.message, Tone.FAILURE)
        self.changed.emit()

    def _update(self) -> None:
        """Work out the line and the answer."""
        self.line, self.answer = None, Notice()
        if len(self.histories) > 1:
            try:
                peaks = [
                    BatchPeak(one.batch, one.peak_bytes, one.ooms)
                    for one in self.histories
                    if one.batch is not None
                ]
                if len(peaks) < len(self.histories):
                    self.answer = Notice("Enter the batch size of each history.", Tone.QUIET)
                else:
                    self.line = batch_line(peaks)
                    if self.wanted is not None:
                        words = batch_sentence(self.line, self.wanted, self._other_bytes)
                        largest = self.line.largest_batch(self._card_bytes - self._other_bytes)
                        fitting = largest_sentence(largest, self._card_bytes)
                        tone = Tone.GOOD if self.wanted <= largest else Tone.FAILURE
                        self.answer = Notice(f"{words}. {fitting}", tone)
            except StudioError as error:
                self.answer = Notice(str(error), Tone.AMBER)
        self.changed.emit()


def _of(history: OpenedHistory, name: str) -> BatchHistory:
    found = _IN_NAME.search(name)
    batch = int(found[1]) if found is not None else 0
    known = batch if 1 <= batch <= MOST_BATCH else None
    return BatchHistory(name, history.peak_reserved_bytes, history.ooms, known)
