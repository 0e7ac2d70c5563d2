"""Fills a combo box with what can be chosen now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QComboBox


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
