"""A conversation with a program on another PC; the child here is the system's ``ssh``.

It has the parts of a `ChildProcess` that an engine or a sensor reader uses. Nothing is sent before
the program there has greeted: what a login prints first is skipped, and anything else gets nothing.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING

from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.line_pipe import (
    SIGN_OF_LIFE,
    Budget,
    SilenceWatch,
    TooMuchError,
    split_lines,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_LINE = 32 << 20
"""The longest line from another PC; the largest of an engine is a map of its memory."""
_AT_ONCE_BYTES, _EACH_S_BYTES = 256 << 20, 32 << 20
_MOST_NOISE_BYTES = 64 << 10
_MOST_ERROR_BYTES = 16 << 10
_LONGEST_GREETING_S = 30.0  # after the connection: Python's start on a slow disk
_ERRORS_PATIENCE_S = 1.0


class LineChild:
    """One conversation. Any thread may call `send`, `kill` and `end`; `send` never blocks.

    Args:
        command: ssh's words.
        opening: the first line to send, after the greeting.
        reads_greeting: returns whether to talk to the program whose greeting this line is; None if
            it is no greeting.
        alive_every_s: seconds between two signs of life.
        silence_s: seconds without any byte after which the line is lost.

    Attributes:
        is_greeted: whether the program there has greeted and was accepted.
        has_flooded: whether it sent what no program of ours sends: too long, too much, no greeting.
        was_silent: whether the line was ended because nothing arrived.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        opening: bytes,
        reads_greeting: Callable[[bytes], bool | None],
        *,
        alive_every_s: float,
        silence_s: float,
        greeting_s: float = _LONGEST_GREETING_S,
    ) -> None:
        self._child = ChildProcess(command, keeps_errors=True)
        self._opening, self._reads_greeting = opening, reads_greeting
        self._alive_every_s, self._silence_s = alive_every_s, silence_s
        self.is_greeted = self.has_flooded = self.was_silent = False
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._greeting_s = greeting_s
        self._watch = SilenceWatch(self._longest_silence_s, self._on_silence)
        self._sender: threading.Thread | None = None
        self._errors = bytearray()
        self._reading_errors = threading.Thread(target=self._read_errors, daemon=True)
        self._reading_errors.start()

    @property
    def pid(self) -> int:
        """The process id of ssh here."""
        return self._child.pid

    def send(self, line: bytes) -> None:
        """Send one line, as soon as the program there has greeted."""
        self._unsent.put(line)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines from there after the greeting, until the line ends; call it once."""
        try:
            lines = split_lines(
                self._watch.watched(self._child.read_some),
                LONGEST_LINE,
                Budget(_AT_ONCE_BYTES, _EACH_S_BYTES),
            )
            noise = 0
            for line in lines:
                if self.is_greeted:
                    yield line
                    continue
                is_accepted = self._reads_greeting(line)
                if is_accepted is False:
                    return
                if is_accepted:
                    self._begin()
                    continue
                noise += len(line)
                if noise > _MOST_NOISE_BYTES:
                    raise TooMuchError
        except TooMuchError:
            self.has_flooded = True
            self.kill()
        finally:
            self._watch.close()
            self._unsent.put(None)

    def kill(self) -> None:
        """End ssh now; the program there ends with its pipe."""
        self._child.kill()

    def end(self, timeout_s: float) -> int | None:
        """Close the line, wait, and kill ssh if necessary; see `ChildProcess.end`."""
        self._watch.close()
        self._unsent.put(None)
        if self._sender is not None:
            self._sender.join(timeout_s)
            if self._sender.is_alive():  # in a full pipe, whose other end does not read
                self.kill()
        exit_code = self._child.end(timeout_s)
        self._reading_errors.join(_ERRORS_PATIENCE_S)
        if not self._reading_errors.is_alive() and self._child.errors is not None:
            self._child.errors.close()
        return exit_code

    @property
    def errors(self) -> str:
        """The beginning of what ssh and the program there wrote to standard error."""
        return bytes(self._errors).decode(errors="replace")

    def _begin(self) -> None:
        self.is_greeted = True
        self._sender = threading.Thread(target=self._send_all, name="sender of a line", daemon=True)
        self._sender.start()

    def _send_all(self) -> None:
        is_there = self._child.send(self._opening)
        while is_there:
            try:
                line = self._unsent.get(timeout=self._alive_every_s)
            except queue.Empty:
                line = SIGN_OF_LIFE
            if line is None:
                return
            is_there = self._child.send(line)

    def _longest_silence_s(self) -> float:
        # Python there may start slowly, and ssh notices a network that is gone. Only an ssh that is
        # stopped notices nothing.
        is_waited_for = not self.is_greeted and not self._child.is_stopped
        return self._greeting_s if is_waited_for else self._silence_s

    def _on_silence(self) -> None:
        self.was_silent = True
        self.kill()

    def _read_errors(self) -> None:
        stream = self._child.errors
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            # Read to the end, however much comes: a full pipe would hold ssh up.
            while chunk := stream.read(4096):
                self._errors += chunk[: _MOST_ERROR_BYTES - len(self._errors)]
