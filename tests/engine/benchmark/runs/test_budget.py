import threading
from collections.abc import Callable

import pytest

from gpu_studio.core.messages.run_messages import RunFinished, SamplesMeasured
from gpu_studio.engine.benchmark import rounds
from gpu_studio.engine.benchmark.run import WorkloadRun
from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.answers import ask, only, run_request


def test_the_whole_budget_goes_to_the_timed_part():
    events = ask(run_request(budget_s=0.1))
    spent_s = [event.spent_s for event in only(SamplesMeasured, events)]
    assert spent_s == sorted(spent_s)
    assert spent_s[-1] >= 0.1 > max(spent_s[:-1], default=0.0)
    result = events[-1]
    timed_s = sum(
        sample * event.calls_per_sample
        for event in only(SamplesMeasured, events)
        for sample in event.samples_s
    )
    assert timed_s == pytest.approx(spent_s[-1])
    assert result.times.elapsed_s >= spent_s[-1] + result.times.warm_up_s


@pytest.mark.parametrize(("chosen", "batch"), [(1, 1), (3, 3), (7, 10), (21, 30), (400, 60)])
def test_a_run_makes_exactly_the_calls_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, chosen: int, batch: int
):
    monkeypatch.setattr(rounds, "choose_calls", lambda *arguments: chosen)
    timed: list[int] = []

    class Counting:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            timed.append(calls)
            return calls * 1.0, calls * 1.0

    monkeypatch.setattr(WorkloadRun, "_stopwatch", lambda run, call: Counting())
    events = ask(run_request(budget_s=0.01, calls=60))
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert timed == [batch] * (60 // batch)
    assert result.samples * result.calls_per_sample == 60
    assert result.times.timed_s == 60.0
    assert sum(len(line.samples_s) for line in only(SamplesMeasured, events)) == result.samples


def test_an_interval_that_is_met_ends_a_run_early():
    events = ask(run_request(budget_s=3600.0, stop_at_relative_interval=10.0))
    assert isinstance(events[-1], RunFinished)
    assert only(SamplesMeasured, events)[-1].spent_s < 3600.0


def test_a_shown_run_rests_after_each_line(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]
    story: list[str] = []

    class TwoMilliseconds:
        def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
            now_s[0] += 2e-3
            story.append("batch")
            return 2e-3, 2e-3

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout == 0.04
            now_s[0] += timeout
            story.append("rest")
            return False

    monkeypatch.setattr(rounds.time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(WorkloadRun, "_stopwatch", lambda run, call: TwoMilliseconds())
    monkeypatch.setattr(WorkloadRun, "_time_once", lambda run, call: 2e-3)
    monkeypatch.setattr(rounds, "warm_up", lambda *_arguments, **_options: 2e-3)
    monkeypatch.setattr(rounds, "warm_up_again", lambda *_arguments: 2e-3)
    monkeypatch.setattr(rounds, "choose_calls", lambda *arguments: 1)
    events = []
    for event in Dispatcher().run(run_request(budget_s=12.0, rest_s=0.04), Stop()):
        if isinstance(event, SamplesMeasured):
            story.append("line")
        events.append(event)
    lines = only(SamplesMeasured, events)
    # A quarter of a second of samples each; the batch after a rest is in none of them.
    assert [len(line.samples_s) for line in lines[:4]] == [125] * 4
    assert lines[-1].spent_s == pytest.approx(12.0)
    turn = ["batch"] * 125 + ["line"]
    first_round = turn + ["rest", "batch", *turn] * 3
    assert story[: len(first_round) + 1] == [*first_round, "batch"]  # no rest before the next one
    assert isinstance(events[-1], RunFinished)
    assert events[-1].samples == 6000
