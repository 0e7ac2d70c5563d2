"""A conversation with a program on another PC; the child here is the system's ``ssh``.

Nothing is sent before the program there has greeted: what a login prints first is skipped, and
anything else gets nothing. An empty line is a sign of life: this end sends one where it has nothing
else to say, and the end there takes a line that stays silent for lost. Here, ssh does so itself.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING

from gpu_studio.core import limits
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALIVE_EVERY_S = 2.0
SIGN_OF_LIFE = b"\n"
_LONGEST_LINE = 32 << 20  # the largest of an engine is a map of its memory
_AT_ONCE_BYTES, _EACH_S_BYTES = 256 << 20, 32 << 20
_COST_OF_LINE = 256  # bytes: a line takes time, however short it is
_CHUNK_BYTES = 1 << 16
_MOST_NOISE_BYTES = 64 << 10
_MOST_ERROR_BYTES = 16 << 10
_ERRORS_PATIENCE_S = 1.0


class TooMuchError(Exception):
    """A line is longer than allowed, or there are too many bytes."""


def split_lines(read: Callable[[int], bytes], longest: int) -> Iterator[bytes]:
    """Yield the lines of a stream with their ends, without the empty ones.

    What follows the last end of a line is not a line.

    Args:
        read: returns the next bytes, at most so many; none at the end.
        longest: the longest line, in bytes.

    Raises:
        TooMuchError: there is no end of a line within ``longest``.
    """
    rest = bytearray()
    while chunk := read(_CHUNK_BYTES):
        for part in chunk.splitlines(keepends=True):
            rest += part
            if len(rest) > longest:
                raise TooMuchError
            if part.endswith(b"\n"):
                if line := bytes(rest).strip():
                    yield line + b"\n"
                rest.clear()


class LineChild(ChildProcess):
    """One conversation. Any thread may call `send`, `kill` and `end`; `send` never blocks.

    Args:
        command: ssh's words.
        opening: the first line to send, after the greeting.
        accepts: returns whether to talk to the program whose greeting this line is; None if it is
            no greeting.

    Attributes:
        is_greeted: whether the program there has greeted and was accepted.
        has_flooded: whether it sent what no program of ours sends: too long, too much, no greeting.
        was_silent: whether it was ended because nothing there greeted.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        opening: bytes,
        accepts: Callable[[bytes], bool | None],
    ) -> None:
        super().__init__(command, keeps_errors=True)
        self._opening, self._accepts = opening, accepts
        self.is_greeted = self.has_flooded = self.was_silent = False
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._errors = bytearray()
        self._received, self._began_s = 0, time.monotonic()
        self._sender = threading.Thread(target=self._send_all, daemon=True)
        self._reading_errors = threading.Thread(target=self._read_errors, daemon=True)
        self._reading_errors.start()
        self._waiting = threading.Timer(limits.current.greeting_s, self._on_silence)
        self._waiting.daemon = True
        self._waiting.start()

    def send(self, line: bytes) -> bool:
        """Send one line, as soon as the program there has greeted."""
        self._unsent.put(line)
        return True

    def lines(self) -> Iterator[bytes]:
        """Yield the lines from there after the greeting, until the line ends; call it once."""
        noise = 0
        try:
            for line in split_lines(self._read_within_budget, _LONGEST_LINE):
                if self.is_greeted:
                    yield line
                    continue
                is_accepted = self._accepts(line)
                if is_accepted is None:
                    noise += len(line)
                    if noise > _MOST_NOISE_BYTES:
                        raise TooMuchError
                    continue
                if not is_accepted:
                    return
                self._waiting.cancel()
                self._sender.start()
                self.is_greeted = True
        except TooMuchError:
            self.has_flooded = True
            self.kill()
        finally:
            self._waiting.cancel()
            self._unsent.put(None)

    def end(self, timeout_s: float = 2.0) -> int | None:
        """Close the line, wait, and kill ssh if necessary; see `ChildProcess.end`."""
        self._waiting.cancel()
        self._unsent.put(None)
        if self.is_greeted:
            self._sender.join(timeout_s)
            if self._sender.is_alive():  # in a full pipe, whose other end does not read
                self.kill()
        exit_code = super().end(timeout_s)
        self._reading_errors.join(_ERRORS_PATIENCE_S)
        if not self._reading_errors.is_alive() and self.errors is not None:
            self.errors.close()
        return exit_code

    @property
    def error_text(self) -> str:
        """The beginning of what ssh and the program there wrote to standard error."""
        return bytes(self._errors).decode(errors="replace")

    def _read_within_budget(self, most: int) -> bytes:
        chunk = self.read_some(most)
        self._received += len(chunk) + _COST_OF_LINE * chunk.count(b"\n")
        spent_s = time.monotonic() - self._began_s
        if self._received > _AT_ONCE_BYTES + _EACH_S_BYTES * spent_s:
            raise TooMuchError
        return chunk

    def _send_all(self) -> None:
        is_there = super().send(self._opening)
        while is_there:
            try:
                line = self._unsent.get(timeout=ALIVE_EVERY_S)
            except queue.Empty:
                line = SIGN_OF_LIFE
            if line is None:
                return
            is_there = super().send(line)

    def _on_silence(self) -> None:
        self.was_silent = True
        self.kill()
        self.close_input()  # what ssh started may hold its pipes

    def _read_errors(self) -> None:
        assert self.errors is not None
        with contextlib.suppress(OSError, ValueError):
            # Read to the end, however much comes: a full pipe would hold ssh up.
            while chunk := self.errors.read(4096):
                self._errors += chunk[: _MOST_ERROR_BYTES - len(self._errors)]
