"""Notices in lines: each with the sign of its tone, what else it says, and its button."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from gpu_studio.core.notice import Tone
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Text, button, show_label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.notice import Notice
    from gpu_studio.ui.theme import Theme

_SIGNS = {  # (icon, its color)
    Tone.GOOD: ("check", "good"),
    Tone.AMBER: ("warning", "amber"),
    Tone.FAILURE: ("warning", "failure_ink"),
    Tone.QUIET: ("clock", "muted"),
    Tone.PLAIN: ("info", "muted"),
}
_LINE_GAP = 4


class ToneSign(QLabel):
    """The picture of a tone, as high as some lines of text; without a tone, only its room."""

    def __init__(self, theme: Theme, lines: float = 1.0) -> None:
        super().__init__()
        self._theme, self._lines = theme, lines
        self._tone: Tone | None = None
        theme.changed.connect(self._paint)

    def show_tone(self, tone: Tone | None) -> None:
        """Show another tone's picture."""
        self._tone = tone
        self._paint()

    def _paint(self) -> None:
        side = round(self._lines * self.fontMetrics().height())
        self.setFixedWidth(side)
        if self._tone is None:
            self.clear()
            return
        name, role = _SIGNS[self._tone]
        sign = icon(name, self._theme, role)
        self.setPixmap(sign.pixmap(QSize(side, side), self.devicePixelRatioF()))


class NoticeLine(QWidget):
    """A notice with the sign of its tone: its sentence, and below it what else it says.

    Args:
        theme: paints the sign.
        name: the object name.
        folds: whether what else it says is behind a button.
        act: does what its button offers; the button is there if the notice has a label for it.
    """

    def __init__(
        self,
        theme: Theme,
        *,
        name: str,
        folds: bool = False,
        act: Callable[[Notice], object] | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName(name)
        self._notice: Notice | None = None
        self._folds, self._act = folds, act
        self._sign = ToneSign(theme)
        self._sentence = Text("", name=f"{name}.sentence", wraps=True)
        self._below = Text("", "muted", name=f"{name}.below", wraps=True)
        self._action = button("", self._on_pressed, name=f"{name}.action")
        self._more = button("Details", self._unfold, name=f"{name}.more")
        self._more.setCheckable(True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(GAP)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        row.addLayout(words, 1)
        words.addWidget(self._sentence)
        words.addWidget(self._below)
        row.addWidget(self._action, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._more, 0, Qt.AlignmentFlag.AlignTop)

    def show_notice(self, notice: Notice, label: str = "", command: str = "") -> None:
        """Show a notice; without a sentence, nothing.

        Args:
            notice: what to show.
            label: the text of its button; without one, there is no button.
            command: a command that belongs to it.
        """
        if notice != self._notice:
            self._more.setChecked(False)
        self._notice = notice
        self._sign.show_tone(None if notice.tone is Tone.PLAIN else notice.tone)
        self._sentence.setText(notice.sentence)
        self._sentence.set_tone(notice.tone)
        self._below.setText("\n".join(filter(None, (notice.detail, notice.next_step, command))))
        show_label(self._action, label)
        self._more.setVisible(self._folds and bool(self._below.text()))
        self._unfold()
        self.setAccessibleName(notice.sentence)
        self.setVisible(bool(notice.sentence))

    def _unfold(self) -> None:
        is_open = self._more.isChecked() or not self._folds
        self._below.setVisible(is_open and bool(self._below.text()))

    def _on_pressed(self) -> None:
        if self._act is not None and self._notice is not None:
            self._act(self._notice)


class NoticeLines(QWidget):
    """Any number of notices, one a line.

    Args:
        theme: paints the signs.
        name: the object name; a line is named ``name.NUMBER``.
        lines: how many have their room even if there are fewer.
        act: as for `NoticeLine`.
    """

    def __init__(
        self,
        theme: Theme,
        *,
        name: str,
        lines: int = 0,
        act: Callable[[Notice], object] | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName(name)
        self._theme, self._act = theme, act
        self._lines: list[NoticeLine] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(_LINE_GAP)
        self._column.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setMinimumHeight(lines * (self.fontMetrics().lineSpacing() + _LINE_GAP))

    def show_notices(self, shown: Sequence[tuple[Notice, str, str]]) -> None:
        """Show these notices, each with the label of its button and its command."""
        for number in range(len(self._lines), len(shown)):
            name = f"{self.objectName()}.{number}"
            line = NoticeLine(self._theme, name=name, folds=True, act=self._act)
            self._lines.append(line)
            self._column.addWidget(line)
        for line, (notice, label, command) in zip(self._lines, shown, strict=False):
            line.show_notice(notice, label, command)
        for line in self._lines[len(shown) :]:
            line.hide()
