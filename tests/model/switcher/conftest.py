"""Two cards, and engines that see what their environment shows them."""

import pytest

from gpu_studio.model.switcher.switch_model import SwitchModel
from tests.fakes.pc import two_cards
from tests.fakes.switching_answers import switching


@pytest.fixture
def inventory():
    return two_cards()


@pytest.fixture
def scripts(engines, inventory):
    engines.scripts |= switching(inventory)
    return engines.scripts


@pytest.fixture
def model(scripts, ready_studio):
    return SwitchModel(ready_studio, ready_studio)
