"""Whose memory is looked at.

The lab's engine of its own.
"""

from __future__ import annotations

import pytest

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.placement_messages import UseDevice
from gpu_studio.model.memory.memory_devices import choice_title
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.model.memory.oom_experiment import (
    OomState,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030, reading, two_cards
from tests.fakes.scripted_engine import Pause
from tests.model.memory.looks import (
    EXPERIMENT,
    at_the_pause,
    idle,
    parts,
)


def test_a_card_that_pytorch_cannot_use_has_no_address_but_a_reason(engines, ready_studio):
    model = MemoryModel(ready_studio, ready_studio)
    card = model.devices.choices[1]
    assert (choice_title(card), card.address) == ("GT 1030", None)
    assert card.obstacle is Obstacle.NO_CUDA
    assert all(fact in card.reason for fact in ("GT 1030", "CPU-only", "cu126"))
    assert model.chosen.is_modelled
    model.devices.choose(card.identity)
    model.poll()
    assert not any(isinstance(request, ReadMemory) for request in engines.requests)


def test_before_the_engine_is_there_the_sensors_report(scripts, studio, sensor_source, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    model = MemoryModel(studio, studio)
    studio.start()
    sensor_source.send(reading(gt_1030()))
    qtbot.waitUntil(lambda: studio.sensors.newest is not None)
    model.devices.choose(model.devices.choices[1].identity)
    assert "PyTorch has started" in model.devices.choices[1].reason
    assert parts(model) == {"others": 348, "free": 1700}


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_card_in_use_is_followed_until_one_is_chosen_by_hand(model, engines, qtbot, scripts):
    from gpu_studio.core.messages.placement_messages import DeviceUsed

    scripts[UseDevice] = lambda _engine, request: [DeviceUsed(device=request.device, name="card")]
    session = model.parent().session
    session.submit(UseDevice(device="cuda:1"))
    qtbot.waitUntil(lambda: model.chosen.address == "cuda:1")
    model.parent().board.changed.emit()  # a finding about another card, for example
    assert model.chosen.address == "cuda:1"
    model.devices.choose("cpu")
    session.submit(UseDevice(device="cuda:0"))
    idle(qtbot, model.parent())
    assert model.chosen.address == "cpu"


@pytest.mark.parametrize("inventory", [two_cards()])
def test_readings_stay_with_their_card_when_numbers_change(model, scripts, qtbot):
    """In an engine that sees only the second card, that card is cuda:0."""
    studio = model.parent()
    model.devices.choose(model.devices.choices[2].identity)
    model.poll()
    idle(qtbot, studio)
    assert len(model.history.points) == 1
    second = two_cards().cards[1].uuid
    scripts[DescribeEngine] = [described_with_cuda(device_count=1, visible_devices=second)]
    studio.session.restart(EngineEnvironment(visible_devices=second))
    qtbot.waitUntil(lambda: model.chosen.address == "cuda:0")
    idle(qtbot, studio)
    assert model.chosen.identity == second
    model.poll()
    idle(qtbot, studio)
    assert len(model.history.points) == 3, "with the end of the engine before"
    model.devices.choose(model.devices.choices[1].identity)
    assert "CUDA_VISIBLE_DEVICES" in model.chosen.reason
    assert model.history.points == []


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_labs_engine_numbers_the_cards_as_the_programs_own(model, broken, engines, qtbot):
    """In an engine that sees only the second card, that card is cuda:0: in the lab's, too."""
    second = two_cards().cards[1].uuid
    broken[DescribeEngine] = [described_with_cuda(device_count=1, visible_devices=second)]
    model.parent().session.restart(EngineEnvironment(visible_devices=second))
    idle(qtbot, model.parent())
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    assert engines.latest.environment.visible_devices == second
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)


def test_the_lab_ends_with_the_program(qtbot, model, broken, engines):
    model.devices.choose("model:1996")
    model.poll()
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    created = list(engines.made)
    model.parent().close()
    assert all("close" in engine.calls for engine in created if engine.requests)
