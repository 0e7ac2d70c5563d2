"""A workload's memory, recorded for another card."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRecorded, RecordMemory
from tests.cli.bench.terminal import asked


def recorded(_engine, request):
    return [MemoryRecorded(**request.parameters, snapshot_path=request.snapshot_path, calls=3)]


def test_the_run_on_the_card_is_recorded_after_it_was_timed(engines, type_in, tmp_path):
    engines.scripts[RecordMemory] = recorded
    path = tmp_path / "history.pickle"
    status, output, errors = type_in("matmul", "--size", "64", "--memory-history", str(path))
    assert (status, errors) == (0, "")
    assert f"Recorded 3 calls of matmul, from the operands on. It is in {path}." in output
    *_, last = [one for one in engines.requests if not hasattr(one, "pid")]
    assert isinstance(last, RecordMemory)
    assert last.parameters == asked(engines)[-1].parameters
    assert last.device == "cuda:0"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "64,128"], "of one run"),
        (["--size", "64", "--with-transfers"], "of one run"),
        (["--size", "64", "--device", "cpu"], "on a card"),
    ],
)
def test_anything_but_one_run_on_a_card_is_refused(engines, type_in, tmp_path, arguments, words):
    path = tmp_path / "history.pickle"
    status, _, errors = type_in("matmul", *arguments, "--memory-history", str(path))
    assert status
    assert words in errors
    assert asked(engines) == []


def test_a_recording_that_fails_is_in_the_exit_status(engines, type_in, tmp_path):
    failure = Failure(FailureKind.NOT_SAVED, "Cannot write the snapshot.")
    engines.scripts[RecordMemory] = [RequestFailed(failure=failure)]
    path = tmp_path / "history.pickle"
    status, _, errors = type_in("matmul", "--size", "64", "--memory-history", str(path))
    assert status == 1
    assert "Cannot write the snapshot." in errors
