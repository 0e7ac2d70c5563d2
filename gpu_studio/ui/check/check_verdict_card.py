"""The verdict, the one next action, and the button that saves the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout

from gpu_studio.core.device_name import is_cpu
from gpu_studio.model.check import check_words
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.notice import Notice
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.ui.theme import Theme


class CheckVerdictCard(Card):
    """The verdict so far, or the final one.

    Signals:
        save_wanted(): the user wants the record as a file.
    """

    save_wanted = Signal()

    def __init__(self, check: CardCheck, theme: Theme) -> None:
        super().__init__(name="check.result")
        self._check = check
        self._verdict = Text("", "title", name="check.verdict", wraps=True)
        self._next = Text("", name="check.next", wraps=True)
        self._identify = QCheckBox("Add UUID and serial number")
        self._identify.setObjectName("check.identify")
        self._identify.setAccessibleName(self._identify.text())
        self._identify.setToolTip("They identify this one copy of the card")
        self._save = button(
            "Save record…", self.save_wanted.emit, name="check.save",
            tip="As a picture or a page, to attach when the card is sold",
        )  # fmt: skip
        self._save.setIcon(icon("export", theme))
        self._outcome = Text("", "muted", name="check.outcome", wraps=True)
        self._outcome.hide()
        line = QHBoxLayout()
        line.setSpacing(2 * GAP)
        self.column.addLayout(line)
        words = QVBoxLayout()
        line.addLayout(words, 1)
        words.addWidget(self._verdict)
        words.addWidget(self._next)
        words.addStretch(1)
        side = QVBoxLayout()
        line.addLayout(side)
        side.addWidget(self._save, 0, Qt.AlignmentFlag.AlignRight)
        side.addWidget(self._identify, 0, Qt.AlignmentFlag.AlignRight)
        side.addStretch(1)
        self.column.addWidget(self._outcome)

    @property
    def record(self) -> CheckRecord | None:
        """The record to save, with the card's own numbers only if you asked for them."""
        record = self._check.record
        if record is None or not self._identify.isChecked():
            return record
        return self._check.named(record)

    def show_check(self) -> None:
        """Show the present state of the check, or the shown record."""
        check = self._check
        verdict = check_words.verdict(check)
        self._verdict.setText(verdict.sentence)
        self._verdict.set_tone(verdict.tone)
        self.set_tone(verdict.tone)
        self._next.setText(verdict.next_step)
        record = check.record
        self._save.setEnabled(record is not None)
        # The numbers of a card in somebody's file are not known here.
        is_own = record is not None and not check.file_name and not is_cpu(record.device.address)
        self._identify.setVisible(is_own)

    def show_outcome(self, notice: Notice) -> None:
        """Show what became of a file."""
        self._outcome.show_notice(notice)
