import pytest

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunPhaseChanged,
    RunStopped,
    RunWorkload,
)
from gpu_studio.core.statistics import interval_of_rounds
from tests.fakes.run_answers import batch, finished, run_events, samples_of, started

REQUEST = RunWorkload(
    run_id="1", workload="elementwise", device="cpu", size=512, dtype="float32", budget_s=2.0
)


def begun() -> Run:
    run = Run(REQUEST)
    run.apply(started(REQUEST, recording="A GT 1030"))
    return run


def timing() -> Run:
    run = begun()
    run.apply(batch(REQUEST, (1.0, 2.0, 3.0), spent_s=0.5))
    return run


def test_each_sample_has_the_time_at_which_it_ended() -> None:
    run = begun()
    run.apply(batch(REQUEST, (0.1, 0.2), 0.3, calls=1, ended_s=1.0, round_number=1))
    run.apply(batch(REQUEST, (0.1,), 0.4, calls=1, ended_s=3.0, round_number=2))
    assert run.is_clocked
    assert run.series.times.tolist() == pytest.approx([0.8, 1.0, 3.0])
    assert [(one.begin_s, one.end_s) for one in run.batches] == [
        (pytest.approx(0.7), 1.0), (pytest.approx(2.9), 3.0),
    ]  # fmt: skip


def test_in_an_older_file_a_sample_has_the_time_of_the_timed_part() -> None:
    run = begun()
    run.apply(batch(REQUEST, (0.1, 0.2), 0.3, calls=1))
    run.apply(batch(REQUEST, (9.0,), 0.4, calls=1))
    assert not run.is_clocked
    run.apply(batch(REQUEST, (0.1,), 0.2, calls=1))
    assert run.series.times.tolist() == pytest.approx([0.1, 0.3, 0.4, 0.4]), "it never goes back"


def test_a_run_follows_its_events_to_its_result() -> None:
    run = Run(REQUEST)
    assert (run.state, run.progress, run.summary) == (RunState.WAITING, 0.0, None)
    states = []
    for event in run_events(REQUEST):
        assert run.apply(event)
        states.append(run.state)
    assert states[0] is RunState.PREPARING
    assert states[3:] == [RunState.TIMING] * 3 + [RunState.FINISHED]
    assert run.series.values.tolist() == list(samples_of(REQUEST))
    assert run.result is not None
    assert run.summary is not None
    assert run.summary.median_s == run.result.median_s
    assert run.interval_s == run.result.ci95_s
    assert run.progress == 1.0
    assert run.expected_call_s == pytest.approx(512**2 * 1e-9)


def test_the_interval_is_the_results_and_none_while_samples_come() -> None:
    run = timing()
    assert run.interval_s is None
    # Neighbours drift together: the order of the samples counts, which a summary does not see.
    drifting = [1.0 + step // 100 for step in range(1000)]
    run.apply(batch(REQUEST, tuple(drifting), spent_s=1.0, calls=1))
    assert run.interval_s is None
    run.apply(RunStopped(run_id="1"))
    assert run.interval_s == interval_of_rounds([1.0, 2.0, 3.0, *drifting])
    done = begun()
    done.apply(batch(REQUEST, (1.0, 2.0, 3.0), spent_s=0.5))
    done.apply(finished(REQUEST, samples_of(REQUEST), ci95_s=(1.25, 2.75)))
    assert done.interval_s == (1.25, 2.75)


@pytest.mark.parametrize(
    ("ending", "state", "reason"),
    [
        (RunStopped(run_id="1", samples=3), RunState.STOPPED, None),
        (EngineEnded(exit_code=None, stopped=True), RunState.STOPPED, None),
        (EngineEnded(exit_code=-11), RunState.FAILED, "crashed (signal 11)"),
        (
            RunFailed(run_id="1", failure=Failure(FailureKind.OUT_OF_MEMORY, "Too much.")),
            RunState.FAILED,
            "Too much.",
        ),
        (
            RequestFailed(failure=Failure(FailureKind.NOT_RECORDED, "Not there.")),
            RunState.FAILED,
            "Not there.",
        ),
    ],
)
def test_every_end_keeps_the_samples(ending: Event, state: RunState, reason: str | None) -> None:
    run = timing()
    assert run.apply(ending)
    assert run.state is state
    assert run.state.is_over
    assert run.progress == 1.0
    assert len(run.series) == 3
    assert run.result is None
    if reason is None:
        assert run.failure is None
    else:
        assert run.failure is not None
        assert reason in run.failure.message


def test_nothing_comes_after_the_end() -> None:
    run = timing()
    run.apply(RunStopped(run_id="1"))
    assert not run.apply(batch(REQUEST, (9.0,), spent_s=1.0))
    assert not run.apply(finished(REQUEST, (9.0,)))
    assert (len(run.series), run.state) == (3, RunState.STOPPED)


def test_events_of_others_are_not_taken() -> None:
    run = begun()
    assert not run.apply(RunPhaseChanged(run_id="2", phase="timing"))
    assert not run.apply(MemoryRead(device="cuda:0", taken_at_s=0.0))
    assert run.state is RunState.PREPARING
    assert run.recording == "A GT 1030"
