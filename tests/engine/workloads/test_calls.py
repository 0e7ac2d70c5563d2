from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    SamplesMeasured,
    WorkloadDescription,
)
from gpu_studio.engine.benchmark import admission, run
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.workload import Workload
from tests.engine.answers import ask, only, run_request

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event


class Knitting(Workload):
    """Work without a matrix, whose calls note what happens to them."""

    description = WorkloadDescription(
        name="knitting",
        title="Knitting",
        sentence="Knits.",
        dtypes=("float32",),
        sizes=(1,),
        throughput_unit="rows/s",
        size_text="{size} rows",
        refuses={"naive": "Knitting has no naive form."},
    )
    call_type: type[KnittingCall]

    def __init__(self) -> None:
        self.calls: list[KnittingCall] = []

    def work(self, case: Case) -> Work:
        return Work(operations=0.0, bytes_moved=0.0, throughput_work=case.size, memory_bytes=1)

    def prepare(self, case: Case) -> Call:
        self.calls.append(self.call_type())
        return self.calls[-1]

    def verify(self, case: Case) -> Verification:
        return Verification(True, "warm", ("all of it",))

    def snippet(self, case: Case) -> str:
        return "knit()"


class KnittingCall(Call):
    def __init__(self) -> None:
        self.made = self.closed = 0
        self.asked: list[str] = []

    def __call__(self) -> None:
        assert not self.closed
        assert not self.asked
        self.made += 1

    def parts_s(self) -> dict[str, float]:
        self.asked.append("parts")
        return {"needles": 1.0, "wool": 2.0}

    def curves(self) -> dict[str, tuple[float, ...]]:
        self.asked.append("curves")
        return {"length": (1.0, 2.0)}

    def findings(self) -> tuple[str, ...]:
        self.asked.append("findings")
        return ("It is a scarf.",)

    def close(self) -> None:
        self.closed += 1


class OneAtATime(KnittingCall):
    is_batched = False


_OWN_S = 7e6


class OwnClock(KnittingCall):
    is_batched = False

    def timed_by(self, stopwatch: object) -> OwnClock:
        return self

    def time(self, call: object, calls: int) -> tuple[float, float]:
        self()
        return _OWN_S, 1e-6


class Breaking(KnittingCall):
    def __call__(self) -> None:
        raise ZeroDivisionError("the wool tore")


@pytest.fixture
def knitting(monkeypatch: pytest.MonkeyPatch) -> Knitting:
    knitting = Knitting()
    knitting.call_type = KnittingCall
    monkeypatch.setattr(run, "find_workload", lambda name: knitting)
    return knitting


def finished(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1]


@pytest.mark.usefixtures("knitting")
def test_what_the_call_reports_is_in_the_result():
    result = finished(ask(run_request(size=1)))
    assert result.details.parts_s == {"needles": 1.0, "wool": 2.0}
    assert result.details.curves == {"length": (1.0, 2.0)}
    assert result.details.findings == ("It is a scarf.",)
    assert result.size_text == "{size} rows"
    assert result.throughput == 1 / result.median_s
    assert result.reached is None


def test_every_timed_call_is_made(knitting: Knitting):
    events = ask(run_request(size=1))
    counted: list[int] = []
    (call,) = knitting.calls
    for event in Dispatcher().run(run_request(size=1, calls=4000), threading.Event()):
        if isinstance(event, RunPhaseChanged) and event.phase == "timing":
            counted.append(knitting.calls[-1].made)
    result = finished([event])
    timed = knitting.calls[-1].made - counted[0]
    assert timed == result.samples * result.calls_per_sample
    assert finished(events).calls_per_sample > 1
    assert call.closed == 1


def test_a_call_that_cannot_be_batched_is_a_sample(knitting: Knitting):
    knitting.call_type = OneAtATime
    collected: list[int] = []
    for event in Dispatcher().run(run_request(size=1, calls=50), threading.Event()):
        if isinstance(event, RunPhaseChanged) and event.phase == "timing":
            collected.append(knitting.calls[-1].made)
    result = finished([event])
    assert result.calls_per_sample == 1
    assert knitting.calls[-1].made - collected[0] == result.samples


def test_a_call_with_a_clock_of_its_own_is_believed(knitting: Knitting):
    knitting.call_type = OwnClock
    events = ask(run_request(size=1, budget_s=0.01))
    assert finished(events).median_s == _OWN_S
    # Its clock may run elsewhere; the budget is the user's time.
    assert only(SamplesMeasured, events)[-1].spent_s < _OWN_S


@pytest.mark.parametrize("end", [RunFinished, RunStopped, RunFailed])
def test_a_call_is_closed_once_before_the_end_is_reported(knitting: Knitting, end: type[Event]):
    if end is RunFailed:
        knitting.call_type = Breaking
    stop = threading.Event()
    for event in Dispatcher().run(run_request(size=1, budget_s=0.2), stop):
        if isinstance(event, end):
            assert [call.closed for call in knitting.calls] == [1]
        elif isinstance(event, SamplesMeasured) and end is RunStopped:
            stop.set()
    assert isinstance(event, end)


def test_the_check_of_a_large_size_closes_its_small_call(
    knitting: Knitting, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(knitting, "small_up_to", 4)
    for module in (admission, run):
        monkeypatch.setattr(module, "time_once", lambda call, device: 0.25)
    knitting.call_type = OneAtATime
    events = ask(run_request(size=12, budget_s=0.01))
    assert [call.closed for call in knitting.calls] == [1, 1]
    # Three times the work of the small one takes three times as long.
    warm_up = only(RunPhaseChanged, events)[2]
    assert warm_up.expected_call_s == 0.75
