"""One loop for all work of the terminal: an engine's answers, printed; Ctrl-C works meanwhile.

They are iterated on a thread of their own. Otherwise a driver call or a pipe that never answers
would block the terminal.
"""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Generic, NamedTuple, TypeVar

from gpu_studio.cli.command import DONE, DOUBTFUL, FAILED, INTERRUPTED
from gpu_studio.cli.output import Progress, complain, print_event
from gpu_studio.core import limits
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.engine import Engine, describe_exit
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import (
    EngineEnded,
    RequestFailed,
)
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.pitfall_messages import PitfallFailed
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunInTurns,
    RunsEnded,
    RunWorkload,
)
from gpu_studio.core.pause import EVERY_S, PauseWatch

LOOK_S = 0.1
_T = TypeVar("_T")
_Answer = TypeVar("_Answer", bound=Event)


class Interrupt:
    """Whether Ctrl-C was pressed; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.is_asked = False

    @contextmanager
    def recorded(self) -> Iterator[Interrupt]:
        """Record Ctrl-C in this object instead of raising KeyboardInterrupt."""
        before = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_interrupt(self, *_: object) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


class Patience(NamedTuple):
    """How long a command waits for an engine before it ends it.

    Attributes:
        stop_s: seconds for the last event after a stop; None is the usual time.
        silence_s: returns the longest time between two events, in seconds.
        farewell_s: seconds for an ended engine to be gone; a hung driver keeps it alive.
        on_stop: called before the engine is stopped.
        on_silence: called before an engine is ended that was silent for too long.
        slow_s: the time without an event after which `on_slow` is called, once.
        on_slow: says that the command still waits.
        on_pause: called with the seconds of a pause (the PC slept, a signal held the engine up)
            before an engine is ended whose request it spoiled; None lets the engine go on.
    """

    stop_s: float | None = None
    silence_s: Callable[[], float] = lambda: math.inf
    farewell_s: float = math.inf
    on_stop: Callable[[], object] = lambda: None
    on_silence: Callable[[], object] = lambda: None
    slow_s: float = math.inf
    on_slow: Callable[[], object] = lambda: None
    on_pause: Callable[[float], object] | None = None


def answers(
    engine: Engine, request: Request, interrupt: Interrupt, patience: Patience | None = None
) -> Iterator[Event]:
    """Yield the events of a request; after Ctrl-C stops it, its last event still arrives.

    An engine that is silent for too long, or deaf to the stop, is ended. A pause of this program
    is no silence of the engine.
    """
    patience = patience or Patience()
    stop_s = limits.current.terminal_stop_s if patience.stop_s is None else patience.stop_s
    stream = Stream(engine.run(request))
    watch, now_s, looked_s = PauseWatch(), 0.0, time.monotonic()
    last_event_s, stopped_s, ended_s = now_s, None, None
    is_slow = False
    while not stream.has_ended:
        event = stream.wait(LOOK_S)
        before_s, looked_s = looked_s, time.monotonic()
        now_s += min(looked_s - before_s, EVERY_S)  # a pause is no waiting
        if (pause_s := watch.tick()) and patience.on_pause is not None and ended_s is None:
            patience.on_pause(pause_s)
            engine.abandon()
            ended_s = now_s
        if event is not None:
            last_event_s = now_s
            yield event
            watch.tick()  # a slow disk of the command is no pause
        elif ended_s is not None and now_s - ended_s > patience.farewell_s:
            yield EngineEnded(exit_code=None, stopped=True)
            return
        elif ended_s is None and now_s - last_event_s > patience.silence_s():
            if engine.is_held and patience.on_pause is not None:
                patience.on_pause(patience.silence_s())
            else:
                patience.on_silence()
            engine.abandon()
            ended_s = now_s
        if not is_slow and now_s - last_event_s > patience.slow_s:
            is_slow = True
            patience.on_slow()
        if not interrupt.is_asked:
            continue
        if stopped_s is None:
            patience.on_stop()
            engine.stop()
            stopped_s = now_s
        elif ended_s is None and now_s - stopped_s > stop_s:
            engine.abandon()
            ended_s = now_s


class Printer:
    """What a command says of the events of its work; the base says nothing but failures."""

    def apply(self, event: Event) -> str:
        """Take an event in; return the progress line after it, empty for no other one."""
        return ""

    def show(self, event: Event) -> None:
        """Print an event in words."""

    def as_json(self, event: Event) -> Event | None:
        """Return an event as JSON has it; None leaves it out."""
        return event

    def complaint(self, event: Event) -> str:
        """Return what went wrong, as a line; empty for nothing."""
        if isinstance(event, (RequestFailed, PitfallFailed)):
            return event.failure.message
        return describe_exit(event.exit_code) if isinstance(event, EngineEnded) else ""

    def end(self, last: Event) -> None:
        """Note that a request of the plan is over, with its last event."""


class RunPrinter(Printer):
    """A printer of runs: each event changes those that it is about.

    Attributes:
        runs: all that began, oldest first.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._group: list[Run] = []

    def begin(self, requests: Sequence[RunWorkload]) -> Request:
        """Return the request for runs; several take turns."""
        self._group = [Run(request) for request in requests]
        self.runs += self._group
        for run in self._group:
            self.on_begun(run)
        return requests[0] if len(requests) == 1 else RunInTurns(runs=tuple(requests))

    def on_begun(self, run: Run) -> None:
        """Complete a run that is about to be requested."""

    def apply(self, event: Event) -> str:
        """Change the runs of an event; the line is about the last one."""
        changed = [run for run in self._group if run.apply(event)]
        return self.line(changed[-1]) if changed else ""

    def line(self, run: Run) -> str:
        """Return the progress line of a run."""
        return ""

    def as_json(self, event: Event) -> Event | None:
        """Leave out the end of the turns: each run has its own."""
        return None if isinstance(event, RunsEnded) else event

    @property
    def results(self) -> list[RunFinished]:
        """The results so far, oldest first."""
        return [run.result for run in self.runs if run.result is not None]


class CommandEngine(NamedTuple):
    """An engine for one command, with Ctrl-C and the progress line.

    Attributes:
        is_json: whether events are printed as JSON instead of words.
    """

    engine: Engine
    interrupt: Interrupt
    progress: Progress
    is_json: bool = False

    def run(
        self, plan: Iterable[Request], printer: Printer, patience: Patience | None = None
    ) -> bool:
        """Make the requests of a plan one after the other, and print what comes of them.

        Ctrl-C stops the present request and begins no other one. An engine that ended starts anew.

        Args:
            plan: each request is taken when the last one is over.
            printer: prints their events.
            patience: see `answers`.

        Returns:
            Whether all of them were made.
        """
        for request in plan:
            last: Event | None = None
            for event in answers(self.engine, request, self.interrupt, patience):
                last, line = event, printer.apply(event)
                self._print(event, printer)
                if line:
                    self.progress.show(line)
            self.progress.clear()
            assert last is not None
            printer.end(last)
            if self.interrupt.is_asked:
                return False
        return True

    def _print(self, event: Event, printer: Printer) -> None:
        if not self.is_json:
            printer.show(event)
        elif (shown := printer.as_json(event)) is not None:
            print_event(shown)
        if complaint := printer.complaint(event):
            complain(complaint)

    def answer(
        self,
        request: Request,
        kind: type[_Answer],
        patience: Patience | None = None,
        failed: str = "PyTorch gave no answer.",
        printer: Printer | None = None,
    ) -> _Answer:
        """Return the first answer of a kind.

        Args:
            request: what is asked.
            kind: of the answer.
            patience: see `answers`.
            failed: what is said if there is none.
            printer: prints the events before it.

        Raises:
            StudioError: there is none; the sentence says why.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        for event in answers(self.engine, request, self.interrupt, patience):
            if self.interrupt.is_asked:
                raise KeyboardInterrupt
            if isinstance(event, kind):
                return event
            if isinstance(event, (RequestFailed, RunFailed)):
                raise StudioError(event.failure.kind, event.failure.message)
            if isinstance(event, EngineEnded):
                raise StudioError(FailureKind.ENGINE_ENDED, describe_exit(event.exit_code))
            if printer is not None:
                self._print(event, printer)
        raise StudioError(FailureKind.INTERNAL, failed)

    def exit_status(self, *, is_done: bool, in_doubt: bool = False) -> int:
        """Return the exit status of the command, which has ended."""
        if self.interrupt.is_asked:
            return INTERRUPTED
        if not is_done:
            return FAILED
        return DOUBTFUL if in_doubt else DONE


@contextmanager
def at_work(
    engine: Engine, *, is_json: bool = False, interrupt: Interrupt | None = None
) -> Iterator[CommandEngine]:
    """Use an engine for one command: leaving the context closes it.

    Args:
        engine: the engine.
        is_json: whether events are printed as JSON.
        interrupt: records Ctrl-C already; None records it here.
    """
    recorded = Interrupt().recorded() if interrupt is None else nullcontext(interrupt)
    try:
        with recorded as asked, Progress() as progress:
            yield CommandEngine(engine, asked, progress, is_json)
    finally:
        engine.close()


class Stream(Generic[_T]):
    """An iterable that another thread iterates; `wait` returns its next value."""

    def __init__(self, source: Iterable[_T]) -> None:
        self._arrived: queue.SimpleQueue[tuple[bool, _T | None]] = queue.SimpleQueue()
        self.has_ended = False
        threading.Thread(target=self._pump, args=(source,), daemon=True).start()

    def wait(self, timeout_s: float) -> _T | None:
        """Return the next value; None if none arrived in time or `has_ended`."""
        try:
            is_value, value = self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self.has_ended = not is_value
        return value

    def _pump(self, source: Iterable[_T]) -> None:
        try:
            for value in source:
                self._arrived.put((True, value))
        finally:
            self._arrived.put((False, None))
