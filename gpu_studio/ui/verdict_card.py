"""A verdict with its evidence and the command that helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from gpu_studio.model.headline import Headline
    from gpu_studio.ui.theme import Theme

SIGNS = {"good": "check", "amber": "warning", "failure": "warning", "": "info"}
SIGN_ROLES = {"good": "good", "amber": "amber", "failure": "failure_ink", "": "muted"}
_ICON_SIZE = QSize(22, 22)


class VerdictCard(Card):
    """Shows a headline; in brief, without evidence, command and button.

    Signals:
        action_requested(Headline): the button of this headline was pressed.
    """

    action_requested = Signal(object)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=name)
        self._theme = theme
        self._headline: Headline | None = None
        self._is_brief = False
        self._sign = QLabel()
        self._sign.setFixedSize(_ICON_SIZE)
        self._sentence = Text(role="title", name=f"{name}.sentence", wraps=True)
        self._evidence = Text(role="muted", name=f"{name}.evidence", wraps=True)
        self._command = QLineEdit()
        self._command.setObjectName(f"{name}.command")
        self._command.setReadOnly(True)
        self._command.setAccessibleName("Command to run")
        self._copy = button("Copy", self._copy_command, name=f"{name}.copy", tip="Copy command")
        self._copy.setIcon(icon("copy", theme))
        self._help = QWidget()
        line = QHBoxLayout(self._help)
        line.setContentsMargins(0, 4, 0, 0)
        line.setSpacing(GAP)
        line.addWidget(self._command, 1)
        line.addWidget(self._copy)
        self._action = button("", self._request_action, name=f"{name}.action")
        line.addWidget(self._action)
        line.addStretch()
        row = QHBoxLayout()
        row.setSpacing(GAP)
        self.column.addLayout(row)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(4)
        row.addLayout(words, 1)
        words.addWidget(self._sentence)
        words.addWidget(self._evidence)
        words.addWidget(self._help)
        theme.changed.connect(self._paint_sign)

    @property
    def sentence(self) -> str:
        """The shown sentence."""
        return self._sentence.text()

    def show_headline(self, headline: Headline, *, in_brief: bool = False) -> None:
        """Show a headline; in brief if the rest of it is shown elsewhere."""
        if (headline, in_brief) == (self._headline, self._is_brief):
            return
        self._headline, self._is_brief = headline, in_brief
        self._sentence.setText(headline.sentence)
        self._evidence.setText(headline.detail)
        self._evidence.setVisible(bool(headline.detail) and not in_brief)
        self._command.setText(headline.command)
        self._command.setCursorPosition(0)
        self._command.setVisible(bool(headline.command))
        self._copy.setVisible(bool(headline.command))
        self._action.setText(headline.action)
        self._action.setVisible(bool(headline.action))
        self._help.setVisible(bool(headline.command or headline.action) and not in_brief)
        self.set_tone(headline.tone)
        self.setAccessibleName(headline.sentence)
        self.setAccessibleDescription(headline.detail)
        self._paint_sign()

    def _paint_sign(self) -> None:
        tone = self._headline.tone if self._headline else ""
        sign = icon(SIGNS[tone], self._theme, SIGN_ROLES[tone])
        self._sign.setPixmap(sign.pixmap(_ICON_SIZE, self.devicePixelRatioF()))

    def _request_action(self) -> None:
        self.action_requested.emit(self._headline)

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())
