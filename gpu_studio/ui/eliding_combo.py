"""A combo box that ends a text too long for it with an ellipsis instead of cutting a letter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

_MARGIN = 16


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
