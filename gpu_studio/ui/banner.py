"""The banner above all tabs: the one sentence that matters now, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit

from gpu_studio.core.notice import Tone, action_label
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, show_label

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.ui.theme import Theme

_EDGE = 4


class Banner(Card):
    """A sentence with its buttons; the detail and the command are unfolded on demand.

    Signals:
        action_requested(): the button was pressed.
        other_action_requested(): the second button was pressed.
        dismissed(): the sentence was closed.
    """

    action_requested = Signal()
    other_action_requested = Signal()
    dismissed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="banner")
        self.setAccessibleName("Notice")
        self._theme, self._is_failure = theme, False
        self._subject = ("", "")
        self._sign = QLabel()
        self._sentence = Text(role="value", name="banner.sentence", wraps=True)
        self._detail = Text(role="muted", name="banner.detail", wraps=True)
        self._command = QLineEdit()
        self._command.setObjectName("banner.command")
        self._command.setReadOnly(True)
        self._command.setAccessibleName("Command to run")
        self._copy = button("Copy command", self._copy_command, name="banner.copy")
        self._action = button("", self.action_requested.emit, name="banner.action", primary=True)
        self._other = button("", self.other_action_requested.emit, name="banner.other")
        self._more = button("Details", self._unfold, name="banner.more")
        self._more.setCheckable(True)
        self._close = button("Close", self._dismiss, name="banner.close")
        self.column.setContentsMargins(MARGIN, _EDGE, _EDGE, _EDGE)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        self.column.addLayout(line)
        line.addWidget(self._sign)
        line.addWidget(self._sentence, 1, Qt.AlignmentFlag.AlignVCenter)
        self._buttons = (self._copy, self._action, self._other, self._more, self._close)
        for pressed in self._buttons:
            line.addWidget(pressed)
        self.column.addWidget(self._detail)
        self.column.addWidget(self._command)
        theme.changed.connect(self._paint_sign)
        self.hide()

    @property
    def sentence(self) -> str:
        """The shown sentence; empty while hidden."""
        return self._sentence.text() if not self.isHidden() else ""

    def show_headline(self, headline: Finding) -> None:
        """Show a sentence with its detail, a command to copy, and two buttons."""
        detail, command = headline.detail, headline.to_copy
        subject = (headline.code, headline.sentence)
        if subject != self._subject or self.isHidden():
            self._more.setChecked(False)
        self._subject = subject
        self._sentence.setText(headline.sentence)
        self._detail.setText(detail)
        self._command.setText(command)
        self._command.setCursorPosition(0)
        self._copy.setVisible(bool(command))
        for pressed, text in (
            (self._action, headline.action_label),
            (self._other, action_label(headline.other_action)),
        ):
            show_label(pressed, text)
        self._more.setVisible(bool(detail or command))
        self._is_failure = headline.tone is Tone.FAILURE
        self.set_tone(Tone.FAILURE if self._is_failure else Tone.AMBER)
        self.setAccessibleDescription(f"{headline.sentence} {detail}".strip())
        self._paint_sign()
        self._unfold()
        self.show()

    def _unfold(self) -> None:
        is_open = self._more.isChecked()
        self._detail.setVisible(is_open and bool(self._detail.text()))
        self._command.setVisible(is_open and bool(self._command.text()))

    def _paint_sign(self) -> None:
        side = self.fontMetrics().height()
        role = "failure_ink" if self._is_failure else "amber"
        sign = icon("warning", self._theme, role)
        self._sign.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())

    def _dismiss(self) -> None:
        self.hide()
        self.dismissed.emit()
