from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    SamplesMeasured,
)
from gpu_studio.core.pause import SleepAlarm
from gpu_studio.engine.benchmark import rounds
from gpu_studio.engine.benchmark.run import WorkloadRun
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.workloads.matmul import Matmul
from tests.engine.answers import only, run_request

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.stopwatch import Stopwatch


def stop_when(wanted: Callable[[object], bool], **changes: object) -> list[object]:
    stop = threading.Event()
    events = []
    for event in Dispatcher().run(run_request(budget_s=60.0, **changes), stop):
        events.append(event)
        if wanted(event):
            stop.set()
    return events


def test_a_stop_in_a_rest_ends_the_run():
    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            self.set()
            return True

    events = list(Dispatcher().run(run_request(budget_s=60.0, rest_s=0.04), Stop()))
    assert isinstance(events[-1], RunStopped)
    assert len(only(SamplesMeasured, events)) == 1


@pytest.mark.parametrize("phase", ["set-up", "verification", "warm-up"])
def test_a_stop_before_the_timing_ends_the_run_there(phase: str):
    events = stop_when(lambda event: isinstance(event, RunPhaseChanged) and event.phase == phase)
    assert events[-1] == RunStopped(run_id="r1", samples=0)
    assert [event.phase for event in only(RunPhaseChanged, events)][-1] == phase


def test_a_stop_in_the_timing_keeps_and_counts_the_samples():
    events = stop_when(lambda event: isinstance(event, SamplesMeasured))
    samples = sum(len(event.samples_s) for event in only(SamplesMeasured, events))
    assert samples > 0
    assert events[-1] == RunStopped(run_id="r1", samples=samples)


class Prepared:
    """Follows the operands of every product that is prepared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._operands: list[weakref.ref[torch.Tensor]] = []
        prepare = Matmul.prepare

        def noting(workload: Matmul, *arguments: object) -> object:
            call = prepare(workload, *arguments)
            self._operands.extend(weakref.ref(tensor) for tensor in call.function.args)
            return call

        monkeypatch.setattr(Matmul, "prepare", noting)

    @property
    def are_gone(self) -> bool:
        assert self._operands
        assert len(self._operands) % 2 == 0  # of each round
        return all(reference() is None for reference in self._operands)


@pytest.mark.parametrize("end", [RunFinished, RunStopped, RunFailed])
def test_what_was_taken_is_free_when_the_end_is_reported(
    monkeypatch: pytest.MonkeyPatch, end: type[Event]
):
    prepared = Prepared(monkeypatch)
    stop = threading.Event()
    if end is RunFailed:
        monkeypatch.setattr(rounds, "choose_calls", lambda *arguments: 1 / 0)
    for event in Dispatcher().run(run_request(workload="matmul"), stop):
        if isinstance(event, end):
            assert prepared.are_gone
        elif end is RunStopped and isinstance(event, SamplesMeasured):
            stop.set()
    assert isinstance(event, end)


# ── the PC sleeps ────────────────────────────────────────────────────────────────────────────────


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
