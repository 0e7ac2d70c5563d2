"""The cards of the Check tab: rows of words, and a check that was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout

from gpu_studio.core.check.record_words import breakable
from gpu_studio.core.notice import Tone
from gpu_studio.model.check import check_words
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from gpu_studio.core.check.record_words import RecordPart
    from gpu_studio.model.check.card_check import CardCheck


class PartCard(Card):
    """A part of a record; hidden without any rows. The words of row 2 are the label ``NAME.2``."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._title = Text("", "title")
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(2 * GAP)
        self._grid.setColumnStretch(1, 1)
        self.column.addWidget(self._title)
        self.column.addLayout(self._grid)
        self._labels: list[tuple[Text, Text]] = []

    def show_part(self, part: RecordPart | None) -> None:
        """Show a part; None for nothing to show."""
        rows = part.rows if part is not None else ()
        self.setVisible(bool(rows))
        self._title.setText(part.title if part is not None else "")
        while len(self._labels) < len(rows):
            self._add_row()
        for number, labels in enumerate(self._labels):
            for label in labels:
                label.setVisible(number < len(rows))
        for (title, words), row in zip(self._labels, rows, strict=False):
            title.setText(breakable(row.title) or "•")
            words.setText(breakable(row.words))
            words.set_tone(row.tone)
            words.setToolTip(plain_tip("\n".join(row.details)) if row.details else "")

    def _add_row(self) -> None:
        number = len(self._labels)
        pair = Text("", "muted"), Text("", name=f"{self.objectName()}.{number}", wraps=True)
        for column, label in enumerate(pair):
            self._grid.addWidget(label, number, column, Qt.AlignmentFlag.AlignTop)
        self._labels.append(pair)


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
