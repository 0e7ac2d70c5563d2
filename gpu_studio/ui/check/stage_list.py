"""The stages of a check: a row each with its state, what it tested, and its time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QProgressBar,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.check.record_words import VERDICT_WORDS, breakable
from gpu_studio.core.check.stages import STAGES, stage_words
from gpu_studio.core.notice import Tone
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.parts import GAP, Text, rule, set_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent

    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.model.check.check_words import StageWords
    from gpu_studio.ui.theme import Theme

_SIGN_LINES = 1.35
_USUAL_TIME = "00:00"
_STEPS = 1000  # of a progress bar
_ANY_CARD = "cuda:0"
_CODE_TIP = "Click to see its PyTorch code in the Code drawer (F9)."
_SIGNS = {"passed": "✓", "failed": "✗", "skipped": "–"}
_ROLES = {
    "passed": "allocated", "failed": "failure", "inconclusive": "cpu", "partial": "cpu",
    "skipped": "other",
}  # fmt: skip
_WORDS = {"waiting": "Waiting", "running": "Running"} | {
    str(verdict): words for verdict, words in VERDICT_WORDS.items()
}


class StageList(QWidget):
    """The rows; one of a stage that is not part of the check is hidden.

    Signals:
        chosen(StageName): the user wants to see the code of a stage.
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("check.stages")
        self.setAccessibleName("Stages of the check")
        self.rows = {stage.name: StageRow(stage.name, theme) for stage in STAGES}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for row in self.rows.values():
            column.addWidget(row)
            row.pressed.connect(self.chosen)

    def mark(self, name: StageName | None) -> None:
        """Mark the stage whose code is shown."""
        for one, row in self.rows.items():
            set_property(row, "chosen", one == name)

    def show_stages(self, stages: Sequence[StageWords], address: str) -> None:
        """Show the stages of a check of a device."""
        by_name = {words.name: words for words in stages}
        for name, row in self.rows.items():
            row.setVisible(name in by_name)
            if name in by_name:
                row.show_words(by_name[name], address)


class StageRow(QFrame):
    """One stage; its tool tip says what it catches and what it cannot find.

    Signals:
        pressed(StageName): by the mouse or a key.
    """

    pressed = Signal(str)

    def __init__(self, name: StageName, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        stage = stage_words(name, _ANY_CARD)
        self._name = name
        self.setProperty("choosable", True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setObjectName(f"check.stage.{name}")
        self._sign = StageSign(theme)
        self._title = Text(stage.title, "value", name=f"check.stage.{name}.title")
        self._time = Text("", "muted", name=f"check.stage.{name}.time")
        self._detail = Text("", "muted", name=f"check.stage.{name}.tested", wraps=True)
        self._bar = QProgressBar()
        self._bar.setObjectName(f"check.stage.{name}.progress")
        self._bar.setAccessibleName(f"Progress of {stage.title}")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        line = QHBoxLayout()
        line.setContentsMargins(0, 7, 0, 7)
        line.setSpacing(GAP)
        column.addLayout(line)
        column.addWidget(rule())
        line.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(2)
        line.addLayout(words, 1)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        words.addLayout(head)
        head.addWidget(self._title, 1)
        head.addWidget(self._time)
        words.addWidget(self._detail)
        words.addWidget(self._bar)

    @property
    def state(self) -> str:
        """The state that its sign shows: ``waiting``, ``running`` or a verdict."""
        return self._sign.state

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Show the code of this stage."""
        super().mousePressEvent(event)
        self.pressed.emit(self._name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Show the code of this stage with Space or Return."""
        if event.key() in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.pressed.emit(self._name)
        else:
            super().keyPressEvent(event)

    def show_words(self, words: StageWords, address: str) -> None:
        """Show the stage's present state, with the words for a device."""
        stage = stage_words(self._name, address)
        self.setToolTip(
            plain_tip(
                f"{stage.tests}\nCatches: {stage.catches}\nCannot find: {stage.misses}\n{_CODE_TIP}"
            )
        )
        self._sign.show_state(words.state, words.fraction)
        is_quiet = words.state in ("waiting", "skipped")
        self._title.set_tone(Tone.QUIET if is_quiet else Tone.PLAIN)
        self._title.setText(words.title)
        # The widest row decides where the result begins: its time may be still to come.
        self._time.setMinimumWidth(self._time.fontMetrics().horizontalAdvance(_USUAL_TIME))
        self._time.setText(words.time)
        self._detail.setText(breakable(words.detail))
        self._detail.setVisible(bool(words.detail))
        self._detail.set_role("failure" if words.state == "failed" else "muted")
        self._bar.setVisible(words.state == "running")
        self._bar.setValue(round(_STEPS * words.fraction))
        self.setAccessibleName(f"{words.title}: {_WORDS[words.state]}")
        self.setAccessibleDescription(words.detail)


class StageSign(QWidget):
    """A disc: empty, filling, or with the sign of its verdict."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.state, self._fraction = "waiting", 0.0
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_state(self, state: str, fraction: float) -> None:
        """Show a state, and the progress while it runs."""
        if (state, fraction) != (self.state, self._fraction):
            self.state, self._fraction = state, fraction
            self.update()

    def sizeHint(self) -> QSize:
        """Return a little more than a line of text."""
        side = math.ceil(_SIGN_LINES * self.fontMetrics().height())
        return QSize(side, side)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the disc."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        radius = min(self.width(), self.height()) / 2 - 1.5
        painter.translate(self.width() / 2, self.height() / 2)
        disc = QRectF(-radius, -radius, 2 * radius, 2 * radius)
        if self.state in _ROLES:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self._theme.colour(_ROLES[self.state])))
            painter.drawEllipse(disc)
            is_clear = self.state in ("passed", "failed")
            painter.setPen(QColor("white" if is_clear else self._theme.colour("on_device")))
            painter.drawText(disc, Qt.AlignmentFlag.AlignCenter, _SIGNS.get(self.state, "!"))
            return
        painter.setPen(QPen(QColor(self._theme.colour("border")), 2))
        painter.drawEllipse(disc)
        if self.state == "running":
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 2.5))
            span = round(360 * 16 * max(self._fraction, 0.08))
            painter.drawArc(disc, 90 * 16, -span)
