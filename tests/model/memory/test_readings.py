"""What the engine reads, and what is made of it."""

from __future__ import annotations

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.memory.memory_model import MemoryModel
from tests.fakes.memory_answers import (
    memory_read,
)
from tests.fakes.scripted_engine import Pause
from tests.model.memory.looks import (
    idle,
    parts,
    real,
)


def test_nothing_is_asked_while_the_engine_works(model, engines, scripts, qtbot):
    scripts[RunWorkload] = [Pause()]
    session = model.parent().session
    request = RunWorkload(run_id="r", workload="w", device="cpu", size=1, dtype="float32")
    reply = session.submit(request)
    qtbot.waitUntil(engines.latest.paused.is_set)
    model.poll()
    reply.stop()
    idle(qtbot, model.parent())
    assert not any(isinstance(asked, ReadMemory) for asked in engines.requests)
    model.poll()
    qtbot.waitUntil(lambda: isinstance(engines.requests[-1], ReadMemory))


def test_polls_do_not_pile_up(model, engines, scripts, qtbot):
    scripts[ReadMemory] = [Pause(), memory_read()]
    model.poll()
    model.poll()
    qtbot.waitUntil(engines.latest.paused.is_set)
    model.poll()
    engines.latest.go()
    idle(qtbot, model.parent())
    assert sum(isinstance(asked, ReadMemory) for asked in engines.requests) == 1


def test_an_engine_that_died_holds_nothing_any_more(model, scripts, qtbot):
    model.poll()
    idle(qtbot, model.parent())
    scripts[ReadMemory] = [EngineEnded(exit_code=-9)]
    model.poll()
    qtbot.waitUntil(lambda: any(mark.is_failure for mark in model.history.marks))
    assert model.latest is None
    assert model.history.curve()[1][-1] == 0, "its memory ended with it"
    idle(qtbot, model.parent())


def test_a_fresh_engine_goes_on_where_the_old_ones_clock_stopped(model, scripts, qtbot):
    scripts[ReadMemory] = [memory_read(allocated=100, reserved=120, taken_at_s=1000.0)]
    model.poll()
    idle(qtbot, model.parent())
    model.parent().session.restart()
    idle(qtbot, model.parent())
    scripts[ReadMemory] = [memory_read(allocated=100, reserved=120, taken_at_s=5.0)]
    model.poll()
    qtbot.waitUntil(lambda: len(model.history.curve()[0]) == 3)
    xs, ys = model.history.curve()
    assert xs == sorted(xs)
    assert [round(y) >> 20 for y in ys] == [100, 0, 100], "between the two engines is nothing"
    idle(qtbot, model.parent())


def test_without_a_sensor_reader_the_cards_are_those_the_engine_counts(
    scripts, studio, sensor_source, qtbot
):
    sensor_source._events.clear()
    model = MemoryModel(studio, studio)
    studio.start()
    idle(qtbot, studio)
    assert [choice.address for choice in real(model)] == ["cpu", "cuda:0", "cuda:1"]
    model.poll()
    qtbot.waitUntil(lambda: model.tank is not None)
    assert parts(model) == {"not_told": 338, "tensors": 100, "holes": 20, "free": 1538}
    idle(qtbot, studio)
