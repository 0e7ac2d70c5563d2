"""The Switcher over scripted engines, on a PC with two cards."""

import pytest

from gpu_studio.core.messages.pitfall_messages import PitfallStarted, RunPitfall
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.ui.switcher.switcher_tab import SwitcherTab
from tests.fakes.pc import two_cards
from tests.fakes.switching_answers import pitfall_finished, switching, time_it
from tests.ui.switcher.lessons import PITFALLS, WORKLOADS


@pytest.fixture
def inventory():
    return two_cards()


def fall(_engine, request):
    return [
        PitfallStarted(name=request.name, part=request.part, snippet=f"# {request.part}\n"),
        pitfall_finished(request),
    ]


@pytest.fixture
def engines(engines, inventory):
    engines.scripts |= switching(inventory, pitfalls=PITFALLS, workloads=WORKLOADS)
    engines.scripts |= {RunPitfall: fall, RunWorkload: time_it}
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
