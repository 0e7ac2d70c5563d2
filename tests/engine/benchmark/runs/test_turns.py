"""Runs in turns: each is alone while it is timed, and has its own end."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceParameters, Showing
from gpu_studio.core.messages.run_messages import (
    MOST_IN_TURNS,
    RunFailed,
    RunFinished,
    RunInTurns,
    RunsEnded,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.race.frame_file import read_frame
from gpu_studio.engine.benchmark import race_timing
from gpu_studio.engine.benchmark import run as run_module
from gpu_studio.engine.benchmark.finish_line import FinishLine
from gpu_studio.engine.benchmark.turns import in_turns
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
        "budget_s": 0.2,
        "calls": 4,
    }
    return run_request(run_id=run_id, **{**parameters, **changes})


class Meter:
    """A device whose power is read."""

    def __init__(self, powers_w: list[float]) -> None:
        self._waiting, self._read = list(powers_w), []

    @property
    def power_w(self) -> float | None:
        return fmean(self._read) if self._read else None

    def poll_power(self) -> None:
        self._read += self._waiting[:1]
        del self._waiting[:1]


def both(**changes: Any) -> RunInTurns:
    return RunInTurns(runs=(run_of("left", **changes), run_of("right", **changes)))


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


def test_results_of_one_request_say_that_they_took_turns() -> None:
    results = only(RunFinished, ask(both()))
    assert len({one.turns for one in results}) == 1
    assert results[0].turns
    (alone,) = only(RunFinished, ask(run_of("alone")))
    assert alone.turns == ""


def test_the_rounds_of_benchmarks_alternate() -> None:
    runs = tuple(run_request(run_id=name, budget_s=0.24) for name in ("left", "right"))
    events = ask(RunInTurns(runs=runs))
    lines = [one.run_id for one in only(SamplesMeasured, events)]
    results = only(RunFinished, events)
    assert all(len(one.rounds_s) >= 2 for one in results)
    # A B B A A B …: two turns of one run follow each other, and their lines are one group.
    assert len([name for name, _ in itertools.groupby(lines)]) >= 3
    assert lines.count("left") >= 2


def test_the_slices_of_a_race_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_timing, "_SLICE_S", 0.0)
    monkeypatch.setattr(run_module, "choose_calls", lambda *_: 1)
    events = ask(both(calls=4))
    names = [one.run_id for one in only(SamplesMeasured, events)]
    assert sorted(names) == ["left"] * 4 + ["right"] * 4
    assert [sorted(names[at : at + 2]) for at in range(0, 8, 2)] == [["left", "right"]] * 4
    for result in only(RunFinished, events):
        assert len(result.rounds_s) == names.count(result.run_id)


def test_the_steps_that_warm_a_device_again_move_no_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(race_timing, "_SLICE_S", 0.0)
    monkeypatch.setattr(run_module, "choose_calls", lambda *_: 1)
    together = {one.run_id: one.outcome for one in only(RunFinished, ask(both(calls=4)))}
    (alone,) = only(RunFinished, ask(run_of("left", calls=4)))
    assert together["left"].steps == alone.outcome.steps
    assert together["left"].measure == pytest.approx(alone.outcome.measure)


def test_a_race_ends_for_all_when_the_first_one_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower side is as it stood then: progress, bars and ratio agree."""
    monkeypatch.setattr(race_timing, "_SLICE_S", 0.0)
    monkeypatch.setattr(run_module, "choose_calls", lambda *_: 1)
    short = {"calls": None, "budget_s": 0.3}
    slow, fast = run_of("slow", size=96, **short), run_of("fast", **short)
    events = ask(RunInTurns(runs=(slow, fast)))
    results = {one.run_id: one.outcome for one in only(RunFinished, events)}
    assert results["fast"].reached
    assert not results["slow"].reached
    assert results["slow"].finish_steps == results["fast"].finish_steps
    assert results["slow"].progress == results["slow"].steps / results["slow"].finish_steps
    last_step_s = results["slow"].seconds / results["slow"].steps
    assert results["fast"].seconds <= results["slow"].seconds + 1e-9 + last_step_s


def test_the_power_is_that_of_the_whole_race() -> None:
    """A card idles while the other side has its turns, and its energy says so."""
    line = FinishLine()
    card, cpu = Meter([100.0, 20.0]), Meter([])
    ours, theirs = line.join(0.01, card), line.join(0.1, cpu)
    line.poll_power(ours, 1.0)
    line.poll_power(theirs, 2.0)
    assert line.energy_j(ours) == pytest.approx(60.0 * 3.0)
    assert line.energy_j(theirs) is None


def test_each_run_has_its_own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    runs = tuple(run_of(str(count), race=RaceParameters(threads=count)) for count in (1, 2))
    found = {one.run_id: one.cpu_threads for one in only(RunFinished, ask(RunInTurns(runs=runs)))}
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
    request = RunInTurns(runs=(run_of("left", dtype="float64"), run_of("right")))
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


@pytest.mark.parametrize(
    "runs",
    [
        (),
        (run_of("same"), run_of("same")),
        tuple(run_of(str(number)) for number in range(MOST_IN_TURNS + 1)),
    ],
    ids=["none", "same name", "too many"],
)
def test_what_cannot_take_turns_is_refused(runs: tuple[RunWorkload, ...]) -> None:
    (failed,) = ask(RunInTurns(runs=runs))
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is FailureKind.BAD_REQUEST


def broken(run_id: str) -> RunFailed:
    return RunFailed(run_id=run_id, failure=Failure(FailureKind.CUDA_ERROR, "lost", fatal=True))


def test_an_end_of_the_engine_waits_for_the_other_run() -> None:
    left = iter([None, broken("left")])
    right = iter([None, None, None, RunStopped(run_id="right")])
    first, last = in_turns([left, right])
    assert (first.run_id, last.run_id) == ("right", "left")
    assert last.failure.fatal


def test_of_two_ends_of_the_engine_only_the_last_one_ends_it() -> None:
    first, last = in_turns([iter([broken("left")]), iter([broken("right")])])
    assert {first.run_id, last.run_id} == {"left", "right"}
    assert (first.failure.fatal, last.failure.fatal) == (False, True)


def test_who_stops_listening_ends_all_runs() -> None:
    closed: list[str] = []

    def run(name: str) -> Iterator[Event | None]:
        try:
            while True:
                yield RunStopped(run_id=name)
                yield None
        finally:
            closed.append(name)

    events = in_turns([run("left"), run("right")])
    assert [next(events).run_id for _ in range(3)] == ["left", "right", "right"]
    events.close()
    assert sorted(closed) == ["left", "right"]
