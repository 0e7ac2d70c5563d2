"""One finding in one line: its sign, its sentence, one action, and the details on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from gpu_studio.core.notice import Tone
from gpu_studio.ui.devices.device_verdict import SIGNS
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Text, button

if TYPE_CHECKING:
    from gpu_studio.model.headline import Headline
    from gpu_studio.ui.theme import Theme


class FindingLine(QWidget):
    """Shows a headline.

    Signals:
        action_requested(Headline): the button of this headline was pressed.
    """

    action_requested = Signal(object)

    def __init__(self, theme: Theme, *, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._theme = theme
        self._headline: Headline | None = None
        self._sign = QLabel()
        self._sentence = Text(name=f"{name}.sentence", wraps=True)
        self._action = button("", self._act, name=f"{name}.action")
        self._more = button("Details", self._unfold, name=f"{name}.more")
        self._more.setCheckable(True)
        self._details = Text("", "muted", name=f"{name}.details", wraps=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(GAP, 0, GAP, 0)
        row = QHBoxLayout()
        column.addLayout(row)
        row.setSpacing(GAP)
        row.addWidget(self._sign)
        row.addWidget(self._sentence, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._action)
        row.addWidget(self._more)
        column.addWidget(self._details)
        self._details.hide()
        theme.changed.connect(self._paint_sign)

    def show_headline(self, headline: Headline) -> None:
        """Show a headline; a command is copied by the button and told in the details."""
        if headline == self._headline:
            return
        self._headline = headline
        self._sentence.setText(headline.sentence)
        action = headline.action_label or ("Copy command" if headline.command else "")
        self._action.setText(action)
        self._action.setAccessibleName(action)
        self._action.setVisible(bool(action))
        details = "\n".join(filter(None, (headline.detail, headline.command)))
        self._details.setText(details)
        self._more.setVisible(bool(details))
        self._more.setChecked(False)
        self._details.hide()
        self.setAccessibleName(headline.sentence)
        self._paint_sign()

    def _paint_sign(self) -> None:
        tone = self._headline.tone if self._headline else Tone.PLAIN
        side = self.fontMetrics().height()
        name, role = SIGNS[tone]
        sign = icon(name, self._theme, role)
        self._sign.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))

    def _unfold(self) -> None:
        self._details.setVisible(self._more.isChecked())

    def _act(self) -> None:
        assert self._headline is not None
        if self._headline.action:
            self.action_requested.emit(self._headline)
        else:
            QGuiApplication.clipboard().setText(self._headline.command)
