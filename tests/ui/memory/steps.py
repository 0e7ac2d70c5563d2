"""What a person does first in the Memory tab."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QComboBox,
    QPlainTextEdit,
    QPushButton,
    QTableView,
)

from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.memory_tab import CURVES, LAB_PAGE
from tests.ui.by_name import click, find

MIB = 1 << 20


def start(qtbot, tab, studio, page=CURVES):
    studio.start()
    tab.show_page(page)
    qtbot.waitUntil(lambda: tab.model.latest is not None)


def run(qtbot, tab, studio):
    start(qtbot, tab, studio, LAB_PAGE)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    click(qtbot, tab, "memory.oom.run")


def shown(qtbot, page):
    qtbot.addWidget(page)
    page.resize(980, 620)
    page.show()
    qtbot.waitExposed(page)
    return page


def every_control_is_named(page):
    for kind in (QPushButton, QComboBox, QTableView, TankBar, QPlainTextEdit):
        for widget in page.findChildren(kind):
            assert widget.accessibleName(), widget.objectName()
            assert widget.objectName(), widget
