"""Texts that end in "…" if they do not fit.

Lists to choose from: they open whole and leave the wheel to the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter
from PySide6.QtWidgets import QComboBox, QStyleOptionComboBox, QToolTip

from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.parts import Text, letters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard

    from PySide6.QtGui import QPaintEvent, QWheelEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.parts import Role


class ElidedText(Text):
    """A selectable line that ends in "…" if it is too long.

    With word wrap, it uses as many lines as it needs.
    """

    def minimumSizeHint(self) -> QSize:
        """Return a width that fits any column."""
        return QSize(letters(self, 5), super().minimumSizeHint().height())

    @property
    def is_elided(self) -> bool:
        """Whether the text is cut off."""
        return not self.wordWrap() and self.sizeHint().width() > self.width()

    @property
    def shown_text(self) -> str:
        """As much of the text as fits."""
        if not self.is_elided:
            return self.text()
        room = self.contentsRect().width()
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, room)

    def event(self, event: QEvent) -> bool:
        """Show the full text in a tool tip if it is cut off."""
        if asks_for_tip(event) and self.is_elided:
            show_whole(self, self.text(), event)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint as much of the text as fits."""
        if not self.is_elided:
            super().paintEvent(event)
            return
        painter = QPainter(self)
        room = self.contentsRect()
        self.style().drawItemText(
            painter,
            room,
            int(self.alignment()),
            self.palette(),
            self.isEnabled(),
            self.shown_text,
            self.foregroundRole(),
        )


class RoomText(Text):
    """A wrapped text with room for a number of lines: what is below stays if it says less."""

    def __init__(self, text: str = "", role: Role = "", *, name: str = "", lines: int) -> None:
        super().__init__(text, role, name=name, wraps=True)
        self.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self._lines = lines

    def sizeHint(self) -> QSize:
        """Return at least the height of the room."""
        return super().sizeHint().expandedTo(QSize(0, self._room()))

    def minimumSizeHint(self) -> QSize:
        """Return at least the height of the room."""
        return super().minimumSizeHint().expandedTo(QSize(0, self._room()))

    def heightForWidth(self, width: int) -> int:
        """Return at least the height of the room."""
        return max(super().heightForWidth(width), self._room())

    def _room(self) -> int:
        # A fraction of a pixel comes to each line: several are higher than as many of one.
        lines = self.fontMetrics().boundingRect(0, 0, 0, 0, 0, "\n".join("g" * self._lines))
        return lines.height()


def asks_for_tip(event: QEvent) -> TypeGuard[QHelpEvent]:
    """Return whether an event asks a widget for its tool tip."""
    return isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip


def show_whole(widget: QWidget, text: str, event: QHelpEvent) -> None:
    """Show the full text of a widget that cuts it off, or the widget's own tool tip."""
    QToolTip.showText(event.globalPos(), widget.toolTip() or plain_tip(text), widget)


_MOST_ROWS = 20  # visible at once; a longer list scrolls
_MARGIN = 16
_LABEL_EDGE = 1  # pixels that Qt's styles keep free on each side of the text of a box


class ComboBox(QComboBox):
    """A combo box of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.setMaxVisibleItems(_MOST_ROWS)

    def minimumSizeHint(self) -> QSize:
        """Return the size hint; Qt keeps the minimum for an older number of letters."""
        return self.sizeHint()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page: a choice changes on purpose only."""
        event.ignore()


class ElidingCombo(ComboBox):
    """A combo box whose text ends in "…" if it does not fit."""

    def showPopup(self) -> None:
        """Open the list with the width of its longest entry."""
        view = self.view()
        view.setMinimumWidth(view.sizeHintForColumn(0) + _MARGIN)
        super().showPopup()

    @property
    def is_elided(self) -> bool:
        """Whether the text is cut off."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        return bool(option.currentText != self.currentText())

    def event(self, event: QEvent) -> bool:
        """Show the full text in a tool tip if it is cut off."""
        if asks_for_tip(event) and self.is_elided:
            show_whole(self, self.currentText(), event)
            return True
        return super().event(event)

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """Let Qt paint as much of the text as fits."""
        from PySide6.QtWidgets import QStyle  # 5 ms: its enums

        super().initStyleOption(option)
        parts, style = QStyle.SubControl, QStyle.ComplexControl.CC_ComboBox
        field = self.style().subControlRect(style, option, parts.SC_ComboBoxEditField, self)
        room, mode = field.width() - 2 * _LABEL_EDGE, Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(option.currentText, mode, room)


def show_items(combo: QComboBox, items: Sequence[tuple[str, str]]) -> None:
    """Offer these pairs of a text and its key; the chosen key stays chosen while it is offered."""
    places = range(combo.count())
    if list(items) == [(combo.itemText(place), combo.itemData(place)) for place in places]:
        return
    with QSignalBlocker(combo):
        chosen = combo.currentData()
        combo.clear()
        for text, key in items:
            combo.addItem(text, key)
        combo.setCurrentIndex(max(combo.findData(chosen), 0))
