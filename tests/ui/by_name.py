"""What a person finds, reads and clicks in a tab, by object name."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget


def find(tab, name, kind=QWidget):
    found = tab.findChild(kind, name)
    assert found is not None, name
    return found


def text(tab, name):
    return find(tab, name, QLabel).text().replace("\u202f", " ")


def click(qtbot, tab, name):
    qtbot.mouseClick(find(tab, name, QPushButton), Qt.MouseButton.LeftButton)
