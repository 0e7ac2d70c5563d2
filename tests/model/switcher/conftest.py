"""Two cards, and engines that see what their environment shows them."""

from __future__ import annotations

import pytest

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    ModelDescription,
    PlaceModel,
    UseDevice,
)
from gpu_studio.model.switcher.switch_model import SwitchModel
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import two_cards
from tests.fakes.switching_answers import place_finished, place_row

MODELS = (
    ModelDescription(name="linear_10", title="Linear(10, 10)", sentence="One layer."),
    ModelDescription(name="convnet", title="Small network", sentence="It has buffers."),
)


@pytest.fixture
def inventory():
    return two_cards()


@pytest.fixture
def scripts(engines, inventory):
    """Engines that see what their environment shows them."""

    def describe(engine, _request):
        shown = engine.environment.visible_devices
        count = len(inventory.cards) if shown is None else 1
        cuda = described_with_cuda(device_count=count, visible_devices=shown, models=MODELS)
        return [cuda if inventory.cards else described(models=MODELS)]

    engines.scripts |= {
        DescribeEngine: describe,
        UseDevice: lambda _engine, request: [
            DeviceUsed(device=request.device, name="NVIDIA GeForce RTX 3060")
        ],
        PlaceModel: lambda _engine, request: [
            place_row("weight", device_after=request.device),
            place_row("bias", (10,), device_after=request.device),
            place_finished(device=request.device),
        ],
    }
    return engines.scripts


@pytest.fixture
def model(scripts, ready_studio):
    return SwitchModel(ready_studio, ready_studio)
