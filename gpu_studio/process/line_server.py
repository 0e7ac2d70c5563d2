"""The end of a line on the PC there: it stands between ssh's pipes and a child that works.

It ends the child, with all that the child has started, as soon as the line is cut: if its input
closes, if nobody reads its output, or if nothing arrives for a while because the network went
silent, which ssh's server notices only after minutes. The child's own pipes stay as short as those
of a window's child, so a slow line holds up no measurement.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
from typing import TYPE_CHECKING

from gpu_studio.process.line_pipe import (
    SIGN_OF_LIFE,
    SilenceWatch,
    TooMuchError,
    split_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from gpu_studio.process.child_process import ChildProcess

LONGEST_REQUEST = 64 << 20
_MOST_WAITING_BYTES = 64 << 20  # beyond, the child waits for the line
_LONGEST_END_S = 1.0


class _Waiting:
    """The child's lines that wait for the line; a full one holds the child up."""

    def __init__(self) -> None:
        self._lines: collections.deque[bytes] = collections.deque()
        self._size = 0
        self._changed = threading.Condition()
        self._has_ended = False

    def add(self, line: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._size < _MOST_WAITING_BYTES)
            self._lines.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def next(self, timeout_s: float) -> tuple[bytes, bool] | None:
        """Return the next line, and whether others wait; an empty one if none came in time.

        None after the last one.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._has_ended, timeout_s)
            if not self._lines:
                return None if self._has_ended else (b"", False)
            line = self._lines.popleft()
            self._size -= len(line)
            self._changed.notify_all()
            return line, bool(self._lines)


def serve_line(
    start: Callable[[bytes], ChildProcess],
    requests: Callable[[int], bytes],
    out: BinaryIO,
    is_droppable: Callable[[bytes], bool],
    farewell: Callable[[int | None], bytes],
    *,
    alive_every_s: float,
    silence_s: float,
) -> bool:
    """Pass lines between ssh's pipes and a child until either is gone; then the child is, too.

    Returns:
        Whether the child ended first, by itself.

    Args:
        start: starts the child that works, as the line's first one asks; raises `ValueError` for a
            line that it cannot read, and `OSError` if there can be no child.
        requests: reads ssh's input, at most so many bytes; none at its end.
        out: ssh's output.
        is_droppable: whether a line of the child may be left out while others wait behind it,
            since a slow line must not hold up a measurement.
        farewell: returns what to say last, after an end that is the child's own.
        alive_every_s: seconds between two signs of life.
        silence_s: seconds without any byte after which the line counts as cut.
    """
    is_over = threading.Event()
    waiting = _Waiting()
    watch = SilenceWatch(lambda: silence_s, is_over.set)
    ends_of_child: list[int | None] = []
    children: list[ChildProcess] = []

    def pass_requests() -> None:
        with contextlib.suppress(TooMuchError, OSError, ValueError):
            lines = split_lines(watch.watched(requests), LONGEST_REQUEST)
            for line in lines:
                if not children:
                    children.append(start(line))
                    _start_all(take_answers)
                    continue
                children[0].send(line)
        is_over.set()

    def take_answers() -> None:
        for line in children[0].lines():
            waiting.add(line)
        waiting.end()

    def pass_answers() -> None:
        with contextlib.suppress(OSError, ValueError):
            while (found := waiting.next(alive_every_s)) is not None:
                line, is_late = found
                if is_late and is_droppable(line):
                    continue
                out.write(line or SIGN_OF_LIFE)
                out.flush()
            # A child that was ended because of the line has not crashed. A PC that slept reads
            # this when it wakes.
            if not is_over.is_set():
                ends_of_child.append(children[0].wait(_LONGEST_END_S))
                out.write(farewell(ends_of_child[0]))
                out.flush()
        is_over.set()

    _start_all(pass_requests, pass_answers)
    is_over.wait()
    watch.close()
    for child in children:
        child.kill()
        child.end(_LONGEST_END_S)
    return bool(ends_of_child)


def _start_all(*works: Callable[[], None]) -> None:
    for work in works:
        threading.Thread(target=work, name=work.__name__, daemon=True).start()


def reader_of(descriptor: int) -> Callable[[int], bytes]:
    """Return a function that reads what a descriptor has, without waiting for more."""
    return lambda most: os.read(descriptor, most)
