"""A list to choose from, which opens whole and leaves the wheel to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QComboBox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QSize
    from PySide6.QtGui import QWheelEvent

_MOST_ROWS = 20  # visible at once; a longer list scrolls


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
