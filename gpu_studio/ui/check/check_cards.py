"""The cards of the Check tab: rows of words, and a check that was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout

from gpu_studio.core.check.record_words import breakable
from gpu_studio.core.notice import Tone
from gpu_studio.model.check import check_words
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_studio.model.check.card_check import CardCheck


class Row(NamedTuple):
    """A line of a card: a quiet title, and words that wrap; ``tip`` says more about them."""

    title: str
    tone: Tone
    words: str
    tip: str = ""


class RowCard(Card):
    """Rows under a title; hidden without any. The words of row 2 are the label ``NAME.2``."""

    def __init__(self, title: str, *, name: str) -> None:
        super().__init__(name=name)
        self.column.addWidget(Text(title, "title"))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(2 * GAP)
        self._grid.setColumnStretch(1, 1)
        self.column.addLayout(self._grid)
        self._labels: list[tuple[Text, Text]] = []

    def show_rows(self, rows: Iterable[tuple[str, str] | Row]) -> None:
        """Show these rows, or these titles and words."""
        shown = [row if isinstance(row, Row) else Row(row[0], Tone.PLAIN, row[1]) for row in rows]
        self.setVisible(bool(shown))
        while len(self._labels) < len(shown):
            number = len(self._labels)
            pair = (Text("", "muted"), Text("", name=f"{self.objectName()}.{number}", wraps=True))
            for column, label in enumerate(pair):
                self._grid.addWidget(label, number, column, Qt.AlignmentFlag.AlignTop)
            self._labels.append(pair)
        for number, (title, words) in enumerate(self._labels):
            row = shown[number] if number < len(shown) else Row("", Tone.PLAIN, "")
            title.setText(breakable(row.title))
            words.setText(breakable(row.words))
            words.set_tone(row.tone)
            words.setToolTip(plain_tip(row.tip) if row.tip else "")
            title.setVisible(number < len(shown))
            words.setVisible(number < len(shown))


class CutOffCard(Card):
    """A check that was cut off by a crash or a restart: continue it, or keep it as a result."""

    def __init__(self, check: CardCheck) -> None:
        super().__init__(name="check.cut_off")
        self._check = check
        self._text = Text("", "value", name="check.cut_off.text", wraps=True)
        self._resume = button(
            "Continue check", check.resume, name="check.resume",
            tip="Run the stages that are not finished; the interruption stays in the record",
        )  # fmt: skip
        conclude = button(
            "Keep as result", check.conclude, name="check.conclude",
            tip="End the check with the results so far",
        )  # fmt: skip
        self.column.addWidget(self._text)
        self.column.addWidget(FlowRow(self._resume, conclude))
        self.set_tone(Tone.AMBER)

    def show_check(self) -> None:
        """Show the last check that was cut off, if there is one."""
        cut_off = self._check.cut_off
        self.setVisible(cut_off is not None)
        if cut_off is not None:
            self._text.setText(check_words.cut_off_text(cut_off))
            self._resume.setVisible(cut_off.can_continue)
            self._resume.setEnabled(self._check.can_resume)
