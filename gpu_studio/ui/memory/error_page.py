"""Read an error: one box for the text, and what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit

from gpu_studio.core.memory.allocator.blocks import card_full
from gpu_studio.model.memory.error_model import LONGEST_TEXT, ErrorModel
from gpu_studio.ui.memory.tank import verdict_part
from gpu_studio.ui.page import Beside, Box, Flow, Fold, Own, Page, Stack
from gpu_studio.ui.page_parts import Heading, Press, Rows, Words
from gpu_studio.ui.parts import letters
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QMimeData
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_MIB, _LINES = 1 << 20, 7


class ErrorPage(Page):
    """Takes the text of an error, and shows its answer.

    Args:
        memory: the tab's model, whose end ends the reading.
        theme: for the bar.
        parent: owns it.
    """

    model: ErrorModel

    def __init__(self, memory: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("memory", ErrorModel(memory), theme, parent)
        self.setObjectName("memory.error")
        self.model.setParent(self)

    def parts(self) -> Sequence[Part]:
        m = self.model
        side = Box(
            Heading("The error, or a whole log"),
            Own(self._make_text, self._show_text, name="error.text", stretch=1),
            Flow(
                Press("Paste", self._paste, name="error.paste"),
                Press("Open file…", self._ask_file, name="error.open",
                      tip="A log or another text; of a huge one, only lines that may be errors are "
                      "shown"),
                Press("Show example", self._show_example, name="error.example",
                      tip="The error text for a full GT 1030, from a simulated card"),
                Press("Clear", lambda: m.paste(""), name="error.clear"),
            ),
            Words(lambda: m.trouble, name="error.reason"),
            name="error.question",
        )  # fmt: skip
        answers = (
            verdict_part(self.theme, lambda: m.verdict, "error"),
            Words(lambda: m.answer.sentence, name="error.sentence", presented=True),
            Rows("What helps", ("What helps, best first", "How", "Enough"),
                 lambda: m.answer.steps, name="error.steps", shown=lambda: bool(m.answer.steps)),
            Fold(Words(lambda: m.answer.details, "muted", name="error.details"),
                 label="Details", name="error.more", shown=lambda: bool(m.answer.details)),
        )  # fmt: skip
        return (Beside(side, Stack(*answers), side_letters=48),)

    def _make_text(self) -> QPlainTextEdit:
        box = _ErrorText()
        box.setAccessibleName("Text of the error")
        box.setPlaceholderText("torch.OutOfMemoryError: CUDA out of memory. Tried to …")
        box.setTabChangesFocus(True)
        box.textChanged.connect(lambda: self.model.choose(text=box.toPlainText()))
        return box

    def _show_text(self, box: QPlainTextEdit) -> None:
        text = self.model.choices.text
        if box.toPlainText() != text:
            with QSignalBlocker(box):
                box.setPlainText(text)

    def _paste(self) -> None:
        self.model.paste(QGuiApplication.clipboard().text())

    def _ask_file(self) -> None:
        if path := ask_open_path(self.window(), "Open a log", "Logs (*.log *.txt);;All files (*)"):
            self.model.open_file(Path(path))

    def _show_example(self) -> None:
        """Insert the error text of the allocator's model for a full card."""
        error = card_full(
            tried_bytes=256 * _MIB, total_bytes=1996 * _MIB, free_bytes=140 * _MIB,
            limit_bytes=None, allocated_bytes=1500 * _MIB, reserved_bytes=1600 * _MIB,
        )  # fmt: skip
        self.model.paste(f"torch.OutOfMemoryError: {error}")


class _ErrorText(QPlainTextEdit):
    """Keeps only the end of a long text: a log of 50 MB would block the window for minutes."""

    def sizeHint(self) -> QSize:
        """Return the room for some lines."""
        return QSize(letters(self, 20), _LINES * self.fontMetrics().lineSpacing())

    def minimumSizeHint(self) -> QSize:
        """Return the room for some lines: a narrow page is as high as it needs."""
        return self.sizeHint()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert the pasted or dropped text."""
        self.insertPlainText(source.text()[-LONGEST_TEXT:])
        self.ensureCursorVisible()
