"""Lists to choose from: they open whole and leave the wheel to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

from gpu_studio.ui.eliding import asks_for_tip, show_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QEvent, QSize
    from PySide6.QtGui import QPaintEvent, QWheelEvent

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
        return self.fontMetrics().horizontalAdvance(self.currentText()) > self._room()

    def event(self, event: QEvent) -> bool:
        """Show the full text in a tool tip if it is cut off."""
        if asks_for_tip(event) and self.is_elided:
            show_whole(self, self.currentText(), event)
            return True
        return super().event(event)

    def _room(self) -> int:
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option,
            QStyle.SubControl.SC_ComboBoxEditField, self,
        )  # fmt: skip
        return field.width() - 2 * _LABEL_EDGE

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the frame, and as much of the text as fits."""
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        option.currentText = self.fontMetrics().elidedText(
            option.currentText, Qt.TextElideMode.ElideRight, self._room()
        )
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)


def narrow_combo(name: str, accessible_name: str, least_letters: int = 8) -> ElidingCombo:
    """Return a combo box for a narrow panel, with a minimum width in letters."""
    box = ElidingCombo()
    box.setObjectName(name)
    box.setAccessibleName(accessible_name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(least_letters)
    return box


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
