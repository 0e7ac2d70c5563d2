"""The Switcher over scripted engines, on a PC with two cards."""

from __future__ import annotations

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import RunPitfall
from gpu_studio.core.messages.placement_messages import (
    PlaceModel,
    UseDevice,
)
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.switcher.switcher_tab import SwitcherTab
from tests.fakes.pc import two_cards
from tests.ui.switcher import answers


@pytest.fixture
def inventory():
    return two_cards()


@pytest.fixture
def engines(engines, inventory):
    engines.scripts |= {
        DescribeEngine: answers.describe(inventory),
        UseDevice: answers.use,
        RunPitfall: answers.fall,
        RunWorkload: answers.time_it,
        PlaceModel: answers.place_model,
    }
    return engines


@pytest.fixture
def unstarted(engines, studio, theme, qtbot):
    """The tab, shown, with its engine and sensors not yet started."""
    tab = SwitcherTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(980, 700)
    tab.show()
    qtbot.waitExposed(tab)
    return tab


@pytest.fixture
def tab(unstarted, studio, qtbot):
    studio.start()
    # Before the PC is examined, there are rows as well: the cards that PyTorch counts.
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    return unstarted
