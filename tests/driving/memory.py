"""What a person does first in the Memory tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QComboBox, QPlainTextEdit, QPushButton, QTableView

from gpu_studio.model.pages import BREAK_IT, CURVES
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.window import click, wait_until

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.memory.memory_tab import MemoryTab
    from gpu_studio.ui.plots.live_plot import LivePlot


MIB = 1 << 20


def names_above(plot: LivePlot) -> set[str]:
    """Return the curves whose names stand above the plot, where they cover no reading."""
    if plot.plot is None:
        return set()
    item = plot.plot.plotItem
    top = item.vb.sceneBoundingRect().top()
    labels = [label for _, label in item.legend.items]
    return {one.text for one in labels if one.mapRectToScene(one.rect()).center().y() < top}


def start(tab: MemoryTab, studio: Studio, page: int = CURVES) -> None:
    """Start the program, turn to a page, and wait for the first reading."""
    studio.start()
    tab.pages.go_to(page)
    wait_until(lambda: tab.model.latest is not None)


def run(tab: MemoryTab, studio: Studio) -> None:
    """Begin the experiment that is chosen."""
    start(tab, studio, BREAK_IT)
    click(tab, "memory.oom.run")


def shown(qtbot: QtBot, page: QWidget) -> QWidget:
    """Show a page alone, in a window of its own."""
    qtbot.addWidget(page)
    page.resize(980, 620)
    page.show()
    qtbot.waitExposed(page)
    return page


def every_control_is_named(page: QWidget) -> None:
    """Fail if something that a person uses has no name to be read aloud."""
    for kind in (QPushButton, QComboBox, QTableView, TankBar, QPlainTextEdit):
        for widget in page.findChildren(kind):
            assert widget.accessibleName(), widget.objectName()
            assert widget.objectName(), widget
