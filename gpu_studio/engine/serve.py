"""The engine's process: ``python -m gpu_studio.engine.serve``, with PyTorch or without it.

It reads requests from standard input and writes events to the former standard output, one JSON
object per line. It ends when its input closes, so it never outlives the window. This is the
engine's composition root: the only module here that knows the hardware package.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import Heartbeat, RequestFailed, Stop
from gpu_studio.core.messages.run_messages import RunFailed
from gpu_studio.core.packages_folder import use_packages
from gpu_studio.core.protocol import decode_request, encode
from gpu_studio.core.uncollected import uncollected
from gpu_studio.engine.client import CPU_ALONE, QUICK
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.hardware.cpu import cpu_name
from gpu_studio.hardware.engine_sensor import EngineSensor
from gpu_studio.hardware.makers import are_all_cards_asleep
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpu_studio.core.messages.message import Message, Request

EXIT_FATAL = 70  # EX_SOFTWARE of sysexits.h: the parent starts a new engine
_GRACE_S = 0.3
_BEAT_S = 1.0
_LONGEST_LINE = 64 << 20
_leave = os._exit  # a user's code gets another one

_log = logging.getLogger(__name__)


class Inbox:
    """The unanswered requests; the thread that reads standard input adds them.

    Every request has its own stop flag, so that a late `Stop` ends only the request it was meant
    for.
    """

    def __init__(self) -> None:
        self._jobs: collections.deque[tuple[Request | Failure, threading.Event]] = (
            collections.deque()
        )
        self._changed = threading.Condition()
        self._closed = False

    def add_line(self, line: bytes) -> None:
        """Add one line; an unreadable line gets its answer in turn."""
        job: Request | Failure
        try:
            job = decode_request(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            job = Failure(FailureKind.BAD_REQUEST, f"The engine cannot read this request: {error}")
        with self._changed:
            if isinstance(job, Stop):
                if self._jobs:
                    self._jobs[0][1].set()
                return
            self._jobs.append((job, threading.Event()))
            self._changed.notify()

    def close(self) -> None:
        """Accept no more requests, and stop all of them."""
        with self._changed:
            self._closed = True
            for _, stop in self._jobs:
                stop.set()
            self._changed.notify()

    def jobs(self) -> Iterator[tuple[Request | Failure, threading.Event]]:
        """Yield the requests, oldest first, until the input closes.

        A `Stop` refers to the yielded request until `finish`.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closed)
                if self._closed:
                    return
                job = self._jobs[0]
            yield job

    def finish(self) -> None:
        """Remove the oldest request; call this before its last event is sent."""
        with self._changed:
            self._jobs.popleft()


class Outbox:
    """Writes the engine's events, line by line, and a heartbeat when there are no events.

    Args:
        out: the stream for the lines.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._sending = threading.Lock()
        self._has_spoken = False

    def send(self, message: Message) -> None:
        """Write one line; raises `OSError` if the window no longer listens."""
        if isinstance(message, (RunFailed, RequestFailed)):
            _log.error("%s\n%s", message.failure.message, message.failure.traceback_text)
        with self._sending:
            self._out.write(encode(message))
            self._out.flush()
            self._has_spoken = True

    def beat(self, is_over: threading.Event) -> None:
        """Send a heartbeat after each period without another line; run it in a separate thread.

        A run that sends samples needs no heartbeat, so none disturbs its timings.
        """
        with contextlib.suppress(OSError):
            while not is_over.wait(_BEAT_S):
                with self._sending:
                    has_spoken, self._has_spoken = self._has_spoken, False
                if not has_spoken:
                    self.send(Heartbeat())


def serve(
    lines: BinaryIO,
    out: BinaryIO,
    dispatcher: Dispatcher,
    leave: Callable[[int], None],
) -> int:
    """Answer requests until the input closes or a fatal error occurs; return an exit code.

    Args:
        lines: the stream of requests.
        out: the stream for events.
        dispatcher: does the work.
        leave: ends the process if a call is still running after the input has closed.
    """
    inbox = Inbox()
    finished = threading.Event()

    def read() -> None:
        while line := lines.readline(_LONGEST_LINE):
            if line.strip():
                inbox.add_line(line)
        inbox.close()
        if not finished.wait(_GRACE_S):
            leave(0)

    outbox = Outbox(out)

    def lose(failure: Failure) -> None:
        with contextlib.suppress(OSError):
            outbox.send(RequestFailed(failure=failure))
        leave(EXIT_FATAL)

    dispatcher.lost = lose
    threading.Thread(target=read, name="requests", daemon=True).start()
    threading.Thread(target=outbox.beat, args=(finished,), name="heartbeat", daemon=True).start()
    try:
        return _answer_all(inbox, outbox, dispatcher)
    except OSError:  # only the pipe's: every error of a request is an answer
        return 0  # the window is gone; Windows has no BrokenPipeError here
    finally:
        finished.set()


def _answer_all(inbox: Inbox, outbox: Outbox, dispatcher: Dispatcher) -> int:
    # PyTorch takes a second to import, so start before the first request. It stays: to look through
    # it for garbage meanwhile is an eighth of that second, and later a quarter of an optimizer's.
    with uncollected():
        dispatcher.load()
    gc.freeze()
    for job, stop in inbox.jobs():
        if isinstance(job, Failure):
            inbox.finish()
            outbox.send(RequestFailed(failure=job))
            continue
        for event in dispatcher.run(job, stop):
            if event.ends(job):
                inbox.finish()
            outbox.send(event)
            if isinstance(event, (RunFailed, RequestFailed)) and event.failure.fatal:
                return EXIT_FATAL
    return 0


def main() -> int:
    """Run the engine's process; return its exit code."""
    use_packages()
    requests, out = take_over_stdin(), take_over_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal: the parent decides
    with contextlib.suppress(RuntimeError, ValueError, OSError):  # no standard error to write to
        faulthandler.enable()
    logging.basicConfig(format="%(asctime)s engine %(levelname)s %(message)s")
    return serve(requests, out, _dispatcher(sys.argv[1:]), _leave)


def _dispatcher(arguments: Sequence[str]) -> Dispatcher:
    if QUICK in arguments:
        from gpu_studio.engine.quick.dispatcher import QuickDispatcher

        return QuickDispatcher(cpu_name(), EngineSensor(), uses_adapters=CPU_ALONE not in arguments)
    return Dispatcher(EngineSensor(), cpu_name=cpu_name(), are_cards_asleep=are_all_cards_asleep)


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # Tearing down CUDA can hang; the driver frees the process's memory anyway.
    _leave(code)
