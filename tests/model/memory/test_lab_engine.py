"""The lab's engine of its own."""

from __future__ import annotations

import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.oom_experiment import (
    OomState,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import two_cards
from tests.model.memory.looks import (
    EXPERIMENT,
    at_the_pause,
    idle,
    parts,
    plain,
)


def test_an_experiment_runs_in_an_engine_of_its_own_that_ends_with_it(
    model, broken, engines, qtbot
):
    studio = model.parent()
    main = engines.latest
    assert len(engines.made) == 1, "none is made before it is needed"
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    lab = engines.latest
    assert lab is not main
    qtbot.waitUntil(lambda: model.experiment.state is OomState.RUNNING)
    qtbot.waitUntil(lambda: parts(model)["tensors"] == 1024)
    assert studio.session.is_free, "the program's own engine goes on"
    assert "1 GiB allocated" in plain(model.experiment.outcome.detail)
    lab.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.experiment.outcome.sentence == "Over the budget."
    assert lab.requests[-1] == EXPERIMENT
    qtbot.waitUntil(lambda: "close" in lab.calls)
    assert "close" not in main.calls
    assert studio.lab.state is EngineState.ABSENT
    assert [mark.label for mark in model.history.marks] == ["experiment", "out of memory", "freed"]


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
