"""Runs during which the PC sleeps, or the engine is stopped: no time contains it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.messages.run_messages import RunFinished, SamplesMeasured
from gpu_studio.core.pause import PauseLog
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.engine.benchmark import run
from gpu_studio.engine.benchmark.run import WorkloadRun
from gpu_studio.engine.stopwatch import AwakeStopwatch
from tests.engine.answers import only, run_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.stopwatch import Stopwatch

SLEPT_S = 3600.0


class Sleeper:
    """A PC that sleeps in some of the timed batches: every clock goes on, nothing else does."""

    def __init__(self, *in_batches: int) -> None:
        self.in_batches = set(in_batches)
        self.slept_s = 0.0
        self.batches = 0

    def clock(self) -> float:
        return time.monotonic() + self.slept_s

    def stopwatch_for(self, plain: Callable[..., Stopwatch]) -> Callable[..., Stopwatch]:
        def make(*arguments: Any) -> Stopwatch:
            return SleepingStopwatch(plain(*arguments), self)

        return make


class SleepingStopwatch:
    def __init__(self, plain: Stopwatch, sleeper: Sleeper) -> None:
        self._plain, self._sleeper = plain, sleeper

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        batch_s, wall_s = self._plain.time(call, calls)
        self._sleeper.batches += 1
        if self._sleeper.batches in self._sleeper.in_batches:
            self._sleeper.slept_s += SLEPT_S
            return batch_s + SLEPT_S, wall_s + SLEPT_S
        return batch_s, wall_s


def ask(monkeypatch: pytest.MonkeyPatch, sleeper: Sleeper, **changes: Any) -> list[Event | None]:
    monkeypatch.setattr(run, "stopwatch_for", sleeper.stopwatch_for(run.stopwatch_for))
    # Only what is timed for the result counts as a batch.
    monkeypatch.setattr(run, "choose_calls", lambda *_: 10)
    whole = WorkloadRun(run_request(**changes), threading.Event(), pauses=PauseLog(sleeper.clock))
    return list(whole.events())


def test_a_sample_does_not_contain_a_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    events = ask(monkeypatch, Sleeper(1, 3, 4))
    result = events[-1]
    assert isinstance(result, RunFinished)
    samples = [one for line in only(SamplesMeasured, events) for one in line.samples_s]
    assert len(samples) == result.samples
    assert max(samples) < 1.0
    assert result.timed_s is not None
    assert result.timed_s < SLEPT_S > result.elapsed_s
    assert [pause.paused_s for pause in result.pauses] == [
        pytest.approx(SLEPT_S, abs=2.0) for _ in range(3)
    ]
    assert all(pause.after_s < SLEPT_S for pause in result.pauses)
    assert decode_event(encode(result)) == result


def test_a_run_of_exact_calls_has_all_of_them_without_the_one_that_slept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = ask(monkeypatch, Sleeper(2), calls=40)[-1]
    assert isinstance(result, RunFinished)
    assert result.samples * result.calls_per_sample == 40
    assert result.p99_s < 1.0
    assert len(result.pauses) == 1


def test_the_clock_of_a_race_stands_while_the_pc_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first batches decide where the finish line is.
    race = {"workload": "learn", "size": 16, "race": RaceParameters(threads=1), "calls": 200}
    result = ask(monkeypatch, Sleeper(1, 5, 200), budget_s=0.2, **race)[-1]
    assert isinstance(result, RunFinished)
    outcome = result.outcome
    assert outcome is not None
    assert outcome.reached
    assert outcome.steps == 200
    assert outcome.seconds < SLEPT_S
    assert max(result.rounds_s) < 1.0
    assert result.pauses


def test_a_sleep_in_the_warm_up_is_in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper, plain, calls = Sleeper(), run.time_once, []

    def time_once(*arguments: Any) -> float:
        calls.append(1)
        slept_s = SLEPT_S if len(calls) == 1 else 0.0
        sleeper.slept_s += slept_s
        return plain(*arguments) + slept_s

    monkeypatch.setattr(run, "time_once", time_once)
    result = ask(monkeypatch, sleeper)[-1]
    assert isinstance(result, RunFinished)
    assert len(result.pauses) == 1
    assert max(result.first_call_s, result.warm_up_s, result.elapsed_s) < SLEPT_S


def test_a_stop_after_a_sleep_ends_the_batch_that_slept() -> None:
    class StoppedError(Exception):
        pass

    def recover() -> None:
        raise StoppedError

    sleeper = Sleeper(1)
    with PauseLog(sleeper.clock) as pauses:
        stopwatch = AwakeStopwatch(SleepingStopwatch(Still(), sleeper), pauses, recover)
        with pytest.raises(StoppedError):
            stopwatch.time(lambda: None, 1)


class Still:
    """Takes a millisecond, whatever it times."""

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        return 1e-3, 1e-3


def test_a_long_call_is_no_sleep() -> None:
    """The thread that looks for pauses ticks meanwhile."""
    now_s = [0.0]
    with PauseLog(lambda: now_s[0]) as pauses:
        for _ in range(20):
            now_s[0] += 1.0
            pauses.look()
        assert not pauses.pauses
        assert pauses.awake_s == 20.0
