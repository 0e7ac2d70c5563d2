import threading
from collections.abc import Iterator

import pytest
import torch

from gpu_studio.core.messages.run_messages import RunFinished, RunPhaseChanged
from gpu_studio.engine.benchmark import naive, naive_script, run
from gpu_studio.engine.benchmark.naive import explain, time_naively
from gpu_studio.engine.benchmark.naive_script import NaiveAnswer, NaiveStopwatch
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.registry import find_workload
from tests.engine.answers import ask, only, run_request

CPU = Case(device=torch.device("cpu"), size=8)
CARD = Case(device=torch.device("cuda", 0), size=8)


def test_it_is_measured_in_a_process_that_has_done_nothing_else(monkeypatch: pytest.MonkeyPatch):
    """The engine's own first uses must be none of the script's."""
    monkeypatch.setattr(
        naive_script, "time_in_this_process", lambda *arguments: pytest.fail("not fresh")
    )
    workload = find_workload("matmul")
    case = make_case(workload.description, torch.device("cpu"), 64)
    answer = time_naively("matmul", case, threading.Event())
    assert answer.failure == ""
    stopwatch = answer.stopwatch
    assert stopwatch is not None
    assert 0 <= stopwatch.started_s <= stopwatch.made_s
    assert stopwatch.made_s < stopwatch.printed_s <= stopwatch.finished_s


def test_a_stop_ends_the_fresh_process(monkeypatch: pytest.MonkeyPatch):
    stop, killed = threading.Event(), threading.Event()

    class Hanging:
        def __init__(self, module: str, arguments: list[str], *, inherited: object) -> None:
            stop.set()

        def lines(self) -> Iterator[bytes]:
            assert killed.wait(60)
            return iter(())

        def kill(self) -> None:
            killed.set()

        def end(self) -> None:
            pass

    monkeypatch.setattr(naive, "ChildProcess", Hanging)
    answer = time_naively("matmul", CPU, stop)
    assert killed.is_set()
    assert answer.stopwatch is None
    assert "without an answer" in answer.failure


def test_the_difference_is_explained_from_the_measurement():
    received = explain(NaiveStopwatch(0.5e-3, 1.5e-3, 2e-3, 9.5e-3), 4e-3, CARD)
    assert (received.printed_s, received.finished_s) == (2e-3, 9.5e-3)
    sentence = received.sentence.replace("\u202f", " ")
    for words in (
        "new process", "2.00 ms, 0.50 × the median of 4.00 ms", "500 µs went into starting CUDA",
        "1.00 ms went", "500 µs into the very first call", "without waiting for the card",
        "7.50 ms later",
    ):  # fmt: skip
        assert words in sentence


def test_a_number_that_is_right_by_chance_is_said_to_be():
    received = explain(NaiveStopwatch(0.0, 1e-4, 1.05e-3, 1.05e-3), 1e-3, CPU)
    assert "which happens to be right here" in received.sentence


def test_a_run_has_it_on_request_and_says_what_it_does(monkeypatch: pytest.MonkeyPatch):
    shown = NaiveAnswer(stopwatch=NaiveStopwatch(0.0, 1.0, 2.0, 2.0))
    monkeypatch.setattr(run, "time_naively", lambda *arguments: shown)
    events = ask(run_request(naive=True))
    assert "naive" in [event.phase for event in only(RunPhaseChanged, events)]
    result = events[-1]
    assert isinstance(result, RunFinished)
    assert result.details.naive is not None
    assert (result.details.naive.printed_s, result.details.naive.finished_s) == (2.0, 2.0)
    assert ask(run_request())[-1].details.naive is None


def test_a_run_without_it_says_why(monkeypatch: pytest.MonkeyPatch):
    failed = NaiveAnswer(failure="CUDA out of memory.")
    monkeypatch.setattr(run, "time_naively", lambda *arguments: failed)
    result = ask(run_request(naive=True))[-1]
    assert isinstance(result, RunFinished)
    assert result.details.naive is None
    assert any("CUDA out of memory." in finding for finding in result.details.findings)
