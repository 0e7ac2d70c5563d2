"""The keys that run, stop and save what is in front: Ctrl+Return, Esc and Ctrl+S.

A page marks its buttons with `runs`, `stops` and `saves`; the window presses them. So a page needs
no shortcut of its own, and a disabled or hidden button does nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROPERTY = "pageKey"


class PageKey(Enum):
    """What a key does on the page in front; the value is the key."""

    RUN = "Ctrl+Return"
    STOP = "Esc"
    SAVE = "Ctrl+S"

    @property
    def keys(self) -> QKeySequence:
        """The key for a menu."""
        return QKeySequence(self.value)

    @property
    def words(self) -> str:
        """The key as this system writes it."""
        return self.keys.toString(QKeySequence.SequenceFormat.NativeText)


def runs(button: QPushButton, is_meant: bool = True) -> None:
    """Let Ctrl+Return press this button while it is visible, and say so in its tool tip."""
    _mark(button, PageKey.RUN, is_meant)


def stops(button: QPushButton) -> None:
    """Let Esc press this button while it is visible, and say so in its tool tip."""
    _mark(button, PageKey.STOP)


def saves(button: QPushButton) -> None:
    """Let Ctrl+S press this button while it is visible, and say so in its tool tip."""
    _mark(button, PageKey.SAVE)


def press(page: QWidget | None, key: PageKey) -> bool:
    """Press the button of a page that a key is for; return whether there is one."""
    found = _buttons(page, key)
    if found:
        _nearest(found).click()
    return bool(found)


def can_press(page: QWidget | None, key: PageKey) -> bool:
    """Return whether a key does something on a page now."""
    return bool(_buttons(page, key))


def _mark(button: QPushButton, key: PageKey, is_meant: bool = True) -> None:
    without = button.toolTip().removesuffix(f"({key.words})").rstrip()
    button.setToolTip(f"{without} ({key.words})".lstrip() if is_meant else without)
    button.setProperty(_PROPERTY, key.name if is_meant else "")


def _buttons(page: QWidget | None, key: PageKey) -> list[QPushButton]:
    return [
        button
        for button in (page.findChildren(QPushButton) if page is not None else ())
        if button.property(_PROPERTY) == key.name and button.isVisible() and button.isEnabled()
    ]


def _nearest(buttons: Sequence[QPushButton]) -> QPushButton:
    """Return the button of the card with the focus, or the first one."""
    place = QApplication.focusWidget()
    while place is not None:
        for button in buttons:
            if place.isAncestorOf(button) or place is button:
                return button
        place = place.parentWidget()
    return buttons[0]


def put_last(window: QWidget, *widgets: QWidget) -> None:
    """Put widgets last in the Tab order of their window, one after the other."""
    for widget in widgets:
        last = window.previousInFocusChain()
        # Qt puts no widget after one that does not accept focus.
        while last is not None and last.focusPolicy() is Qt.FocusPolicy.NoFocus:
            last = last.previousInFocusChain()
        if last is not None and last is not widget:
            QWidget.setTabOrder(last, widget)
