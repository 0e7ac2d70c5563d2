from __future__ import annotations

import math

import msgspec
import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.pc.devices import GpuProcess
from gpu_studio.core.protocol import (
    DescribeEngine,
    EmptyCache,
    EngineEnded,
    ReadMemory,
    ReadSegments,
    RequestFailed,
    RunMemoryExperiment,
    RunWorkload,
    StageBegan,
    UseDevice,
)
from gpu_studio.model import memory_history as history_module
from gpu_studio.model.memory import LAB, MAIN, MemoryModel
from gpu_studio.model.memory_history import Mark, MemoryHistory
from gpu_studio.model.oom_experiment import (
    BUDGET_STEP_BYTES,
    EXPANDABLE,
    OomState,
    default_budget,
    largest_budget,
)
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.memory_answers import (
    cache_emptied,
    memory_read,
    no_context,
    oom_finished,
    segments_read,
)
from tests.fakes.pc import cpu_only, gt_1030, reading, two_cards
from tests.fakes.scripted_engine import Pause

MIB = 1 << 20
EXPERIMENT = RunMemoryExperiment(preset="gt1030", device="cuda:0", budget_bytes=1200 * MIB)
ON_MODEL = RunMemoryExperiment(preset="gt1030", device="model:1996")


def plain(text):
    return text.replace("\u202f", " ")


def parts(model):
    return {part.key: part.size_bytes // MIB for part in model.tank.parts}


def real(model):
    """The choices that are devices of the PC."""
    return [choice for choice in model.choices if not choice.is_modelled]


@pytest.fixture
def inventory():
    return gt_1030()


@pytest.fixture
def scripts(engines):
    engines.scripts |= {
        DescribeEngine: [described_with_cuda(device_count=2)],
        ReadMemory: lambda _engine, request: [
            memory_read(request.device, allocated=100, reserved=120)
        ],
    }
    return engines.scripts


@pytest.fixture
def model(scripts, ready_studio):
    return MemoryModel(ready_studio, ready_studio)


def idle(qtbot, studio):
    qtbot.waitUntil(lambda: studio.session.is_free)


# ── which device ─────────────────────────────────────────────────────────────────────────────


def test_the_first_usable_card_is_looked_at(model):
    assert [(c.title, c.address) for c in real(model)] == [
        ("This PC's RAM", "cpu"),
        ("cuda:0 GT 1030", "cuda:0"),
    ]
    assert model.chosen.address == "cuda:0"


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_modelled_gt_1030_is_offered(scripts, studio, qtbot):
    scripts[DescribeEngine] = [described()]
    model = MemoryModel(studio, studio)
    assert model.chosen.address == "cpu", "nobody knows yet"
    studio.start()
    qtbot.waitUntil(lambda: model.chosen.is_modelled)
    assert model.chosen.address == "model:1996"
    assert model.chosen.title == "Modelled: GT 1030, 2 GiB"
    assert not model.has_usable_card
    idle(qtbot, studio)
    model.choose("cpu")
    assert not model.chosen.is_card


def test_a_card_that_pytorch_cannot_use_has_no_address_but_a_reason(engines, ready_studio):
    model = MemoryModel(ready_studio, ready_studio)
    card = model.choices[1]
    assert (card.title, card.address) == ("GT 1030", None)
    assert card.reason == "This PyTorch was built without CUDA."
    assert model.chosen.is_modelled
    model.choose(card.identity)
    model.poll()
    assert not any(isinstance(request, ReadMemory) for request in engines.requests)


def test_before_the_engine_is_there_the_sensors_tell(scripts, studio, sensor_source, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    model = MemoryModel(studio, studio)
    studio.start()
    sensor_source.send(reading(gt_1030()))
    qtbot.waitUntil(lambda: studio.sensors.newest is not None)
    model.choose(model.choices[1].identity)
    assert model.choices[1].reason == "The engine is starting."
    assert parts(model) == {"others": 348, "free": 1700}


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_card_in_use_is_followed_until_one_is_chosen_by_hand(model, engines, qtbot, scripts):
    from gpu_studio.core.protocol import DeviceUsed

    scripts[UseDevice] = lambda _engine, request: [
        DeviceUsed(cuda_index=request.cuda_index, name="card")
    ]
    session = model.parent().session
    session.submit(UseDevice(cuda_index=1))
    qtbot.waitUntil(lambda: model.chosen.address == "cuda:1")
    model.choose("cpu")
    session.submit(UseDevice(cuda_index=0))
    idle(qtbot, model.parent())
    assert model.chosen.address == "cpu"


@pytest.mark.parametrize("inventory", [two_cards()])
def test_readings_stay_with_their_card_when_numbers_change(model, scripts, qtbot):
    """In an engine that sees only the second card, that card is cuda:0."""
    studio = model.parent()
    model.choose(model.choices[2].identity)
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
    assert len(model.history.points) == 2
    model.choose(model.choices[1].identity)
    assert model.chosen.reason == "CUDA_VISIBLE_DEVICES hides this card from PyTorch."
    assert model.history.points == []


# ── readings ─────────────────────────────────────────────────────────────────────────────────


def test_a_poll_reads_and_the_tank_sums_to_the_card(model, qtbot):
    model.poll()
    idle(qtbot, model.parent())
    assert parts(model) == {
        "driver": 52, "not_told": 338, "tensors": 100, "holes": 20, "free": 1538,
    }  # fmt: skip
    assert sum(parts(model).values()) == 2048


def test_nothing_is_asked_while_the_engine_works(model, engines, scripts, qtbot):
    scripts[RunWorkload] = [Pause()]
    session = model.parent().session
    request = RunWorkload(run_id="r", workload="w", device="cpu", size=1, dtype="float32")
    session.submit(request)
    qtbot.waitUntil(engines.latest.paused.is_set)
    model.poll()
    session.stop(request)
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


def test_without_a_context_there_are_no_numbers_of_pytorch(model, scripts, qtbot):
    scripts[ReadMemory] = [no_context()]
    model.poll()
    idle(qtbot, model.parent())
    assert not model.has_allocator_numbers
    assert model.history.points == []
    assert model.cache_sentence == ""
    assert not model.can_empty_cache


def test_an_engine_that_died_holds_nothing_any_more(model, scripts, qtbot):
    model.poll()
    idle(qtbot, model.parent())
    scripts[ReadMemory] = [EngineEnded(exit_code=-9)]
    model.poll()
    qtbot.waitUntil(lambda: any(mark.is_failure for mark in model.history.marks))
    assert model.latest is None
    assert len(model.history.points) == 1, "what was read stays"
    idle(qtbot, model.parent())


def test_a_fresh_engine_goes_on_where_the_old_ones_clock_stopped(model, scripts, qtbot):
    scripts[ReadMemory] = [memory_read(taken_at_s=1000.0)]
    model.poll()
    idle(qtbot, model.parent())
    model.parent().session.restart()
    idle(qtbot, model.parent())
    scripts[ReadMemory] = [memory_read(taken_at_s=5.0)]
    model.poll()
    qtbot.waitUntil(lambda: len(model.history.points) == 2)
    first, second = (point.at_s for point in model.history.points)
    assert first < second <= model.now_s
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


# ── empty_cache ──────────────────────────────────────────────────────────────────────────────


def test_empty_cache_says_before_what_it_will_free_and_then_what_it_freed(model, scripts, qtbot):
    before = memory_read(allocated=100, reserved=336, releasable_bytes=128 * MIB)
    scripts[ReadMemory] = [before]
    scripts[EmptyCache] = [cache_emptied(before, 128)]
    model.poll()
    idle(qtbot, model.parent())
    assert plain(model.cache_sentence) == (
        "empty_cache can free 128 MiB of the 236 MiB that are reserved and empty; the other "
        "108 MiB share segments with living tensors."
    )
    model.empty_cache()
    assert not model.can_empty_cache, "one at a time"
    idle(qtbot, model.parent())
    assert plain(model.cache_sentence).startswith("empty_cache freed 128 MiB, as it said.")
    assert parts(model)["holes"] == 108


def test_empty_cache_admits_that_it_freed_something_else(model, scripts, qtbot):
    before = memory_read(allocated=0, reserved=20)
    scripts[EmptyCache] = [cache_emptied(before, 18, predicted_bytes=20 * MIB)]
    model.poll()
    idle(qtbot, model.parent())
    model.empty_cache()
    idle(qtbot, model.parent())
    assert "freed 18 MiB, 20 MiB were expected" in plain(model.cache_sentence)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "The card is lost.")), "is lost"),
        (EngineEnded(exit_code=-11), "did not answer"),
    ],
)
def test_empty_cache_that_fails_says_so(model, scripts, qtbot, answer, said):
    scripts[EmptyCache] = [answer]
    model.poll()
    idle(qtbot, model.parent())
    told = []
    model.emptying.changed.connect(lambda: told.append(model.emptying.result))
    model.empty_cache()
    qtbot.waitUntil(lambda: any(said in text for text in told))
    assert not model.emptying.is_going_on
    idle(qtbot, model.parent())


@pytest.mark.parametrize(
    ("allocated", "reserved", "releasable", "said"),
    [
        (100, 100, 0, "nothing to free"),
        (100, 120, 20, "can free all 20 MiB"),
        (100, 120, 0, "can free 0 bytes of the 20 MiB"),
    ],
)
def test_the_prediction(model, scripts, qtbot, allocated, reserved, releasable, said):
    scripts[ReadMemory] = [
        memory_read(allocated=allocated, reserved=reserved, releasable_bytes=releasable * MIB)
    ]
    model.poll()
    idle(qtbot, model.parent())
    assert said in plain(model.cache_sentence)


# ── the lab ──────────────────────────────────────────────────────────────────────────────────


def breaking(*ending):
    yield memory_read(mark="start")
    yield memory_read(allocated=1024, reserved=1024, mark="oom", taken_at_s=10.5)
    yield from ending


@pytest.fixture
def broken(scripts):
    """An experiment that breaks, holds, and ends."""
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(
        segments_read(memory_read(allocated=1024, reserved=1024, mark="oom", taken_at_s=10.5)),
        Pause(),
        memory_read(reserved=1024, mark="freed", taken_at_s=10.6),
        oom_finished(),
    )
    return scripts


def at_the_pause(qtbot, engines):
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())


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
    assert "1 GiB allocated" in plain(model.experiment.outcome.sentence)
    lab.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.experiment.outcome.headline == "Over the budget."
    assert lab.requests[-1] == EXPERIMENT
    qtbot.waitUntil(lambda: "close" in lab.calls)
    assert "close" not in main.calls
    assert studio.lab.real is None
    assert [mark.label for mark in model.history.marks] == ["experiment", "out of memory", "freed"]


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


def test_of_an_engine_that_ended_too_soon_the_error_tells_the_context(
    model, scripts, engines, qtbot
):
    """The driver's list of processes comes once a second: a second may be all there is."""
    error = (
        "CUDA out of memory. Tried to allocate 256.00 MiB. Including non-PyTorch memory, this "
        "process has 1114.00 MiB memory in use."
    )
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(oom_finished(error_text=error))
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.is_held)
    assert parts(model)["context"] == 90
    assert model.tank == model.tank_reached(model.experiment.results[0])


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


def test_the_same_is_tried_with_expandable_segments_in_a_fresh_engine(
    model, broken, engines, qtbot
):
    assert not model.experiment.can_compare
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    first = engines.latest
    assert not first.environment.allocator_configuration
    first.go()
    qtbot.waitUntil(lambda: model.experiment.can_compare)
    broken[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"), memory_read(allocated=1280, reserved=1280),
        memory_read(mark="end"), memory_read(mark="freed"),
        oom_finished("fits", tensors=5, conf=EXPANDABLE),
    ]  # fmt: skip
    model.experiment.compare()
    qtbot.waitUntil(lambda: len(model.experiment.results) == 2)
    second = engines.latest
    assert second is not first
    assert second.environment.allocator_configuration == EXPANDABLE
    assert second.requests[-1] == EXPERIMENT
    assert [result.conf for result in model.experiment.results] == ["", EXPANDABLE]
    outcomes = [result.outcome.headline for result in model.experiment.results]
    assert outcomes == ["Over the budget.", "Everything fits."]
    assert model.experiment.results[1].reached.allocated_bytes == 1280 * MIB
    assert not model.experiment.can_compare
    model.experiment.run(EXPERIMENT)
    assert model.experiment.results == ()
    model.experiment.stop()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)


def test_a_modelled_card_has_an_engine_that_stays_and_holds_for_a_while(
    scripts, broken, engines, ready_studio, qtbot
):
    model = MemoryModel(ready_studio, ready_studio)
    model.choose("model:1996")

    def has_been_read():
        model.poll()
        return model.latest is not None

    qtbot.waitUntil(has_been_read)
    modelled = engines.latest
    qtbot.waitUntil(lambda: ready_studio.lab.modelled.is_free)
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read("model:1996", allocated=1024, reserved=1024, mark="oom"),
        memory_read("model:1996", reserved=1024, mark="freed"),
        oom_finished(device="model:1996"),
    ]
    model.experiment.run(ON_MODEL)
    qtbot.waitUntil(lambda: model.is_held)
    assert parts(model)["tensors"] == 1024
    model._release.setInterval(1)  # its time is over
    qtbot.waitUntil(lambda: not model.is_held)
    assert parts(model)["tensors"] == 0
    assert ready_studio.lab.modelled is not None
    assert modelled is not engines.latest, "each experiment begins in a fresh one"
    assert "close" not in engines.latest.calls
    assert model.engines == [LAB]


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


def test_options_of_the_users_own_environment_are_told(model, scripts, qtbot):
    scripts[RunMemoryExperiment] = [oom_finished(conf="max_split_size_mb:64")]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.experiment.results[0].conf == "max_split_size_mb:64"


def test_the_lab_ends_with_the_program(qtbot, model, broken, engines):
    model.choose("model:1996")
    model.poll()
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    made = list(engines.made)
    model.parent().close()
    assert all("close" in engine.calls for engine in made if engine.requests)


def test_a_card_of_ones_own_size_can_be_modelled(model):
    model.choose_own(3000)
    assert model.chosen.address == "model:3000"
    assert model.sizes_bytes[0] == 3000 * MIB
    with pytest.raises(StudioError):
        model.choose_own(1)


def test_segments_are_read_where_they_are_looked_at(model, scripts, engines, qtbot):
    scripts[ReadSegments] = lambda _engine, request: [
        segments_read(memory_read(request.device, allocated=100, reserved=120))
    ]
    model.poll(with_segments=True)
    qtbot.waitUntil(lambda: model.segments is not None)
    assert engines.requests[-1] == ReadSegments(device="cuda:0")
    assert model.latest.allocated_bytes == 100 * MIB, "the counters come with them"
    assert model.segments.largest_block_bytes == 5 * MIB


def test_the_default_budget_is_three_quarters_of_what_is_free_and_never_the_whole_card():
    assert default_budget(1996 * MIB, 1600 * MIB) == 1200 * MIB
    assert default_budget(1996 * MIB, 0) == BUDGET_STEP_BYTES
    for total in (256 * MIB, 1996 * MIB, 12 << 30, 139 << 30):
        assert 0 < largest_budget(total) <= total - 64 * MIB
        assert default_budget(total, total) <= largest_budget(total)


def test_what_was_reached_is_the_failure_even_where_more_was_taken_before(
    model, scripts, engines, qtbot
):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1200, reserved=1200),
        memory_read(allocated=800, reserved=1200, mark="oom", taken_at_s=10.2),
        segments_read(memory_read(allocated=800, reserved=1200, mark="oom", taken_at_s=10.2)),
        memory_read(allocated=1100, reserved=1200, taken_at_s=10.3),
        memory_read(allocated=1000, reserved=1200, mark="oom", taken_at_s=10.4),
        segments_read(memory_read(allocated=1000, reserved=1200, mark="oom", taken_at_s=10.4)),
        oom_finished(),
    ]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    result = model.experiment.results[0]
    assert result.reached.allocated_bytes == 800 * MIB
    assert result.segments.read == result.reached


def test_what_was_reached_without_a_failure_is_the_end(model, scripts, engines, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1200, reserved=1200),
        memory_read(allocated=460, reserved=1200, mark="held", taken_at_s=10.2),
        segments_read(memory_read(allocated=460, reserved=1200, mark="held", taken_at_s=10.2)),
        memory_read(allocated=0, reserved=1200, mark="freed", taken_at_s=10.3),
        oom_finished("fits"),
    ]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    result = model.experiment.results[0]
    assert result.reached.allocated_bytes == 460 * MIB
    assert result.segments.read == result.reached


def test_a_running_experiment_is_stopped(model, scripts, engines, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(
        Pause(), oom_finished("stopped", tensors=4)
    )
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    model.experiment.stop()
    assert model.experiment.state is OomState.STOPPING
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.experiment.outcome.headline == "Stopped."
    assert "4 tensors" in model.experiment.outcome.sentence


@pytest.mark.usefixtures("impatient")
def test_an_experiment_that_hears_no_stop_ends_with_its_engine(model, scripts, engines, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(Pause(deaf=True))
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.RUNNING)
    model.experiment.stop()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert "in the middle of a call" in model.experiment.outcome.sentence
    assert model.parent().session.is_free, "the program's own engine was not touched"


def test_an_experiment_whose_engine_only_starts_is_taken_back(model, scripts, engines, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    model.experiment.run(EXPERIMENT)
    assert model.experiment.state is OomState.WAITING
    assert model.experiment.outcome.headline == "Starting."
    at_the_pause(qtbot, engines)
    model.experiment.stop()
    assert model.experiment.state is OomState.IDLE
    assert model.experiment.outcome.sentence == "It had not begun."


def test_a_stage_says_what_happens_now_and_is_marked(model, scripts, engines, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        StageBegan(stage="training", sentence="The batch is doubled."),
        memory_read(allocated=64, reserved=64, taken_at_s=10.2),
        Pause(),
        oom_finished(),
    ]
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    qtbot.waitUntil(lambda: "64 MiB allocated" in plain(model.experiment.outcome.sentence))
    assert model.experiment.outcome.sentence.startswith("The batch is doubled. ")
    assert [mark.label for mark in model.history.marks] == ["experiment", "training"]
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)


def test_an_engine_that_dies_in_the_middle_keeps_the_readings(model, scripts, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(EngineEnded(exit_code=-9))
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    outcome = model.experiment.outcome
    assert outcome.headline == "The engine died."
    assert "run out of memory" in outcome.sentence
    assert outcome.tone == "failure"
    assert len(model.history.points) == 2
    assert model.history.marks[-1].label == "engine died"
    assert model.parent().session.description is not None, "the other one lives"


@pytest.mark.parametrize("kind", [FailureKind.NO_CUDA, FailureKind.NO_SUCH_DEVICE])
def test_a_refused_experiment_says_why_and_what_next(model, scripts, qtbot, kind):
    scripts[RunMemoryExperiment] = [
        RequestFailed(failure=Failure(kind, "There is no cuda:0 here."))
    ]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.experiment.outcome.sentence == "There is no cuda:0 here."
    assert model.experiment.outcome.next_step


# ── history ──────────────────────────────────────────────────────────────────────────────────


def test_a_stretch_in_which_nobody_looked_is_a_gap():
    history = MemoryHistory()
    for at_s in (0.0, 0.5, 60.0, 60.5):
        history.add(memory_read(allocated=64, reserved=128), at_s)
    xs, ys = history.curve(0.0)
    assert xs == [0.0, 0.5, 0.5, 60.0, 60.5]
    assert [math.isnan(y) for y in ys] == [False, False, True, False, False]
    assert history.curve(0.0, "upper")[1][0] == 128 * MIB


def test_a_curve_begins_with_what_still_held():
    history = MemoryHistory()
    for second in range(10):
        history.add(memory_read(allocated=second, reserved=128), float(second))
    assert history.curve(7.5)[0] == [7.0, 8.0, 9.0]


def test_the_table_has_readings_and_marks_newest_first():
    history = MemoryHistory()
    history.add(memory_read(allocated=64, reserved=128), 1.0)
    history.mark(Mark(at_s=1.5, label="run"))
    history.add(memory_read("cpu"), 2.0)
    assert [row[0] for row in history.rows()] == ["2.0", "1.5", "1.0"]
    assert plain(history.rows()[2][1]) == "64 MiB"
    assert history.rows()[0][2] == "n/a"
    assert history.rows()[1][4] == "run"


def test_active_and_requested_are_kept_as_well():
    history = MemoryHistory()
    history.add(memory_read(allocated=1, reserved=2, active_bytes=30, requested_bytes=20), 0.0)
    assert history.curve(0.0, "active")[1] == [30]
    assert history.curve(0.0, "requested")[1] == [20]


def test_an_old_history_is_let_go(monkeypatch):
    monkeypatch.setattr(history_module, "_MOST_POINTS", 10)
    history = MemoryHistory()
    for second in range(95):
        history.add(memory_read(allocated=second, reserved=128), float(second))
    assert 10 <= len(history.points) <= 20
    assert history.points[-1].at_s == 94.0
    assert history.since(90.5)[0].at_s == 90.0


def test_a_loop_that_frees_at_every_step_is_one_mark_a_second():
    history = MemoryHistory()
    for tenth in range(25):
        history.mark(Mark(at_s=tenth / 10, label="freed"))
    assert [mark.at_s for mark in history.marks] == [0.0, 1.0, 2.0]
    history.mark(Mark(at_s=2.1, label="out of memory", is_failure=True))
    assert history.marks[-1].is_failure
