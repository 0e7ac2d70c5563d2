"""Times in which this program did not run: its PC slept, or it was stopped.

A laptop's lid or a suspended virtual PC stops a program and its children alike. What waits for an
answer must not take that for silence.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta

from gpu_studio.core.messages.message import LONGEST_S, Seconds
from gpu_studio.core.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EVERY_S = 1.0
"""How often to call `PauseWatch.tick` at least, in seconds."""
LATE_S = 5.0
"""A tick that comes so much later than it should was held up by a pause, in seconds."""
MOST_PAUSES = 1000
_T = TypeVar("_T")


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause in some work; what was being measured then was measured again.

    ``after_s`` is the time since the work began, without pauses.
    """

    after_s: Seconds
    paused_s: Seconds


Pauses = Annotated[tuple[Pause, ...], Meta(max_length=MOST_PAUSES)]


def pause_text(pause: Pause) -> str:
    """Return a pause in words, without a full stop."""
    return f"The PC slept for {clock_text(pause.paused_s)}, or the program was stopped"


def pauses_sentence(works: Iterable[tuple[Pause, ...]]) -> str:
    """Return what to say beside the results of works that ran together; empty without a pause.

    Args:
        works: the pauses of each. All of them noticed the same ones, each with its own clock.
    """
    pauses = max(works, key=lambda each: sum(one.paused_s for one in each), default=())
    if not pauses:
        return ""
    slept = clock_text(sum(one.paused_s for one in pauses))
    how = f"for {slept}" if len(pauses) == 1 else f"{len(pauses)} times, {slept} in all"
    return (
        f"The PC slept {how}, or the program was stopped. What that interrupted was measured again."
    )


def sleepless_s() -> float:
    """Return the seconds of a clock that goes on while the PC sleeps, and is never set.

    `time.monotonic` is such a clock on Windows; Linux has another one (clock_gettime(2)).
    """
    read: Callable[[int], float] | None = getattr(time, "clock_gettime", None)
    number: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    if read is None or number is None:
        return time.monotonic()
    return read(number)


class PauseWatch:
    """Notices a pause by a tick that comes late.

    Args:
        clock: Returns the seconds of a clock that goes on during a sleep.
    """

    def __init__(self, clock: Callable[[], float] = sleepless_s) -> None:
        self._clock = clock
        self._ticked_s = clock()

    def tick(self) -> float:
        """Return the seconds of the pause that is just over; 0.0 if there was none."""
        now_s = self._clock()
        late_s, self._ticked_s = now_s - self._ticked_s - EVERY_S, now_s
        return min(late_s, LONGEST_S) if late_s > LATE_S else 0.0


class PauseLog:
    """The pauses of some work, which looks for them itself; a context manager.

    A thread ticks while the context is open, so that long work is no pause.

    Args:
        clock: see `PauseWatch`.
    """

    def __init__(self, clock: Callable[[], float] = sleepless_s) -> None:
        self._clock = clock
        self._watch = PauseWatch(clock)
        self._began_s = clock()
        self._looking = threading.Lock()
        self._is_over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="pauses", daemon=True)
        self._paused_s = 0.0
        self._count = 0
        self._pauses: list[Pause] = []

    def __enter__(self) -> PauseLog:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._ticker.join()

    @property
    def pauses(self) -> tuple[Pause, ...]:
        """The pauses so far, oldest first; no more than a message takes."""
        return tuple(self._pauses)

    @property
    def awake_s(self) -> float:
        """The seconds since the work began, without its pauses."""
        with self._looking:
            return max(self._clock() - self._began_s - self._paused_s, 0.0)

    def look(self) -> int:
        """Look for a pause; return how many there were until now."""
        with self._looking:
            if paused_s := self._watch.tick():
                after_s = self._clock() - self._began_s - self._paused_s - paused_s
                self._paused_s += paused_s
                self._count += 1
                if len(self._pauses) < MOST_PAUSES:
                    self._pauses.append(Pause(after_s=max(after_s, 0.0), paused_s=paused_s))
            return self._count

    def undisturbed(
        self, work: Callable[[], _T], recover: Callable[[], object] = lambda: None
    ) -> _T:
        """Return what a work returns, done again if there was a pause in it.

        Args:
            work: does it.
            recover: called after a pause; raises to end it.
        """
        while True:
            before = self.look()
            result = work()
            if self.look() == before:
                return result
            recover()

    def _tick(self) -> None:
        while not self._is_over.wait(EVERY_S):
            self.look()
