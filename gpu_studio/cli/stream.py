"""What another thread waits for, so that Ctrl-C works meanwhile."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T")


class Stream(Generic[_T]):
    """An iterable, iterated by another thread; `wait` gives what has come."""

    def __init__(self, source: Iterable[_T]) -> None:
        self._arrived: queue.SimpleQueue[tuple[bool, _T | None]] = queue.SimpleQueue()
        self.has_ended = False
        threading.Thread(target=self._pump, args=(source,), daemon=True).start()

    def wait(self, timeout_s: float) -> _T | None:
        """Return the next value, or None when none came in time or `has_ended`."""
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
