"""Whether PyTorch can use a device: a sentence with its evidence and what to press."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from gpu_studio.core.notice import Tone
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Text, button, keep_room, set_property

if TYPE_CHECKING:
    from gpu_studio.core.notice import Notice
    from gpu_studio.model.headline import Headline
    from gpu_studio.ui.theme import Theme

_SIGNS = {  # (icon, its color)
    Tone.GOOD: ("check", "good"),
    Tone.AMBER: ("warning", "amber"),
    Tone.FAILURE: ("warning", "failure_ink"),
    Tone.QUIET: ("clock", "muted"),
    Tone.PLAIN: ("info", "muted"),
}
_SIGN_SIZE = 1.6  # of a line


class ToneSign(QLabel):
    """The picture of a tone, as high as some lines of text."""

    def __init__(self, theme: Theme, lines: float = 1.0) -> None:
        super().__init__()
        self._theme, self._lines, self._tone = theme, lines, Tone.PLAIN
        theme.changed.connect(self._paint)

    def show_tone(self, tone: Tone) -> None:
        """Show another tone's picture."""
        self._tone = tone
        self._paint()

    def _paint(self) -> None:
        side = round(self._lines * self.fontMetrics().height())
        name, role = _SIGNS[self._tone]
        sign = icon(name, self._theme, role)
        self.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))


class NoticeLine(QWidget):
    """A notice with the sign of its tone: its sentence, and below it what else it says."""

    def __init__(self, theme: Theme, *, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._sign = ToneSign(theme)
        self._sentence = Text("", name=f"{name}.sentence", wraps=True)
        self._below = Text("", "muted", name=f"{name}.below", wraps=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        row.addLayout(words, 1)
        words.addWidget(self._sentence)
        words.addWidget(self._below)

    def show_notice(self, notice: Notice) -> None:
        """Show a notice; without a sentence, nothing."""
        self._sign.show_tone(notice.tone)
        self._sentence.setText(notice.sentence)
        self._sentence.set_tone(notice.tone)
        below = "\n".join(filter(None, (notice.detail, notice.next_step)))
        self._below.setText(below)
        self._below.setVisible(bool(below))
        self.setAccessibleName(notice.sentence)
        self.setVisible(bool(notice.sentence))


class DeviceVerdict(QWidget):
    """Shows a headline; in brief, without evidence, command and button.

    A command is shown if no button does the same; otherwise it is in the details.

    Signals:
        action_requested(Headline): the button of this headline was pressed.
    """

    action_requested = Signal(object)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._headline: Headline | None = None
        self._is_brief = False
        self._sign = ToneSign(theme, _SIGN_SIZE)
        self._sentence = Text(role="title", name=f"{name}.sentence", wraps=True)
        self._evidence = Text(role="muted", name=f"{name}.evidence", wraps=True)
        self._evidence.setMinimumHeight(self._evidence.fontMetrics().lineSpacing())
        keep_room(self._evidence)  # it comes seconds after the sentence
        self._action = button("", self._request_action, name=f"{name}.action", primary=True)
        self._more = button("Details", self._show_command, name=f"{name}.more")
        self._more.setCheckable(True)
        self._presses = FlowRow(self._action, self._more, spacing=GAP)
        self._command = QLineEdit()
        self._command.setObjectName(f"{name}.command")
        self._command.setReadOnly(True)
        self._command.setAccessibleName("Command to run")
        self._copy = button("Copy", self._copy_command, name=f"{name}.copy", tip="Copy command")
        self._copy.setIcon(icon("copy", theme))
        self._line = QWidget()
        line = QHBoxLayout(self._line)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        line.addWidget(self._command, 1)
        line.addWidget(self._copy)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GAP)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(4)
        row.addLayout(words, 1)
        for part in (self._sentence, self._evidence, self._presses, self._line):
            words.addWidget(part)
        words.addStretch(1)

    @property
    def has_action(self) -> bool:
        """Whether there is a button to press."""
        return bool(self._headline and self._headline.action)

    def show_headline(self, headline: Headline, *, in_brief: bool = False) -> None:
        """Show a headline; in brief if the rest of it is shown elsewhere."""
        if (headline, in_brief) == (self._headline, self._is_brief):
            return
        self._headline, self._is_brief = headline, in_brief
        self._sentence.setText(headline.sentence)
        self._sentence.set_tone(headline.tone)
        self._evidence.setText(headline.detail)
        self._evidence.setVisible(bool(headline.detail) and not in_brief)
        self._command.setText(headline.command)
        self._command.setCursorPosition(0)
        self._action.setText(headline.action_label)
        self._action.setAccessibleName(headline.action_label)
        self._more.setVisible(bool(headline.command))
        self._more.setChecked(False)
        self._presses.setVisible(bool(headline.action) and not in_brief)
        self._show_command()
        set_property(self, "tone", headline.tone.value)
        self.setAccessibleName(headline.sentence)
        self.setAccessibleDescription(headline.detail)
        self._sign.show_tone(headline.tone)

    def _show_command(self) -> None:
        assert self._headline is not None
        is_asked_for = self._more.isChecked() or not self._headline.action
        is_shown = is_asked_for and bool(self._headline.command) and not self._is_brief
        self._line.setVisible(is_shown)

    def _request_action(self) -> None:
        self.action_requested.emit(self._headline)

    def _copy_command(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())
