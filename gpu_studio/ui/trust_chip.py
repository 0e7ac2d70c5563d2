"""A rounded chip that says in a few words how far to trust the result beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QHelpEvent, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.text_rows import rich_tip
from gpu_studio.ui.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent

    from gpu_studio.ui.theme import Theme

# (color of the chip, color of its text, icon)
_LOOKS = {
    Tone.GOOD: ("good_soft", "good", "check"),
    Tone.AMBER: ("amber_soft", "amber", "warning"),
    Tone.FAILURE: ("failure_soft", "failure_ink", "warning"),
    Tone.QUIET: ("track", "muted", "clock"),
    Tone.PLAIN: ("track", "muted", "clock"),
}
# In lines of the widget's font.
_PADDING, _ICON, _GAP = (0.75, 0.35), 1.0, 0.35
_LEAST_WIDTH = 7.0
_TEXT_FLAGS = int(
    Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap
)


class TrustChip(QWidget):
    """Its color, icon and words say the same; a long text takes several lines and is never cut.

    The mouse, or Enter with keyboard focus, shows all reasons.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme = theme
        self.notice = Notice()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName("Trust")
        theme.changed.connect(self.update)

    def show_notice(self, notice: Notice) -> None:
        """Show its sentence, and its detail on demand; without a sentence, hide."""
        self.notice = notice
        self.setProperty("tone", notice.tone.value)
        self.setAccessibleName(notice.sentence or "Trust")
        self.setAccessibleDescription(" ".join(notice.detail.splitlines()))
        self.setVisible(bool(notice.sentence))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size for the text on one line."""
        width = self._metrics().horizontalAdvance(self.notice.sentence) + 1 + self._around()
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """Return the size for the longest word, or for a short line."""
        words = (self._metrics().horizontalAdvance(word) for word in self.notice.sentence.split())
        longest = max(words, default=0) + 1
        one_line = self.sizeHint().width() - self._around()
        least = max(longest, min(round(self._lines(_LEAST_WIDTH)), one_line))
        width = least + self._around()
        return QSize(width, self.heightForWidth(width))

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines of text, in pixels."""
        room = QRect(0, 0, max(width - self._around(), 1), 1 << 16)
        text = self._metrics().boundingRect(room, _TEXT_FLAGS, self.notice.sentence or " ")
        return math.ceil(text.height() + 2 * self._lines(_PADDING[1]))

    def event(self, event: QEvent) -> bool:
        """Show the reasons under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            self._show_reasons(event.globalPos())
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Show the reasons by keyboard."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._show_reasons(self.mapToGlobal(QPoint(0, self.height())))
            return
        super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Show the reasons by a click."""
        self._show_reasons(event.globalPosition().toPoint())

    def _show_reasons(self, place: QPoint) -> None:
        lines = (self.notice.detail or self.notice.sentence).splitlines()
        QToolTip.showText(place, rich_tip(lines), self)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the chip, its icon and its words."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground, ink, sign = _LOOKS[self.notice.tone]
        outline = QPainterPath()
        radius = min(self.height() / 2, self._lines(0.5 + _PADDING[1]))
        outline.addRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), radius, radius)
        painter.fillPath(outline, QColor(self._theme.colour(ground)))
        if self.hasFocus():
            painter.strokePath(outline, QPen(QColor(self._theme.colour("accent")), 2))
        side = round(self._lines(_ICON))
        left = round(self._lines(_PADDING[0]))
        place = QRect(left, (self.height() - side) // 2, side, side)
        icon(sign, self._theme, ink).paint(painter, place)
        painter.setFont(self._bold())
        painter.setPen(QColor(self._theme.colour(ink)))
        words = QRect(place.right() + 1 + round(self._lines(_GAP)), 0, 0, self.height())
        words.setRight(self.width() - left)
        painter.drawText(words, _TEXT_FLAGS, self.notice.sentence)

    def _around(self) -> int:
        """Return the width of everything but the text."""
        sides = 2 * round(self._lines(_PADDING[0]))
        return sides + round(self._lines(_ICON)) + round(self._lines(_GAP))

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()

    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(self._bold())

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        return font
