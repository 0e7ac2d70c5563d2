"""Which engine's allocator is shown, and what an experiment reached."""

from __future__ import annotations

import msgspec

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.memory_model import LAB, MAIN, MemoryModel
from gpu_studio.model.memory.oom_experiment import (
    OomState,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import (
    memory_read,
    oom_finished,
)
from tests.fakes.pc import gt_1030, reading
from tests.model.memory.looks import (
    EXPERIMENT,
    MIB,
    ON_MODEL,
    at_the_pause,
    idle,
    parts,
)


def test_what_an_experiment_reached_is_shown_until_the_other_engine_is_chosen(
    model, broken, engines, qtbot
):
    assert model.engines == [MAIN]
    model.poll()
    idle(qtbot, model.parent())
    model.experiment.run(EXPERIMENT)
    assert (model.engine, model.engines) == (LAB, [MAIN, LAB])
    at_the_pause(qtbot, engines)
    assert not model.is_held
    engines.latest.go()
    qtbot.waitUntil(lambda: model.is_held)
    assert parts(model)["tensors"] == 1024
    assert model.segments.read.mark == "oom"
    assert not model.can_empty_cache
    assert "has ended" in model.cache_sentence
    model.show_engine(MAIN)
    assert parts(model)["tensors"] == 100
    model.show_engine(LAB)
    assert parts(model)["tensors"] == 1024


def test_the_other_engine_is_named_as_such_in_the_tank(
    model, broken, scripts, engines, sensor_source, qtbot
):
    """The program's engine holds 120 MiB and a context; to the lab's it is no stranger."""
    scripts[DescribeEngine] = lambda engine, _request: [
        described_with_cuda(pid=100 + engines.made.index(engine))
    ]
    model.parent().session.restart()
    idle(qtbot, model.parent())
    main_pid = model.parent().session.description.pid
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    lab_pid = 100 + len(engines.made) - 1
    qtbot.waitUntil(lambda: parts(model)["tensors"] == 1024)
    processes = (
        GpuProcess(pid=lab_pid, name="python", memory_bytes=(1024 + 90) * MIB),
        GpuProcess(pid=main_pid, name="python", memory_bytes=150 * MIB),
        GpuProcess(pid=9, name="Xorg", memory_bytes=60 * MIB),
    )
    taken = reading(gt_1030())
    cards = tuple(msgspec.structs.replace(card, processes=processes) for card in taken.cards)
    # What was reserved in the last moments must be what the driver saw, or the two disagree.
    qtbot.waitUntil(lambda: model.latest is not None and model.latest.mark == "oom")
    model._lab._histories.clear()
    sensor_source.send(msgspec.structs.replace(taken, cards=cards))
    qtbot.waitUntil(lambda: "context" in parts(model))
    assert parts(model) == {
        "driver": 52, "others": 60, "not_told": 38, "other_engine": 150, "context": 90,
        "tensors": 1024, "holes": 0, "free": 634,
    }  # fmt: skip
    assert next(p.label for p in model.tank.parts if p.key == "other_engine") == (
        "The program's engine"
    )
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)


def test_a_modelled_card_has_an_engine_that_stays_and_holds_for_a_while(
    scripts, broken, engines, ready_studio, qtbot
):
    model = MemoryModel(ready_studio, ready_studio)
    model.devices.choose("model:1996")

    def has_been_read():
        model.poll()
        return model.latest is not None

    qtbot.waitUntil(has_been_read)
    modelled = engines.latest
    qtbot.waitUntil(lambda: ready_studio.modelled.is_free)
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read("model:1996", allocated=1024, reserved=1024, mark="oom"),
        memory_read("model:1996", reserved=1024, mark="freed"),
        oom_finished(device="model:1996"),
    ]
    model.experiment.run(ON_MODEL)
    qtbot.waitUntil(lambda: model.is_held)
    assert parts(model)["tensors"] == 1024
    with qtbot.waitSignals([model.memory_changed, model.segments_changed]):
        model._result._ageing.start(0)  # its time is over
    assert not model.is_held
    assert parts(model)["tensors"] == 0
    assert ready_studio.modelled.state is not EngineState.ABSENT
    assert modelled is not engines.latest, "each experiment begins in a fresh one"
    assert "close" not in engines.latest.calls
    assert model.engines == [LAB]
