import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import RaceParameters
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
from gpu_studio.engine.benchmark import race_timing, rounds
from gpu_studio.engine.benchmark.race_timing import FinishLine, RaceTiming
from gpu_studio.engine.benchmark.rounds import in_turns
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.stopwatch import CpuStopwatch
from tests.engine.answers import ask, only, run_request
from tests.patience import PATIENCE_S


def run_of(run_id: str, **changes: Any) -> RunWorkload:
    parameters: dict[str, Any] = {
        "workload": "learn",
        "size": 16,
        "race": RaceParameters(threads=1),
        "budget_s": 0.2,
        "calls": 4,
    }
    return run_request(run_id=run_id, **{**parameters, **changes})


class Meter:
    def __init__(self, powers_w: list[float]) -> None:
        self._waiting, self._read = list(powers_w), []

    @property
    def power_w(self) -> float | None:
        return fmean(self._read) if self._read else None

    def poll(self) -> None:
        pass

    def poll_power(self) -> None:
        self._read += self._waiting[:1]
        del self._waiting[:1]


def both(**changes: Any) -> RunInTurns:
    return RunInTurns(runs=(run_of("left", **changes), run_of("right", **changes)))


@pytest.fixture
def dispatcher() -> Dispatcher:
    return Dispatcher()


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
    batches = only(SamplesMeasured, events)
    ends_s = [one.ended_s for one in batches]
    # One clock for both, from the first sample on: no two overlap.
    assert ends_s == sorted(ends_s)
    assert ends_s[0] >= batches[0].calls_per_sample * sum(batches[0].samples_s) * 0.9
    for name in ("left", "right"):
        rounds = [one.round_number for one in batches if one.run_id == name]
        assert sorted(set(rounds)) == [*range(1, max(rounds) + 1)]


@pytest.fixture
def equal_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of one step, each of which takes a thousandth of a second by the race's clock."""

    def time(_stopwatch: Any, call: Callable[[], object], calls: int) -> tuple[float, float]:
        for _ in range(calls):
            call()
        return calls * 2.0**-10, calls * 2.0**-10

    monkeypatch.setattr(race_timing, "_SLICE_S", 0.0)
    monkeypatch.setattr(rounds, "choose_calls", lambda *_: 1)
    monkeypatch.setattr(CpuStopwatch, "time", time)


def test_the_slices_of_a_race_alternate(equal_steps: None) -> None:
    events = ask(both(calls=4))
    names = [one.run_id for one in only(SamplesMeasured, events)]
    assert sorted(names) == ["left"] * 4 + ["right"] * 4
    assert [sorted(names[at : at + 2]) for at in range(0, 8, 2)] == [["left", "right"]] * 4
    for result in only(RunFinished, events):
        assert len(result.rounds_s) == names.count(result.run_id)


def test_a_race_ends_for_all_when_the_first_one_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower side is as it stood then: progress, bars and ratio agree."""
    monkeypatch.setattr(race_timing, "_SLICE_S", 0.0)
    monkeypatch.setattr(rounds, "choose_calls", lambda *_: 1)
    # A PC that is busy after the warm-up takes longer than the warm-up foresaw.
    short = {"calls": None, "budget_s": 0.3, "longest_s": PATIENCE_S}
    slow, fast = run_of("slow", size=96, **short), run_of("fast", **short)
    events = ask(RunInTurns(runs=(slow, fast)))
    results = {one.run_id: one.outcome for one in only(RunFinished, events)}
    assert results["fast"].reached
    assert not results["slow"].reached
    assert results["slow"].finish_steps == results["fast"].finish_steps
    assert results["slow"].progress == results["slow"].steps / results["slow"].finish_steps
    last_step_s = results["slow"].seconds / results["slow"].steps
    assert results["fast"].seconds <= results["slow"].seconds + 1e-9 + last_step_s


class Steps:
    """A contestant whose steps take a scripted time, and its clock at the end of each turn."""

    def __init__(self, name: str, step_s: float, line: FinishLine, **changes: Any) -> None:
        self.name, self.step_s, self.elapsed_s = name, step_s, 0.0
        self._request = run_of(name, **changes)
        self._line, self._number = line, line.join(step_s, Meter([]))

    def restart(self) -> None:
        self.elapsed_s = 0.0

    def measure(self) -> float:
        return 0.0

    def function(self) -> None:
        self.elapsed_s += self.step_s

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        began_s = self.elapsed_s
        for _ in range(calls):
            call()
        return self.elapsed_s - began_s, self.elapsed_s - began_s

    def timing(self) -> RaceTiming:
        return RaceTiming(
            self._request, self, self._line, self._number, 1,
            may_finish=True, warm_again=lambda: None, stop=threading.Event(),
        )  # fmt: skip


def turns_of(*sides: Steps) -> tuple[list[tuple[str, float, float]], list[RaceTiming]]:
    """Return whose turn it was, with both clocks at its end, and how the sides were timed."""
    turns: list[tuple[str, float, float]] = []

    def watched(side: Steps, timing: RaceTiming) -> Iterator[Event | None]:
        began_s, passed = 0.0, 0
        for event in timing.events(side, Meter([]), lambda: None):
            if event is None and side.elapsed_s > began_s:
                turns.append((side.name, *(one.elapsed_s for one in sides)))
                began_s, passed = side.elapsed_s, 0
            elif event is None:
                passed += 1
                assert passed <= len(sides), f"{side.name} waits for ever"
            yield event

    timings = [side.timing() for side in sides]
    deque(in_turns(list(map(watched, sides, timings))), maxlen=0)
    return turns, timings


@pytest.mark.parametrize(
    ("slow_s", "fast_s", "is_alternating"),
    [(0.03, 0.01, True), (0.25, 0.01, True), (0.7, 0.02, False), (2.0, 0.05, False)],
)
def test_the_clocks_of_a_race_advance_together(slow_s, fast_s, is_alternating) -> None:
    """A long step takes its side ahead by itself at most; the other one is there a turn later."""
    line = FinishLine()
    slow, fast = (
        Steps(name, step_s, line, calls=round(8.0 / fast_s))
        for name, step_s in (("slow", slow_s), ("fast", fast_s))
    )
    turns, timings = turns_of(slow, fast)
    apart_s = max(abs(one - other) for _, one, other in turns)
    two_slices_s = 2 * (race_timing._SLICE_S + slow_s)  # each ends with a step
    bound_s = (two_slices_s if is_alternating else slow_s + fast_s) + 1e-9
    assert apart_s <= bound_s
    order = ["slow", "fast", "fast", "slow"] if is_alternating else ["slow", "fast"]
    assert [name for name, *_ in turns] == (order * len(turns))[: len(turns)]
    # As many slices, which are pairs, and each side's pace is that of its steps.
    assert abs(len(timings[0].slices_s) - len(timings[1].slices_s)) <= 1
    assert timings[0].slices_s == pytest.approx([slow_s] * len(timings[0].slices_s))
    assert timings[1].slices_s == pytest.approx([fast_s] * len(timings[1].slices_s))
    assert fast.elapsed_s == pytest.approx(8.0)
    assert timings[1].outcome().reached
    assert fast.elapsed_s - 1e-9 <= slow.elapsed_s <= fast.elapsed_s + bound_s


def test_who_ends_early_keeps_no_one_waiting() -> None:
    """Its clock stands: the other side neither waits for it nor works until it is there."""
    line = FinishLine()
    slow = Steps("slow", 2.0, line, calls=160, longest_s=3.0)
    fast = Steps("fast", 0.05, line, calls=160)
    turns_of(slow, fast)
    assert (slow.elapsed_s, fast.elapsed_s) == pytest.approx((4.0, 8.0))


def test_the_power_is_that_of_the_whole_race() -> None:
    """A card idles while the other side has its turns, and its energy says so."""
    line = FinishLine()
    card, cpu = Meter([100.0, 20.0]), Meter([])
    ours, theirs = line.join(0.01, card), line.join(0.1, cpu)
    line.advance(ours, 1.0)
    line.poll_power()
    line.advance(theirs, 2.0)
    line.poll_power()
    assert line.energy_j(ours) == pytest.approx(60.0 * 3.0)
    assert line.energy_j(theirs) is None


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
