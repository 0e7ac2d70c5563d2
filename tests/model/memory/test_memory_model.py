"""Whose memory is looked at, what the engine reads of it, and giving the cache back."""

from types import SimpleNamespace

import pytest

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import EmptyCache, ReadMemory
from gpu_studio.core.messages.placement_messages import UseDevice
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.memory.engine_memory import (
    WINDOW_S,
    EngineMemory,
    Mark,
    MemoryHistory,
    PcMemory,
)
from gpu_studio.model.memory.memory_model import MemoryModel, choice_title
from gpu_studio.model.memory.oom_experiment import OomState
from tests.driving.window import plain
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import (
    memory_read,
)
from tests.fakes.pc import gt_1030, gt_1030_card, reading, two_cards
from tests.fakes.scripted_engine import Pause
from tests.model.memory.looks import (
    EXPERIMENT,
    MIB,
    at_the_pause,
    idle,
    now,
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
    assert all(engine.is_closed for engine in created if engine.requests)


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


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "The card is lost.")), "is lost"),
        (EngineEnded(exit_code=-11), "did not answer"),
    ],
)
def test_empty_cache_that_fails_says_so(model, scripts, qtbot, answer, sentence):
    scripts[EmptyCache] = [answer]
    model.poll()
    idle(qtbot, model.parent())
    emitted = []
    model.memory_changed.connect(lambda: emitted.append(model.emptied.trouble))
    model.empty_cache()
    qtbot.waitUntil(lambda: any(sentence in text for text in emitted))
    assert not model.is_emptying
    idle(qtbot, model.parent())


@pytest.mark.parametrize(
    ("reserved", "releasable", "words"), [(100, 0, ""), (120, 20, "frees 20 MiB"), (120, 0, "")]
)
def test_what_emptying_frees(model, scripts, qtbot, reserved, releasable, words):
    scripts[ReadMemory] = [
        memory_read(allocated=100, reserved=reserved, releasable_bytes=releasable * MIB)
    ]
    model.poll()
    idle(qtbot, model.parent())
    assert plain(now(model).cache) == words
    assert model.can_empty_cache is (reserved > 100)


START = Mark(label="experiment", is_start=True)


def read_at(history, mib, at_s):
    history.add(memory_read(allocated=mib, reserved=128), at_s)


def test_an_experiment_keeps_its_width_while_nothing_happens_after_it():
    """It takes two seconds, then two minutes are read until the cache is emptied."""
    history = MemoryHistory()
    history.mark(START, 10.0)
    for second in range(3):
        read_at(history, second, 10.0 + second)
    for half in range(240):
        read_at(history, 2, 12.0 + half / 2)
    assert history.axis_s == 5.0
    history.mark(Mark(label="empty cache"), 132.0)
    read_at(history, 0, 132.0)
    xs, ys = history.curve()
    assert xs == [0.0, 1.0, 2.0, 4.0, 4.0]
    assert ys[-2:] == [2 * MIB, 0.0]
    assert history.curve("upper")[1][0] == 128 * MIB
    assert [(mark.label, mark.at_s) for mark in history.shown_marks] == [("empty cache", 4.0)]


def test_the_axis_begins_with_the_last_experiment_and_grows_with_it():
    history = MemoryHistory()
    for begun_s in (0.0, 100.0):
        history.mark(START, begun_s)
        for second in range(8):
            read_at(history, second, begun_s + second)
    xs, _ = history.curve()
    assert (xs[0], xs[-1]) == (0.0, 7.0)
    assert history.axis_s == 8.0
    for _ in ("a reading", "its segments"):
        history.mark(Mark(label="out of memory", is_failure=True), 107.0)
    assert [mark.at_s for mark in history.shown_marks] == [7.0]


def test_an_old_history_is_let_go():
    history = MemoryHistory()
    for tenth in range(0, 10_000, 5):
        read_at(history, tenth, tenth / 10)
        assert len(history.points) <= 4 * WINDOW_S + 1
    xs, _ = history.curve()
    assert xs[-1] == pytest.approx(WINDOW_S)


def test_what_the_driver_reported_the_engine_itself_counts_before_all_else(qapp):
    """Of the same moment, and to the byte; otherwise it is what was learned from the sensors."""
    card = gt_1030_card(torch_index=0)
    listed = GpuProcess(pid=7, name="python", memory_bytes=(512 + 90) * MIB)
    memory = EngineMemory(lambda: 100.0, lambda _address: card.identity, {})
    memory.pid = 7
    tanks = PcMemory(SimpleNamespace(processes=lambda _device: (listed,)), memory, memory)
    for engine_bytes, context_mib in ((None, 90), ((512 + 87) * MIB, 87)):
        read = memory_read(reserved=512, engine_bytes=engine_bytes)
        memory._receive(read)
        tanks.learn(card.identity, card, memory)
        sizes = {part.key: part.size_bytes for part in tanks.of(read, card, memory.pid).parts}
        assert sizes["context"] == context_mib * MIB
