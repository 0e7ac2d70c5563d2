"""The keys that run, stop and save what is in front: Ctrl+Return, Esc and Ctrl+S.

A page marks its buttons with `runs`, `stops` and `saves`; the window presses them. So a page needs
no shortcut of its own, and a disabled or hidden button does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN_KEYS = QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_Return)
SAVE_KEYS = QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_S)
STOP_KEYS = QKeySequence(Qt.Key.Key_Escape)
_PROPERTY = "pageKey"


def runs(button: QPushButton, is_meant: bool = True) -> None:
    """Let Ctrl+Return press this button while it is visible, and say so in its tool tip."""
    _mark(button, "run", RUN_KEYS, is_meant)


def stops(button: QPushButton) -> None:
    """Let Esc press this button while it is visible, and say so in its tool tip."""
    _mark(button, "stop", STOP_KEYS, is_meant=True)


def saves(button: QPushButton) -> None:
    """Let Ctrl+S press this button while it is visible, and say so in its tool tip."""
    _mark(button, "save", SAVE_KEYS, is_meant=True)


def press_save(page: QWidget | None) -> None:
    """Press the button that saves what is in front on a page."""
    _press(page, "save")


def can_save(page: QWidget | None) -> bool:
    """Return whether a page has something to save now."""
    return bool(_buttons(page, "save"))


def press_run(page: QWidget | None) -> None:
    """Press the button that runs what is in front on a page."""
    _press(page, "run")


def press_stop(page: QWidget | None) -> bool:
    """Press the button that stops what runs on a page; return whether there is one."""
    return _press(page, "stop")


def can_press(page: QWidget | None) -> tuple[bool, bool]:
    """Return whether a page has something to run now, and something to stop."""
    return bool(_buttons(page, "run")), bool(_buttons(page, "stop"))


def _mark(button: QPushButton, kind: str, keys: QKeySequence, is_meant: bool) -> None:
    name = keys.toString(QKeySequence.SequenceFormat.NativeText)
    without = button.toolTip().removesuffix(f"({name})").rstrip()
    if without == name:
        without = ""
    tip = f"{without} ({name})" if without else name
    button.setToolTip(tip if is_meant else without)
    button.setProperty(_PROPERTY, kind if is_meant else "")


def _press(page: QWidget | None, kind: str) -> bool:
    found = _buttons(page, kind)
    if found:
        _nearest(found).click()
    return bool(found)


def _buttons(page: QWidget | None, kind: str) -> list[QPushButton]:
    if page is None:
        return []
    return [
        button
        for button in page.findChildren(QPushButton)
        if button.property(_PROPERTY) == kind and button.isVisible() and button.isEnabled()
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
