"""What an experiment came to."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment, StageBegan
from gpu_studio.core.notice import Tone
from gpu_studio.model.memory.oom_experiment import (
    OomState,
)
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import (
    memory_read,
    oom_finished,
    segments_read,
)
from tests.fakes.scripted_engine import Pause
from tests.model.memory.looks import (
    EXPERIMENT,
    MIB,
    at_the_pause,
    breaking,
    plain,
)


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
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    outcome = model.experiment.outcome
    assert outcome.sentence == "PyTorch ended."
    assert "ran out of memory" in outcome.detail
    assert outcome.tone == Tone.FAILURE
    assert model.history.curve()[1] == [0.0, 1024 * MIB, 0.0], "it is free again"
    assert model.history.marks[-1].is_failure
    assert model.parent().session.description is not None, "the other one lives"


@pytest.mark.parametrize("kind", [FailureKind.NO_CUDA, FailureKind.NO_SUCH_DEVICE])
def test_a_refused_experiment_says_why_and_what_next(model, scripts, qtbot, kind):
    scripts[RunMemoryExperiment] = [
        RequestFailed(failure=Failure(kind, "There is no cuda:0 here."))
    ]
    model.experiment.run(EXPERIMENT)
    qtbot.waitUntil(lambda: model.experiment.state is OomState.IDLE)
    assert model.experiment.outcome.detail == "There is no cuda:0 here."
    assert model.experiment.outcome.next_step


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
