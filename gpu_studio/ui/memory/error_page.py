"""Read an error: paste an out-of-memory text; see its memory bar and what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QWidget

from gpu_studio.core.memory.allocator.blocks import card_full
from gpu_studio.core.memory.oom_reader import explain_oom_text
from gpu_studio.core.notice import Tone
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.parts import GAP, Card, Text, button, section
from gpu_studio.ui.scroll_page import PageColumn

if TYPE_CHECKING:
    from PySide6.QtCore import QMimeData

    from gpu_studio.core.memory.oom_reader import OomExplanation
    from gpu_studio.ui.theme import Theme

_AFTER_TYPING_MS = 150
_LONGEST_TEXT = 200_000
_MIB = 1 << 20
_EMPTY = (
    "You will see the memory when it failed, what the error means, and what to try first. Errors "
    "of any PyTorch since 1.0 work."
)
_CUT = f"The text is too long. Only its last {_LONGEST_TEXT:,} characters are used."
_NOTHING = (
    "This text contains no out-of-memory error. Include the lines with “out of memory” or “Tried "
    "to allocate”."
)


class _ErrorText(QPlainTextEdit):
    """Keeps only the end of a long text: a pasted log of 50 MB would block the window for minutes.

    Signals:
        pasted(bool): text was pasted or dropped; True if only its end was kept.
    """

    pasted = Signal(bool)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert the pasted or dropped text."""
        text = source.text()
        self.insertPlainText(text[-_LONGEST_TEXT:])
        self.ensureCursorVisible()
        self.pasted.emit(len(text) > _LONGEST_TEXT)


class ErrorPage(QWidget):
    """A field for the text on the left, its explanation on the right."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.error")
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        line.addWidget(self._make_input(), 2)
        line.addWidget(self._make_account(theme), 3)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(_AFTER_TYPING_MS)
        self._typing.timeout.connect(self._explain)
        self._text.textChanged.connect(self._typing.start)
        self._explain()

    def _make_input(self) -> Card:
        card = Card(name="memory.error.input_card")
        card.column.addWidget(section("The error"))
        card.column.addWidget(
            Text(
                "Paste an out-of-memory error, with or without its traceback. It stays on this PC.",
                "muted", wraps=True,
            )
        )  # fmt: skip
        example = button(
            "Show example", self._show_example, name="memory.error.example",
            tip="The error text for a full GT 1030, from a simulated card",
        )  # fmt: skip
        clear = button("Clear", self._clear, name="memory.error.clear")
        card.column.addWidget(FlowRow(example, clear))
        self._text = _ErrorText()
        self._text.setObjectName("memory.error.text")
        self._text.setAccessibleName("Text of the error")
        self._text.setPlaceholderText("torch.OutOfMemoryError: CUDA out of memory. Tried to …")
        self._text.setTabChangesFocus(True)
        card.column.addWidget(self._text, 1)
        self._cut = Text(_CUT, "amber", name="memory.error.cut", wraps=True)
        self._cut.hide()
        self._text.pasted.connect(self._cut.setVisible)
        card.column.addWidget(self._cut)
        return card

    def _make_account(self, theme: Theme) -> PageColumn:
        page = PageColumn("Explanation of the error")
        self._account = Card(name="memory.error.account")
        page.column.addWidget(self._account)
        self._headline = Text(role="title", name="memory.error.headline", wraps=True)
        self._meaning = Text(name="memory.error.meaning", wraps=True)
        self._tank = TankBar(theme, name="memory.error.tank")
        self._tank.part_described.connect(self._describe_part)
        self._part = Text(role="muted", name="memory.error.part", wraps=True)
        self._unnamed_part = ""
        self._advice = Text(name="memory.error.advice", wraps=True)
        for widget in (self._headline, self._meaning, self._tank, self._part, self._advice):
            self._account.column.addWidget(widget)
        page.column.addStretch(1)
        return page

    def _clear(self) -> None:
        self._text.clear()
        self._cut.hide()

    def _show_example(self) -> None:
        """Insert the error text of the allocator's model for a full card."""
        error = card_full(
            tried_bytes=256 * _MIB, total_bytes=1996 * _MIB, free_bytes=140 * _MIB,
            limit_bytes=None, allocated_bytes=1500 * _MIB, reserved_bytes=1600 * _MIB,
        )  # fmt: skip
        self._cut.hide()
        self._text.setPlainText(f"torch.OutOfMemoryError: {error}")

    def _explain(self) -> None:
        text = self._text.toPlainText()[:_LONGEST_TEXT]
        explained = explain_oom_text(text)
        if explained is None:
            self._headline.setText(
                "Not an out-of-memory error." if text.strip() else "Paste an error."
            )
            self._meaning.setText(_NOTHING if text.strip() else _EMPTY)
        else:
            self._headline.setText(explained.headline)
            self._meaning.setText(explained.meaning)
        unexplained = Tone.AMBER if text.strip() else Tone.PLAIN
        self._account.set_tone(Tone.FAILURE if explained else unexplained)
        steps = explained.first_steps if explained else ()
        self._advice.setText("Try first:\n" + "\n".join(f"• {step}" for step in steps))
        self._advice.setVisible(bool(steps))
        self._tank.setVisible(explained is not None and explained.tank is not None)
        self._tank.show_tank(explained.tank if explained else None)
        self._unnamed_part = _sizes_of(explained) if explained else ""
        self._describe_part("")
        self._part.setVisible(not self._tank.isHidden())

    def _describe_part(self, words: str) -> None:
        self._part.setText(words or self._unnamed_part)


def _sizes_of(explained: OomExplanation) -> str:
    """Return how to read the tank of an error."""
    is_of_card = explained.numbers.total_bytes is not None
    what = "The card" if is_of_card else "The limit for this program"
    sentence = (
        f"{what} as the text describes it, to two decimals of each unit. Missing numbers are "
        "marked."
    )
    if explained.tank is None or explained.tank.card_bytes is None:
        return sentence
    return f"{sentence} The line marks the end of the {'card' if is_of_card else 'limit'}."
