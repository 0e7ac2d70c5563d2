"""What waits for an answer, what a stop means, and how serving ends: without a process."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    Event,
    MemoryRead,
    ReadMemory,
    Request,
    RequestFailed,
    Stop,
    encode,
)
from gpu_studio.engine.serve import EXIT_FATAL, Inbox, serve
from tests.engine.answers import run_request

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator


def jobs_of(*lines: bytes) -> list[tuple[Request | Failure, bool]]:
    """Return what an inbox holds after these lines, and whether each is to stop."""
    inbox = Inbox()
    for line in lines:
        inbox.add_line(line)
    held = []
    jobs = inbox.jobs()
    for _ in range(sum(line != encode(Stop()) for line in lines)):
        job, stop = next(jobs)
        held.append((job, stop.is_set()))
        inbox.finish()
    return held


def test_a_stop_means_the_oldest_request_that_is_not_answered():
    read, run = ReadMemory(device="cpu"), run_request()
    stop = encode(Stop())
    assert jobs_of(stop, encode(run)) == [(run, False)]
    assert jobs_of(encode(run), stop) == [(run, True)]
    assert jobs_of(encode(run), encode(read), stop) == [(run, True), (read, False)]


def test_a_finished_request_is_no_more_the_one_to_stop():
    inbox = Inbox()
    inbox.add_line(encode(run_request(run_id="first")))
    jobs = inbox.jobs()
    next(jobs)
    inbox.finish()  # its last event is about to be sent
    inbox.add_line(encode(run_request(run_id="second")))
    inbox.add_line(encode(Stop()))
    job, stop = next(jobs)
    assert job.run_id == "second"
    assert stop.is_set()


def test_the_end_of_the_input_stops_all_that_is_left():
    inbox = Inbox()
    inbox.add_line(encode(run_request()))
    jobs = inbox.jobs()
    _, stop = next(jobs)
    inbox.close()
    assert stop.is_set()
    assert list(jobs) == []


class Answers:
    """A dispatcher that answers everything alike."""

    def __init__(self, *events: Event) -> None:
        self._events = events

    def load(self) -> None:
        pass

    def run(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        yield from self._events


class Broken(io.RawIOBase):
    """A pipe whose reader is gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:
        raise self._error


# Windows says "invalid argument".
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(errno.EINVAL, "Invalid argument")])
def test_it_ends_quietly_when_nobody_listens_any_more(error: OSError):
    line = encode(ReadMemory(device="cpu"))
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as lines, os.fdopen(writer, "wb") as requests:
        requests.write(line)
        requests.flush()
        answer = MemoryRead(device="cpu", taken_at_s=0.0)
        assert serve(lines, Broken(error), Answers(answer), lambda code: None) == 0
        requests.close()


def test_a_fatal_failure_is_answered_first():
    out = io.BytesIO()
    fatal = RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "over", fatal=True))
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as lines, os.fdopen(writer, "wb") as requests:
        requests.write(encode(ReadMemory(device="cpu")) * 2)
        requests.flush()
        assert serve(lines, out, Answers(fatal), lambda code: None) == EXIT_FATAL
        requests.close()
    assert msgspec.json.decode(out.getvalue())["failure"]["message"] == "over"
