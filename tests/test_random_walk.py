"""Somebody who presses everything: nothing may raise, warn, hang or be left behind."""

from __future__ import annotations

import random

import pytest
from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QMenu,
    QPushButton,
    QSlider,
    QSpinBox,
    QTableView,
)

from gpu_studio.core.protocol import DescribeEngine
from gpu_studio.ui.main_window import MainWindow
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import reading, two_cards

_STEPS = 150
# These open a dialog of the system, or end the window.
_LEFT_ALONE = ("…", "Quit", "About", "log folder")


class Walker:
    """Takes one step after the other; which ones, its seed decides."""

    def __init__(self, window: MainWindow, seed: int) -> None:
        self._window = window
        self._random = random.Random(seed)
        self._ways = (
            self._change_tab, self._press, self._press, self._press, self._choose, self._slide,
            self._trigger, self._resize, self._type, self._select,
        )  # fmt: skip

    def step(self) -> str:
        """Do something; return what, for the report of a failure."""
        way = self._random.choice(self._ways)
        return f"{way.__name__}: {way()}"

    def _any(self, kind):
        widgets = [w for w in self._window.findChildren(kind) if w.isVisible() and w.isEnabled()]
        return self._random.choice(widgets) if widgets else None

    def _change_tab(self):
        index = self._random.randrange(self._window.tabs.count())
        self._window.tabs.setCurrentIndex(index)
        return index

    def _press(self):
        button = self._any(QPushButton)
        if button is None or button.menu() or _is_left_alone(button.text()):
            return None
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        return button.objectName() or button.text()

    def _choose(self):
        combo = self._any(QComboBox)
        if combo is None or not combo.count():
            return None
        index = self._random.randrange(combo.count())
        combo.setCurrentIndex(index)
        combo.activated.emit(index)
        return combo.objectName(), index

    def _slide(self):
        part = self._any((QSlider, QSpinBox)[self._random.randrange(2)])
        if part is not None:
            part.setValue(self._random.randint(part.minimum(), part.maximum()))
            return part.objectName()
        return None

    def _trigger(self):
        actions = [
            action
            for menu in self._window.menuBar().findChildren(QMenu)
            for action in menu.actions()
            if action.isEnabled()
            and not any(word in action.text().replace("&", "") for word in _LEFT_ALONE)
        ]
        action = self._random.choice(actions)
        action.trigger()
        return action.text()

    def _resize(self):
        size = self._random.randrange(1024, 1600), self._random.randrange(640, 1000)
        self._window.resize(*size)
        return size

    def _type(self):
        keys = (Qt.Key.Key_Tab, Qt.Key.Key_Escape, Qt.Key.Key_Left, Qt.Key.Key_Down,
                Qt.Key.Key_Space, Qt.Key.Key_9)  # fmt: skip
        key = self._random.choice(keys)
        QTest.keyClick(QApplication.focusWidget() or self._window, key)
        return key.name

    def _select(self):
        table = self._any(QTableView)
        if table is not None and table.model() and table.model().rowCount():
            table.selectRow(self._random.randrange(table.model().rowCount()))
            return table.objectName()
        return None


def _is_left_alone(text):
    return any(word in text.replace("&", "") for word in _LEFT_ALONE)


def close_dialog():
    dialog = QApplication.activeModalWidget()
    if dialog is not None:
        dialog.close()


@pytest.mark.parametrize("inventory", [two_cards()])
@pytest.mark.parametrize("seed", range(2))
def test_a_walk_over_the_window_leaves_it_whole(qtbot, studio, theme, engines, sensor_source, seed):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: studio.session.description is not None)
    dialogs = QTimer(window)
    dialogs.timeout.connect(close_dialog)
    dialogs.start(5)
    walker, walked = Walker(window, seed), []
    for number in range(_STEPS):
        walked.append(walker.step())
        if number % 10 == 0:
            sensor_source.send(reading(two_cards(), float(number)))
        QCoreApplication.processEvents()
        assert window.isVisible(), walked[-3:]
    window.close()
