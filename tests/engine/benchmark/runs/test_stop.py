from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStopped,
    SamplesMeasured,
)
from gpu_studio.engine.benchmark import rounds
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.workloads.matmul import Matmul
from tests.engine.answers import only, run_request

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from gpu_studio.core.messages.message import Event


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
