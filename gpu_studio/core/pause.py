"""Times in which this program did not run: its PC slept, or it was stopped.

A laptop's lid or a suspended virtual PC stops a program and its children alike. What waits for an
answer must not take that for silence.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core import limits
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.message import LONGEST_S, Seconds
from gpu_studio.core.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_S = 1.0
"""How often to call `PauseWatch.tick` at least, in seconds."""
MOST_PAUSES = 1000


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
        return min(late_s, LONGEST_S) if late_s > limits.current.pause_s else 0.0


class SleepAlarm:
    """Notices whether the PC slept during some work; a context manager.

    A thread ticks while the context is open, so that long work is no pause.

    Args:
        clock: see `PauseWatch`.
    """

    def __init__(self, clock: Callable[[], float] = sleepless_s) -> None:
        self._watch = PauseWatch(clock)
        self._looking = threading.Lock()
        self._is_over = threading.Event()
        self._has_slept = False
        self._ticker = threading.Thread(target=self._tick, name="sleep alarm", daemon=True)

    def __enter__(self) -> SleepAlarm:
        self._update()
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._ticker.join()

    def check(self) -> None:
        """Raise `StudioError` if the PC slept, or this program was stopped, since the beginning."""
        self._update()
        if self._has_slept:
            raise StudioError(FailureKind.PC_SLEPT, "The PC slept: run it again.")

    def _update(self) -> None:
        with self._looking:
            self._has_slept = bool(self._watch.tick()) or self._has_slept

    def _tick(self) -> None:
        while not self._is_over.wait(EVERY_S):
            self._update()
