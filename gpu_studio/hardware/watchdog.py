"""Calls into a driver that may never return, each with a deadline.

A thread in such a call cannot be ended, but it can be abandoned, and the others continue. pynvml
releases the interpreter lock while the driver works, so no other thread waits for it.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class SilentError(Exception):
    """A call, or an earlier call about the same subject, has not returned in time."""


class Watchdog:
    """Makes calls on a separate thread and stops waiting for calls that take too long.

    Only one thread may use it. If a call about a subject hangs, the subject is not asked again
    until that call has returned.
    """

    def __init__(self) -> None:
        self._stuck: dict[str, threading.Event] = {}
        self._work: queue.SimpleQueue[Callable[[], None] | None] | None = None

    @property
    def has_left_behind(self) -> bool:
        """Whether a call has not returned yet."""
        return any(not returned.is_set() for returned in self._stuck.values())

    def is_stuck(self, subject: str) -> bool:
        """Return whether the last call about a subject has not returned yet."""
        returned = self._stuck.get(subject)
        return returned is not None and not returned.is_set()

    def call(self, subject: str, function: Callable[[], _T], timeout_s: float) -> _T:
        """Return the function's result, or raise its exception.

        Args:
            subject: the subject of the call: a card, or the driver.
            function: the call; it may still be running after a timeout.
            timeout_s: the seconds to wait.

        Raises:
            SilentError: the call did not return in time.
        """
        if self.is_stuck(subject):
            raise SilentError(subject)
        returned = threading.Event()
        outcome: list[Any] = []

        def work() -> None:
            try:
                outcome.extend((True, function()))
            except BaseException as error:  # passed on to the calling thread
                outcome.extend((False, error))
            finally:
                returned.set()

        self._queue().put(work)
        if not returned.wait(timeout_s):
            self._stuck[subject] = returned
            # This thread ends when its call returns; further calls get a new thread.
            self._queue().put(None)
            self._work = None
            raise SilentError(subject)
        self._stuck.pop(subject, None)
        succeeded, value = outcome
        if succeeded:
            result: _T = value
            return result
        raise value

    def _queue(self) -> queue.SimpleQueue[Callable[[], None] | None]:
        if self._work is None:
            self._work = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(self._work,), daemon=True).start()
        return self._work


def _serve(work: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := work.get()) is not None:
        task()
