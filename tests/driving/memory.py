"""What a person does first in the Memory tab."""

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from gpu_studio.model.pages import NOW, PageId
from gpu_studio.model.studio import Studio
from gpu_studio.ui.memory.memory_tab import MemoryTab
from tests.driving.window import click, find, wait_until

MIB = 1 << 20


def start(tab: MemoryTab, studio: Studio, page: PageId = NOW) -> None:
    """Start the program, turn to a page, and wait for the first reading."""
    studio.start()
    tab.pages.go_to(page)
    wait_until(lambda: tab.model.latest is not None)


def run(tab: MemoryTab, studio: Studio) -> None:
    """Begin the experiment that is chosen; a real card may be filled."""
    start(tab, studio)
    fill_card(tab)


def fill_card(root: QWidget, name: str = "memory.oom.run") -> None:
    """Press Run, and agree if the window asks whether it may fill the card."""
    wait_until(find(root, name).isEnabled)
    QTimer.singleShot(0, agree)
    click(root, name)


def agree() -> None:
    box = QApplication.activeModalWidget()
    if isinstance(box, QMessageBox):
        box.button(QMessageBox.StandardButton.Yes).click()


def shown(qtbot: QtBot, page: QWidget) -> QWidget:
    """Show a page alone, in a window of its own."""
    qtbot.addWidget(page)
    page.resize(980, 620)
    page.show()
    qtbot.waitExposed(page)
    return page
