"""The Memory tab as a whole: what it reads and when, its controls, its size."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QPushButton,
    QSlider,
)

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.model.pages import BREAK_IT
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.scroll_page import TabScroll
from tests.driving.memory import start
from tests.driving.window import find, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import two_cards
from tests.fakes.scripted_engine import Pause


def test_before_the_engine_is_there_the_tab_says_so(tab, scripts, engines, studio, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    studio.start()
    qtbot.waitUntil(lambda: studio.sensors.inventory is not None)
    assert "starting" in text(tab, "memory.sentence")
    tab.pages.go_to(BREAK_IT)
    assert "starting" in text(tab, "memory.oom.reason")
    assert not find(tab, "memory.oom.run").isEnabled()
    assert not find(tab, "memory.empty_cache").isEnabled()
    qtbot.waitUntil(engines.latest.paused.is_set)
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert find(tab, "memory.oom.reason").isHidden()


def test_it_polls_while_it_is_shown_and_not_while_hidden(tab, engines, studio, qtbot):
    start(tab, studio)

    def polls():
        return sum(isinstance(request, ReadMemory) for request in engines.requests)

    qtbot.waitUntil(lambda: polls() >= 3)
    tab.hide()
    assert not tab._polls.isActive()
    tab.show()
    assert tab._polls.isActive()


def test_every_control_has_a_name_to_be_read_aloud(tab):
    kinds = (QPushButton, QSlider, QComboBox, QCheckBox, TankBar, LivePlot, SegmentMapView)
    for kind in kinds:
        for widget in tab.findChildren(kind):
            assert widget.accessibleName(), widget.objectName()
            assert widget.objectName(), widget


@pytest.mark.parametrize("inventory", [two_cards()])
def test_it_fits_the_width_of_the_smallest_window_and_leaves_its_plot_readable(tab, studio, qtbot):
    start(tab, studio)
    assert tab.minimumSizeHint().width() <= 780
    place = TabScroll(tab)
    qtbot.addWidget(place)
    place.resize(900, 420)  # too low: the tab scrolls
    place.show()
    tab.show()
    plot = find(tab, "memory.plot")
    qtbot.waitUntil(lambda: plot.isVisible() and tab.height() > 420)
    assert plot.height() >= 12 * plot.fontMetrics().height()
    place.takeWidget()  # the fixture closes the tab
