"""What an experiment came to, and its engine: it stays until the card is needed."""

import msgspec
import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    EmptyCache,
    ReadMemory,
    RunMemoryExperiment,
    StageBegan,
)
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.oom_experiment import OomState
from tests.driving.window import plain
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import (
    cache_emptied,
    memory_read,
    oom_finished,
    segments_read,
)
from tests.fakes.pc import gt_1030, reading
from tests.fakes.scripted_engine import Pause
from tests.model.memory.looks import (
    EXPERIMENT,
    MIB,
    at_the_pause,
    breaking,
    idle,
    now,
    parts,
)


def at(allocated, mark, taken_at_s):
    read = memory_read(allocated=allocated, reserved=1200, mark=mark, taken_at_s=taken_at_s)
    return read, segments_read(read)


@pytest.mark.parametrize(
    ("answers", "reached_mib"),
    [
        ([*at(800, "oom", 10.2), memory_read(allocated=1100, reserved=1200, taken_at_s=10.3),
          *at(1000, "oom", 10.4), oom_finished()], 800),
        ([*at(460, "held", 10.2), at(0, "freed", 10.3)[0], oom_finished("fits")], 460),
    ],
    ids=["the first failure, even where more was taken", "without one, the end"],
)  # fmt: skip
def test_what_was_reached(model, scripts, engines, qtbot, answers, reached_mib):
    scripts[RunMemoryExperiment] = [memory_read(allocated=1200, reserved=1200), *answers]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    result = model.experiment.results[0]
    assert result.reached.allocated_bytes == reached_mib * MIB
    assert result.segments.read == result.reached


@pytest.mark.usefixtures("impatient")
def test_an_experiment_that_hears_no_stop_ends_with_its_engine(model, scripts, engines, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(Pause(deaf=True))
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.RUNNING)
    model.experiment.stop()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert "in the middle of a call" in model.experiment.outcome.detail
    assert model.parent().session.is_free, "the program's own engine was not touched"


def test_an_experiment_whose_engine_only_starts_is_taken_back(model, scripts, engines, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    model.experiment.run(EXPERIMENT)
    assert model.experiment.state is OomState.WAITING
    assert model.experiment.outcome.sentence == "Starting."
    at_the_pause(qtbot, engines)
    model.experiment.stop()
    assert model.experiment.state is OomState.IDLE
    assert "not started" in model.experiment.outcome.detail


def test_an_engine_that_dies_in_the_middle_keeps_the_readings(model, scripts, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: breaking(EngineEnded(exit_code=-9))
    model.experiment.keeps_engine = True
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    outcome = model.experiment.outcome
    assert outcome.sentence == "PyTorch ended."
    assert "ran out of memory" in outcome.detail
    assert outcome.tone == Tone.FAILURE
    assert model.history.curve()[1] == [0.0, 1024 * MIB, 0.0], "it is free again"
    assert model.history.marks[-1].is_failure
    assert model.parent().session.description is not None, "the other one lives"
    assert model.parent().lab.state is EngineState.ABSENT


def test_a_card_without_memory_for_an_experiment_is_no_result_of_it(model, scripts, qtbot):
    scripts[RunMemoryExperiment] = [
        RequestFailed(failure=Failure(FailureKind.OUT_OF_MEMORY, "Tried to allocate 256 MiB."))
    ]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    outcome = model.experiment.outcome
    assert "too little memory" in outcome.detail
    assert "Tried to allocate 256 MiB." in outcome.detail
    assert "Close the programs" in outcome.next_step


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
    qtbot.waitUntil(lambda: "64 MiB allocated" in plain(model.experiment.outcome.detail))
    assert model.experiment.outcome.detail.startswith("The batch is doubled. ")
    assert [mark.label for mark in model.history.shown_marks] == ["training"]
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)


@pytest.fixture
def page(model):
    """The page Now, which is seen."""
    page = now(model)
    page.see(is_seen=True)
    yield page
    page.see(is_seen=False)


def run_to_the_end(model, engines, qtbot):
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)


def test_after_an_experiment_the_cache_of_its_own_engine_is_emptied(
    model, page, broken, engines, qtbot
):
    """Fill, fail, free, empty: what the experiment reserved is there until it is given back."""
    main = engines.latest
    assert len(engines.made) == 1, "none is made before it is needed"
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    lab = engines.latest
    assert lab is not main
    qtbot.waitUntil(lambda: parts(model).get("tensors") == 1024)
    assert model.parent().session.is_free, "the program's own engine goes on"
    broken[ReadMemory] = [memory_read(reserved=1024, releasable_bytes=1024 * MIB)]
    lab.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.is_of_experiment
    assert (parts(model)["tensors"], parts(model)["holes"]) == (0, 1024), "the tank is now"
    model.poll()
    qtbot.waitUntil(lambda: plain(page.cache) == "frees 1 GiB")
    before = memory_read(reserved=1024, releasable_bytes=1024 * MIB)
    broken[EmptyCache] = [cache_emptied(before, 1024)]
    model.empty_cache()
    qtbot.waitUntil(lambda: plain(page.cache) == "freed 1 GiB")
    assert lab.requests[-1] == EmptyCache(device="cuda:0")
    assert not model.can_empty_cache
    assert not any(isinstance(request, EmptyCache) for request in main.requests)


@pytest.mark.parametrize("work", ["left", "other"])
def test_it_ends_when_the_page_is_left_or_other_work_needs_the_card(
    model, page, broken, engines, qtbot, work
):
    studio = model.parent()
    run_to_the_end(model, engines, qtbot)
    lab = engines.latest
    broken[ReadMemory] = [memory_read()]  # the program's own engine has nothing there
    model.poll()
    idle(qtbot, studio)
    assert studio.lab.state is not EngineState.ABSENT, "a reading is no work"
    if work == "left":
        page.see(is_seen=False)
    else:
        request = RunWorkload(run_id="r", workload="w", device="cpu", size=1, dtype="float32")
        broken[RunWorkload] = [Pause()]
        reply = studio.session.submit(request)
        qtbot.waitUntil(engines.made[0].paused.is_set)
        reply.stop()
    assert studio.lab.state is EngineState.ABSENT
    qtbot.waitUntil(lambda: lab.is_closed)
    assert model.history.curve("upper")[1][-1] == 0
    assert not model.is_of_experiment
    idle(qtbot, studio)


def test_an_experiment_that_is_left_ends_with_its_engine(model, page, broken, engines, qtbot):
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    page.see(is_seen=False)
    assert model.experiment.state is not OomState.IDLE, "it goes on"
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.parent().lab.state is EngineState.ABSENT


def test_the_other_engine_is_named_as_such_in_the_tank(
    model, broken, scripts, engines, sensor_source, qtbot
):
    """The program's engine holds 120 MiB and a context; to the lab's it is no stranger."""
    model.experiment.keeps_engine = True
    scripts[DescribeEngine] = lambda engine, _request: [
        described_with_cuda(pid=100 + engines.made.index(engine))
    ]
    model.parent().session.restart()
    idle(qtbot, model.parent())
    main_pid = model.parent().session.description.pid
    model.experiment.run(EXPERIMENT)
    at_the_pause(qtbot, engines)
    lab_pid = 100 + len(engines.made) - 1
    processes = (
        GpuProcess(pid=lab_pid, name="python", memory_bytes=(1024 + 90) * MIB),
        GpuProcess(pid=main_pid, name="python", memory_bytes=150 * MIB),
        GpuProcess(pid=9, name="Xorg", memory_bytes=60 * MIB),
    )
    taken = reading(gt_1030())
    cards = tuple(msgspec.structs.replace(card, processes=processes) for card in taken.cards)
    model.follow_sensors(is_seen=True)
    sensor_source.send(msgspec.structs.replace(taken, cards=cards))
    qtbot.waitUntil(lambda: "others" in parts(model))
    assert "context" not in parts(model), "while memory is taken, the two are of other moments"
    engines.latest.go()
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE and model.session.is_free)
    sensor_source.send(msgspec.structs.replace(taken, cards=cards))
    qtbot.waitUntil(lambda: "context" in parts(model))
    assert parts(model) == {
        "driver": 52, "others": 60, "not_told": 38, "other_engine": 150, "context": 90,
        "tensors": 0, "holes": 1024, "free": 634,
    }  # fmt: skip
    other = next(part for part in model.tank.parts if part.key == "other_engine")
    assert other.label == "GPU Studio"
