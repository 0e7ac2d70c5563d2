"""What waits for an answer, what a stop means, and how serving ends: without a process."""

import errno
import io
import os
import threading
from collections.abc import Iterator

import pytest

from gpu_studio.core.failure import Failure
from gpu_studio.core.messages.engine_messages import Heartbeat, Stop
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.protocol import decode_line, encode
from gpu_studio.engine import serve as serve_module
from gpu_studio.engine.serve import Inbox, Outbox, serve
from tests.engine.answers import run_request
from tests.patience import PATIENCE_S


def jobs_of(*lines: bytes) -> list[tuple[Request | Failure, bool]]:
    """Return the contents of an inbox after these lines, and whether each has to stop."""
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


class Answers:
    def __init__(self, *events: Event) -> None:
        self._events = events

    def load(self) -> None:
        pass

    def run(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        yield from self._events


class Broken(io.RawIOBase):
    def __init__(self, error: OSError) -> None:
        super().__init__()
        self._error = error

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:
        raise self._error


# Windows says "invalid argument".
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(errno.EINVAL, "Invalid argument")])
def test_it_ends_quietly_when_its_output_is_closed(error: OSError):
    line = encode(ReadMemory(device="cpu"))
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as lines, os.fdopen(writer, "wb") as requests:
        requests.write(line)
        requests.flush()
        answer = MemoryRead(device="cpu", taken_at_s=0.0)
        assert serve(lines, Broken(error), Answers(answer), lambda code: None) == 0
        requests.close()


class Held(Answers):
    def __init__(self) -> None:
        super().__init__()
        self.may_end = threading.Event()

    def load(self) -> None:
        assert self.may_end.wait(PATIENCE_S)


def test_an_engine_that_says_nothing_gives_signs_of_life(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serve_module, "_BEAT_S", 0.01)
    held = Held()
    requests_end, requests = os.pipe()
    events, out_end = os.pipe()
    with (
        os.fdopen(requests_end, "rb") as lines,
        os.fdopen(out_end, "wb") as out,
        os.fdopen(events, "rb") as result,
    ):
        serving = threading.Thread(target=serve, args=(lines, out, held, lambda code: None))
        serving.start()
        assert [decode_line(result.readline()) for _ in range(2)] == [Heartbeat()] * 2
        held.may_end.set()
        os.close(requests)
        serving.join(PATIENCE_S)
        assert not serving.is_alive()


def test_a_heartbeat_comes_only_where_nothing_else_was_reported():
    class Periods:
        """Four periods are over, one after the other; something is said in the second."""

        def __init__(self, outbox: Outbox) -> None:
            self._outbox, self._count = outbox, 0

        def wait(self, _seconds: float) -> bool:
            self._count += 1
            if self._count == 2:
                self._outbox.send(MemoryRead(device="cpu", taken_at_s=0.0))
            return self._count > 3

    out = io.BytesIO()
    outbox = Outbox(out)
    outbox.beat(Periods(outbox))
    listed = [type(decode_line(line)) for line in out.getvalue().splitlines()]
    assert listed == [Heartbeat, MemoryRead, Heartbeat]
