"""Lines from a pipe that may bring anything: none is longer than a limit or awaited in vain.

Both ends of a line to another PC read with this. An empty line is a sign of life: each end sends
one where it has nothing else to say, and takes a line without any byte for lost.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGN_OF_LIFE = b"\n"
_CHUNK_BYTES = 1 << 16
_LOOK_S = 0.5
_COST_OF_LINE = 256  # bytes: a line takes time, however short it is


class TooMuchError(Exception):
    """A line is longer than allowed, or there are too many bytes."""


class Budget:
    """The bytes that may arrive: some at once, and some each second.

    Args:
        at_once: bytes.
        each_s: bytes per second.
    """

    def __init__(self, at_once: int, each_s: int) -> None:
        self._at_once, self._each_s = at_once, each_s
        self._began_s = time.monotonic()
        self._used = 0

    def use(self, count: int) -> None:
        """Count bytes; raise `TooMuchError` if they are too many."""
        self._used += count
        spent_s = time.monotonic() - self._began_s
        if self._used > self._at_once + self._each_s * spent_s:
            raise TooMuchError


def split_lines(
    read: Callable[[int], bytes], longest: int, budget: Budget | None = None
) -> Iterator[bytes]:
    """Yield the lines of a stream with their ends, without the empty ones.

    What follows the last end of a line is not a line.

    Args:
        read: returns the next bytes, at most so many; none at the end.
        longest: the longest line, in bytes.
        budget: for all bytes; None for no limit.

    Raises:
        TooMuchError: there is no end of a line within ``longest``, or more than the budget.
    """
    rest = bytearray()
    while chunk := read(_CHUNK_BYTES):
        if budget is not None:
            budget.use(len(chunk) + _COST_OF_LINE * chunk.count(b"\n"))
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            rest += chunk[begin : end + 1]
            begin = end + 1
            if len(rest) > longest:
                raise TooMuchError
            if line := bytes(rest).strip():
                yield line + b"\n"
            rest.clear()
        rest += chunk[begin:]
        if len(rest) > longest:
            raise TooMuchError


class SilenceWatch:
    """Notices that nothing has arrived for a while, on a thread of its own.

    Time in which nobody reads does not count, and of a pause of this process only one look does:
    what has arrived meanwhile is read first.

    Args:
        longest_s: returns the seconds without a byte; asked at each look.
        on_silence: called once.
    """

    def __init__(self, longest_s: Callable[[], float], on_silence: Callable[[], object]) -> None:
        self._longest_s = longest_s
        self._on_silence = on_silence
        self._is_over = threading.Event()
        self._steps = 0  # odd while somebody reads; only the reader changes it
        threading.Thread(target=self._look, name="silence of a line", daemon=True).start()

    def watched(self, read: Callable[[int], bytes]) -> Callable[[int], bytes]:
        """Return a function that reads, and is watched while it does."""

        def read_watched(most: int) -> bytes:
            self._steps += 1
            try:
                return read(most)
            finally:
                self._steps += 1

        return read_watched

    def close(self) -> None:
        """Watch no longer."""
        self._is_over.set()

    def _look(self) -> None:
        every_s = min(_LOOK_S, self._longest_s() / 4)
        waited_s, seen = 0.0, 0
        while not self._is_over.wait(every_s):
            steps = self._steps
            # Counted, not measured: a PC that slept has not waited.
            waited_s = waited_s + every_s if steps % 2 and steps == seen else 0.0
            seen = steps
            if waited_s > self._longest_s():
                self._on_silence()
                return
