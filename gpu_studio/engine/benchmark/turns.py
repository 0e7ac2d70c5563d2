"""Several runs in turns: each is alone while it is timed, and all meet the same disturbances."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import MOST_IN_TURNS, RunFailed, RunsEnded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunInTurns


class TurnsClock:
    """The seconds since the first sample of runs in turns began: one clock for all of them."""

    def __init__(self) -> None:
        self._began_s: float | None = None

    def begin(self) -> None:
        """Begin with the first sample; later ones change nothing."""
        if self._began_s is None:
            self._began_s = time.perf_counter()

    def at(self, moment_s: float) -> float:
        """Return the seconds up to a moment of `time.perf_counter`."""
        return moment_s - self._began_s if self._began_s is not None else 0.0


def in_turns(runs: Sequence[Iterator[Event | None]]) -> Iterator[Event]:
    """Yield the events of all runs; the last one ends the request.

    The order changes with each round (A B, B A, A B, …), so that a slow drift disturbs all runs
    alike. A failure that ends the engine waits until the other runs are over.

    Args:
        runs: each yields its events, and None at the end of its turn. A failure is an event, never
            an exception.
    """
    waiting, fatal = list(runs), []
    try:
        while waiting:
            for run in tuple(waiting):
                for event in run:
                    if event is None:
                        break
                    if isinstance(event, RunFailed) and event.failure.fatal:
                        fatal.append(event)
                    else:
                        yield event
                else:
                    waiting.remove(run)
            waiting.reverse()
    finally:
        for run in waiting:  # nobody listens any more
            run.close()  # type: ignore[attr-defined]
    for event in fatal[:-1]:
        failure = msgspec.structs.replace(event.failure, fatal=False)
        yield msgspec.structs.replace(event, failure=failure)
    yield fatal[-1] if fatal else RunsEnded()


def check_turns(request: RunInTurns) -> None:
    """Raise `StudioError` if the runs of a request cannot take turns; the message says why."""
    names = [run.run_id for run in request.runs]
    if not 1 <= len(names) <= MOST_IN_TURNS:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{len(names)} runs cannot take turns: choose 1 to {MOST_IN_TURNS}.",
        )
    if len(set(names)) < len(names):
        raise StudioError(FailureKind.BAD_REQUEST, "Two runs in turns have the same name.")
