"""Runs at the same time: for show, each with its own end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceParameters, Showing
from gpu_studio.core.messages.run_messages import (
    MOST_AT_ONCE,
    RunAtOnce,
    RunFailed,
    RunFinished,
    RunsEnded,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.race.frame_file import read_frame
from gpu_studio.engine.benchmark import run as run_module
from gpu_studio.engine.benchmark.at_once import RunsAtOnce, StartLine
from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.answers import ask, only, run_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.message import Event


def run_of(run_id: str, **changes: Any) -> RunWorkload:
    """Return a race that takes a moment."""
    parameters: dict[str, Any] = {
        "workload": "learn",
        "size": 16,
        "race": RaceParameters(threads=1),
        "budget_s": 60.0,
        "calls": 4,
    }
    return run_request(run_id=run_id, **{**parameters, **changes})


def both(**changes: Any) -> RunAtOnce:
    return RunAtOnce(runs=(run_of("left", **changes), run_of("right", **changes)))


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher()
    yield dispatcher
    dispatcher.close()


def test_each_run_ends_and_the_request_after_them() -> None:
    events = ask(both())
    assert {one.run_id for one in only(RunFinished, events)} == {"left", "right"}
    assert isinstance(events[-1], RunsEnded)
    assert len(only(RunsEnded, events)) == 1


def test_every_result_says_that_it_is_for_show() -> None:
    results = only(RunFinished, ask(both()))
    assert all(one.race.at_once for one in results)
    assert all("for show" in one.doubts for one in results)


def test_each_run_has_its_own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    runs = tuple(run_of(str(count), race=RaceParameters(threads=count)) for count in (1, 2))
    found = {one.run_id: one.cpu_threads for one in only(RunFinished, ask(RunAtOnce(runs=runs)))}
    assert found == {"1": 1, "2": 2}


def test_each_run_has_its_own_frames(dispatcher: Dispatcher) -> None:
    events = ask(both(showing=Showing()), dispatcher)
    opened = {one.run_id: Path(one.path) for one in only(FramesOpened, events)}
    assert len(set(opened.values())) == 2
    for frame in only(FrameReady, events):
        assert read_frame(opened[frame.run_id], frame.number) is not None
    dispatcher.close()
    assert not any(path.exists() for path in opened.values())


def test_a_failure_of_one_leaves_the_other() -> None:
    request = RunAtOnce(runs=(run_of("left", dtype="float64"), run_of("right")))
    events = ask(request)
    assert [one.run_id for one in only(RunFailed, events)] == ["left"]
    assert [one.run_id for one in only(RunFinished, events)] == ["right"]
    assert isinstance(events[-1], RunsEnded)


def test_a_stop_ends_both() -> None:
    stop = threading.Event()
    events = []
    for event in Dispatcher().run(both(calls=1_000_000), stop):
        events.append(event)
        if isinstance(event, SamplesMeasured):
            stop.set()
    assert {one.run_id for one in only(RunStopped, events)} == {"left", "right"}
    assert isinstance(events[-1], RunsEnded)


def test_the_peaks_of_the_cpu_are_not_measured_beside_other_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are kept for later runs, which would look better than they are."""
    monkeypatch.setattr(run_module, "measure_cpu", lambda *_: pytest.fail("measured"))
    results = only(RunFinished, ask(both()))
    assert [one.share_of_ceiling for one in results] == [None, None]


@pytest.mark.parametrize(
    "runs",
    [
        (),
        (run_of("alone"),),
        (run_of("same"), run_of("same")),
        (run_of("left"), run_of("right", race=None)),
        tuple(run_of(str(number)) for number in range(MOST_AT_ONCE + 1)),
    ],
    ids=["none", "one", "same name", "no race", "too many"],
)
def test_what_cannot_run_at_once_is_refused(runs: tuple[RunWorkload, ...]) -> None:
    (failed,) = ask(RunAtOnce(runs=runs))
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is FailureKind.BAD_REQUEST


def events_of(make: Any) -> list[Event]:
    requests = [run_of("left"), run_of("right")]
    return list(RunsAtOnce(requests, make, threading.Event()).events())


def broken(run_id: str) -> RunFailed:
    return RunFailed(run_id=run_id, failure=Failure(FailureKind.CUDA_ERROR, "lost", fatal=True))


def test_an_end_of_the_engine_waits_for_the_other_run() -> None:
    is_broken = threading.Event()

    def make(request: RunWorkload, _line: StartLine) -> Iterator[Event]:
        if request.run_id == "left":
            yield broken("left")
            is_broken.set()
            return
        assert is_broken.wait(60)
        yield RunStopped(run_id="right")

    first, last = events_of(make)
    assert (first.run_id, last.run_id) == ("right", "left")
    assert last.failure.fatal


def test_of_two_ends_of_the_engine_only_the_last_one_ends_it() -> None:
    def make(request: RunWorkload, _line: StartLine) -> Iterator[Event]:
        yield broken(request.run_id)

    first, last = events_of(make)
    assert {first.run_id, last.run_id} == {"left", "right"}
    assert (first.failure.fatal, last.failure.fatal) == (False, True)


def test_the_timing_of_all_begins_when_the_last_one_is_ready() -> None:
    log: list[str] = []
    is_left_there = threading.Event()

    def make(request: RunWorkload, line: StartLine) -> Iterator[Event]:
        if request.run_id == "right":
            assert is_left_there.wait(60)
            log.append("right is ready")
        else:
            is_left_there.set()
        line.wait()
        log.append(f"{request.run_id} runs")
        yield RunStopped(run_id=request.run_id)

    events_of(make)
    assert log[0] == "right is ready"
    assert sorted(log[1:]) == ["left runs", "right runs"]


def test_a_run_that_is_over_before_its_timing_holds_up_no_one() -> None:
    def make(request: RunWorkload, line: StartLine) -> Iterator[Event]:
        if request.run_id == "left":
            line.wait()
        yield RunStopped(run_id=request.run_id)

    assert {one.run_id for one in events_of(make)[:2]} == {"left", "right"}
