"""A rounded chip that says in a few words how far to trust the result beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QToolTip

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.text_rows import rich_tip
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent, QMouseEvent

# As in the tables: color is not the only difference.
_SIGNS = {Tone.GOOD: "✔ ", Tone.AMBER: "▲ ", Tone.FAILURE: "▲ "}
_SIDES, _ENDS = 12, 4  # pixels
_EDGE = 2  # pixels, the style sheet's


class TrustChip(Text):
    """Its color and words say the same; a long text takes several lines and is never cut.

    The mouse, or Enter with keyboard focus, shows all reasons.
    """

    def __init__(self, *, name: str) -> None:
        super().__init__("", name=name, wraps=True)
        self.setProperty("chip", True)
        self.setIndent(0)
        self.setContentsMargins(_SIDES, _ENDS, _SIDES, _ENDS)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.show_notice(Notice())

    def show_notice(self, notice: Notice) -> None:
        """Show its sentence, and its detail on demand; without a sentence, hide."""
        self.notice = notice
        super().show_notice(notice)
        self.setText(f"{_SIGNS.get(notice.tone, '')}{notice.sentence}")
        self.setToolTip(rich_tip((notice.detail or notice.sentence).splitlines()))
        self.setAccessibleName(notice.sentence or "Trust")
        self.setAccessibleDescription(" ".join(notice.detail.splitlines()))

    def sizeHint(self) -> QSize:
        """Return the size for the text on one line."""
        width = self.fontMetrics().horizontalAdvance(self.text()) + 2 * (_SIDES + _EDGE) + 1
        return QSize(width, self.heightForWidth(width))

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
        QToolTip.showText(place, self.toolTip(), self)
