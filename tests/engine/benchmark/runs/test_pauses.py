import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.messages.run_messages import SamplesMeasured
from gpu_studio.core.pause import SleepAlarm
from gpu_studio.engine.benchmark import rounds
from gpu_studio.engine.benchmark.run import WorkloadRun
from gpu_studio.engine.stopwatch import Stopwatch
from tests.engine.answers import only, run_request

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
    monkeypatch.setattr(WorkloadRun, "_stopwatch", sleeper.stopwatch_for(WorkloadRun._stopwatch))
    # Only what is timed for the result counts as a batch.
    monkeypatch.setattr(rounds, "choose_calls", lambda *_: 10)
    whole = WorkloadRun(run_request(**changes), threading.Event(), alarm=SleepAlarm(sleeper.clock))
    events: list[Event | None] = []
    with pytest.raises(StudioError, match="The PC slept: run it again"):
        events.extend(whole.events())
    return events


def test_a_sleep_ends_a_run_and_no_sample_contains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    events = ask(monkeypatch, Sleeper(3))
    samples = [one for line in only(SamplesMeasured, events) for one in line.samples_s]
    assert max(samples, default=0.0) < 1.0


def test_a_sleep_ends_a_race(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first batches decide where the finish line is.
    race = {"workload": "learn", "size": 16, "race": RaceParameters(threads=1), "calls": 200}
    ask(monkeypatch, Sleeper(10), budget_s=0.2, **race)


def test_a_long_call_is_no_sleep() -> None:
    """The thread that looks for pauses ticks meanwhile."""
    now_s = [0.0]
    with SleepAlarm(lambda: now_s[0]) as alarm:
        for _ in range(20):
            now_s[0] += 1.0
            alarm.check()
        now_s[0] += SLEPT_S
        with pytest.raises(StudioError):
            alarm.check()
