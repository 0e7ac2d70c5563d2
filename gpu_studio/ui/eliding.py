"""Texts and boxes that end in "…" where there is no room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter, QToolTip

from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.parts import Text, letters

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

_MARGIN = 16


class ElidedText(Text):
    """A line that ends in "…" where it is too long, and is selectable no less.

    With word wrap on it takes as many lines as it needs.
    """

    def minimumSizeHint(self) -> QSize:
        """Return a width that any column has."""
        return QSize(letters(self, 5), super().minimumSizeHint().height())

    @property
    def is_elided(self) -> bool:
        """Whether a part of the text is left out."""
        return not self.wordWrap() and self.sizeHint().width() > self.width()

    def event(self, event: QEvent) -> bool:
        """Tell the whole text in a tool tip if a part of it is left out."""
        return _tells_whole(self, event) or super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, or as much of it as fits."""
        if not self.is_elided:
            super().paintEvent(event)
            return
        painter = QPainter(self)
        room = self.contentsRect()
        shown = self.fontMetrics().elidedText(
            self.text(), Qt.TextElideMode.ElideRight, room.width()
        )
        self.style().drawItemText(
            painter,
            room,
            int(self.alignment()),
            self.palette(),
            self.isEnabled(),
            shown,
            self.foregroundRole(),
        )


class SpareText(Text):
    """A line that is shown whole where others leave room for it, and not at all elsewhere."""

    def sizeHint(self) -> QSize:
        """Return no width: it asks for none."""
        return QSize(0, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return no width."""
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text if it fits."""
        if self.fontMetrics().horizontalAdvance(self.text()) <= self.width():
            super().paintEvent(event)


def _tells_whole(widget: ElidedText | ElidingCombo, event: QEvent) -> bool:
    """Show a widget's whole text if its tool tip is asked for and it is elided."""
    if not isinstance(event, QHelpEvent) or event.type() is not QEvent.Type.ToolTip:
        return False
    if not widget.is_elided:
        return False
    text = widget.currentText() if isinstance(widget, QComboBox) else widget.text()
    tip = widget.toolTip() or plain_tip(text)
    QToolTip.showText(event.globalPos(), tip, widget)
    return True


def narrow_combo(name: str, accessible_name: str, least_letters: int = 8) -> ElidingCombo:
    """Return a combo box that a narrow panel can hold: it asks for room for so many letters."""
    made = ElidingCombo()
    made.setObjectName(name)
    made.setAccessibleName(accessible_name)
    made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    made.setMinimumContentsLength(least_letters)
    return made


class ElidingCombo(QComboBox):
    """Shows as much of its text as there is room for."""

    def showPopup(self) -> None:
        """Open the list as wide as its longest entry."""
        view = self.view()
        view.setMinimumWidth(view.sizeHintForColumn(0) + _MARGIN)
        super().showPopup()

    @property
    def is_elided(self) -> bool:
        """Whether a part of the text is left out."""
        return self.fontMetrics().horizontalAdvance(self.currentText()) > self._room()

    def event(self, event: QEvent) -> bool:
        """Tell the whole text in a tool tip if a part of it is left out."""
        return _tells_whole(self, event) or super().event(event)

    def _room(self) -> int:
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option,
            QStyle.SubControl.SC_ComboBoxEditField, self,
        )  # fmt: skip
        return field.width() - 4

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the frame, and the text that fits into it."""
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        option.currentText = self.fontMetrics().elidedText(
            option.currentText, Qt.TextElideMode.ElideRight, self._room()
        )
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
