"""The banner above all tabs: the one sentence that matters now."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from gpu_studio.ui.parts import GAP, Card, Text, button


class Banner(Card):
    """A sentence, with a command to copy or buttons to press if there are any.

    Signals:
        action_requested(): the button was pressed.
        other_action_requested(): the second button was pressed.
        dismissed(): the sentence was closed.
    """

    action_requested = Signal()
    other_action_requested = Signal()
    dismissed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="banner")
        self.setAccessibleName("Notice")
        self._sentence = Text(role="title", name="banner.sentence", wraps=True)
        self._detail = Text(role="muted", name="banner.detail", wraps=True)
        self._command = QLineEdit()
        self._command.setObjectName("banner.command")
        self._command.setReadOnly(True)
        self._command.setAccessibleName("Command to run")
        self._copy = button("Copy", self._copy_command, name="banner.copy")
        self._copy.setToolTip("Copy the command")
        self._action = button("", self.action_requested.emit, name="banner.action", primary=True)
        self._other = button("", self.other_action_requested.emit, name="banner.other")
        self._close = button("Close", self._dismiss, name="banner.close")
        self.column.addWidget(self._sentence)
        self.column.addWidget(self._detail)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        self.column.addLayout(line)
        line.addWidget(self._command, 1)
        line.addWidget(self._copy)
        line.addWidget(self._action)
        line.addWidget(self._other)
        line.addStretch()
        line.addWidget(self._close)
        self.hide()

    @property
    def sentence(self) -> str:
        """The shown sentence; empty while hidden."""
        return self._sentence.text() if not self.isHidden() else ""

    def say(
        self, sentence: str, *, detail: str = "", command: str = "", action: str = "",
        other_action: str = "", tone: str = "amber",
    ) -> None:  # fmt: skip
        """Show a sentence with its detail, a command to copy, and the texts of two buttons."""
        self._sentence.setText(sentence)
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        self._command.setText(command)
        self._command.setCursorPosition(0)
        self._command.setVisible(bool(command))
        self._copy.setVisible(bool(command))
        self._action.setText(action)
        self._action.setVisible(bool(action))
        self._other.setText(other_action)
        self._other.setVisible(bool(other_action))
        self.set_tone("failure" if tone == "failure" else "amber")
        self.setAccessibleDescription(f"{sentence} {detail}".strip())
        self.show()

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())

    def _dismiss(self) -> None:
        self.hide()
        self.dismissed.emit()
