"""“Read an error”: what is known of a pasted text, or of a log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.errors.log import MOST_READ_BYTES, decoded_text, told_lines
from gpu_studio.core.errors.reader import read_error
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.tank import FitAnswer, FitVerdict
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.core.user_file import UnusableFileError, read_user_file
from gpu_studio.model.latest import Latest
from gpu_studio.model.page_model import PageModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtCore import QObject

    from gpu_studio.model.memory.memory_model import MemoryModel

LONGEST_TEXT = 200_000
_AFTER_TYPING_MS = 200
_CUT = f"The text is too long. Only its last {LONGEST_TEXT:,} characters are used."
_HINT = FitAnswer(
    (FitVerdict(Notice("Paste an error.")),),
    "Of ComfyUI, vLLM, llama.cpp, Ollama, whisper, PyTorch and others: you will see what kind it "
    "is, what it says of your card, and what helps in that program. It stays on this PC.",
)


class ErrorChoices(msgspec.Struct, frozen=True):
    """The text of an error, or a part of a log."""

    text: str = ""


class ErrorModel(PageModel):
    """Reads the text while the page is seen."""

    def __init__(self, memory: MemoryModel, parent: QObject | None = None) -> None:
        super().__init__(ErrorChoices(), parent)
        self._latest = Latest(self, pause_ms=_AFTER_TYPING_MS)
        self._latest.succeeded.connect(self._on_answered)
        self._latest.failed.connect(self.changed)
        self._reading = Latest(self)
        self._reading.succeeded.connect(self.paste)
        self._reading.failed.connect(self.changed)
        self._reading.delayed.connect(self.changed)
        self._asked = ""
        self._found: FitAnswer | None = None
        memory.studio.closing.connect(self.close)

    def open_file(self, path: Path) -> None:
        """Find the errors in a file; of a huge log, only their lines are shown."""
        self._reading.ask(partial(_text_of, path), path)

    def paste(self, text: str) -> None:
        """Read an error, or the end of a text that is long."""
        self.choose(text=text[-LONGEST_TEXT:])

    def on_seen(self) -> None:
        """Read what came while the page was hidden."""
        self._ask()

    def on_chosen(self) -> None:
        """Read the text."""
        self._ask()

    def close(self) -> None:
        """Read no more, and wait for the threads."""
        for latest in (self._latest, self._reading):
            latest.close()

    def _ask(self) -> None:
        asked = self.choices.text.strip()
        if not self.is_seen or asked == self._asked:
            return
        self._asked, self._reading.notice = asked, Notice()
        if asked:
            self._latest.ask(lambda _is_over: read_error(asked).answer)
        else:
            self._latest.drop()
            self._found = None

    def _on_answered(self, found: FitAnswer) -> None:
        self._found = found
        self.changed.emit()

    @property
    def trouble(self) -> Notice:
        """Why a file is not read, or that a text is not read whole."""
        if len(self.choices.text) >= LONGEST_TEXT:
            return Notice(_CUT, Tone.AMBER)
        return self._latest.notice if self._latest.notice.sentence else self._reading.notice

    @property
    def answer(self) -> FitAnswer:
        """What is known of the error, or what to do for an answer."""
        return self._found if self._found is not None and self._asked else _HINT

    @property
    def verdict(self) -> FitVerdict:
        """What the error is, and the memory when it happened."""
        return self.answer.verdicts[0]


def _text_of(path: Path, is_over: Callable[[], bool]) -> str:
    try:
        text = decoded_text(read_user_file(path, MOST_READ_BYTES, is_over))
        return told_lines(text, LONGEST_TEXT)
    except UnusableFileError as error:
        message = f"Cannot read {file_name(path)}: {error}."
        raise StudioError(FailureKind.FILE_REFUSED, message) from error
