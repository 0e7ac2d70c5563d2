"""Texts and boxes that end in "…" where there is no room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

_MARGIN = 16


class ElidedText(Text):
    """A line that ends in "…" where it is too long, and is selectable no less.

    With word wrap on it takes as many lines as it needs.
    """

    def minimumSizeHint(self) -> QSize:
        """Return a width that any column has."""
        return QSize(40, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, or as much of it as fits."""
        if self.wordWrap() or self.sizeHint().width() <= self.width():
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

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the frame, and the text that fits into it."""
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        room = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option,
            QStyle.SubControl.SC_ComboBoxEditField, self,
        ).width()  # fmt: skip
        option.currentText = self.fontMetrics().elidedText(
            option.currentText, Qt.TextElideMode.ElideRight, room - 4
        )
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
