"""Several runs at the same time, each in a thread: for show, because they disturb each other."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import MOST_AT_ONCE, RunFailed, RunsEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Event as Flag

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunAtOnce, RunWorkload

_LOOK_S = 0.1


class StartLine:
    """Where the runs wait until all are prepared, so that they are timed at the same time.

    Args:
        runners: how many there are.
        stop: ends the waiting.
    """

    def __init__(self, runners: int, stop: Flag) -> None:
        self._runners, self._stop = runners, stop
        self._ready = 0
        self._changed = threading.Condition()

    def wait(self) -> None:
        """Wait until all other runs are ready, or over."""
        with self._changed:
            self._ready += 1
            self._changed.notify_all()
            while self._ready < self._runners and not self._stop.is_set():
                self._changed.wait(_LOOK_S)

    def leave(self) -> None:
        """Tell that a run is over, ready or not."""
        with self._changed:
            self._runners -= 1
            self._changed.notify_all()


class RunsAtOnce:
    """The runs of one `RunAtOnce`; iterate `events` once.

    Args:
        requests: the runs.
        make: yields the events of one run, which waits at the start line before its timing. A
            failure is an event, never an exception.
        stop: ends all runs.
    """

    def __init__(
        self,
        requests: Sequence[RunWorkload],
        make: Callable[[RunWorkload, StartLine], Iterator[Event]],
        stop: Flag,
    ) -> None:
        self._requests, self._make, self._stop = requests, make, stop
        self._line = StartLine(len(requests), stop)
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def events(self) -> Iterator[Event]:
        """Yield the events of all runs as they come; the last one ends the request.

        A failure that ends the engine waits until the other runs are over.
        """
        threads = [
            threading.Thread(target=self._run, args=(one,), name=one.run_id, daemon=True)
            for one in self._requests
        ]
        for thread in threads:
            thread.start()
        running, fatal = len(threads), []
        try:
            while running:
                event = self._events.get()
                if event is None:
                    running -= 1
                elif isinstance(event, RunFailed) and event.failure.fatal:
                    fatal.append(event)
                else:
                    yield event
        finally:
            if running:  # no one listens anymore
                self._stop.set()
            for thread in threads:
                thread.join()
        for event in fatal[:-1]:
            failure = msgspec.structs.replace(event.failure, fatal=False)
            yield msgspec.structs.replace(event, failure=failure)
        yield fatal[-1] if fatal else RunsEnded()

    def _run(self, request: RunWorkload) -> None:
        try:
            for event in self._make(request, self._line):
                self._events.put(event)
        finally:
            self._line.leave()
            self._events.put(None)


def shown_at_once(request: RunAtOnce) -> list[RunWorkload]:
    """Return the runs of a request, each marked so that no verdict is based on it.

    Raises:
        StudioError: they cannot run at once; the message says why.
    """
    if not 2 <= len(request.runs) <= MOST_AT_ONCE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{len(request.runs)} contestants cannot run at once: choose 2 to {MOST_AT_ONCE}.",
        )
    if len({run.run_id for run in request.runs}) < len(request.runs):
        raise StudioError(FailureKind.BAD_REQUEST, "Two runs at once have the same name.")
    marked = []
    for run in request.runs:
        if run.race is None:
            raise StudioError(
                FailureKind.BAD_REQUEST, f"{run.workload} is no race, so it runs alone."
            )
        race = msgspec.structs.replace(run.race, at_once=True)
        marked.append(msgspec.structs.replace(run, race=race))
    return marked
