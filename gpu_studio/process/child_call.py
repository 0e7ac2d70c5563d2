"""A call in a child process: one message in, one answer back, with limits.

For what a stranger's file decides (a picture to decode may take hours, all memory, or a crash), and
for long painting. `child_call_main` is the child's side.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READY = b"\n"
"""What the child writes when its libraries are loaded: the time of its work begins."""
_MAIN = "gpu_studio.process.child_call_main"
_LONGEST_START_S = 30.0  # with a cold disk and a virus scanner
_TICK_S = 0.05
_LONGEST_TICK_S = 0.5  # a longer one was a sleep of the PC, which is not the child's time
_LONGEST_END_S = 2.0
_LONGEST_REASON = 300


class ChildAnswer(NamedTuple):
    """How a call ended.

    Attributes:
        content: what the child answered; as untrusted as what it was given.
        exit_code: 0 for an answer; 1 if ``content`` is the reason why there is none, in UTF-8;
            any other number, or None for a child that was killed.
        is_late: whether it was killed because it took too long.
    """

    content: bytes = b""
    exit_code: int | None = None
    is_late: bool = False

    @property
    def reason(self) -> str:
        """The reason why there is no answer, in one line; empty if the child gave none."""
        text = self.content.decode(errors="replace") if self.exit_code == 1 else ""
        return "".join(filter(str.isprintable, text))[:_LONGEST_REASON]


class ChildCall:
    """One call of ``answer(content)`` of a module, in a process of its own.

    Args:
        module: the module, as for ``python -m``.
        memory_bytes: the most memory of the child; None for no limit.
        log_path: the file for its standard error; None inherits this process's.
    """

    def __init__(
        self, module: str, *, memory_bytes: int | None = None, log_path: Path | None = None
    ) -> None:
        self._module, self._memory_bytes, self._log_path = module, memory_bytes, log_path
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self.is_cancelled = False
        self._is_ready, self._has_read = False, threading.Event()
        self._content = b""

    def cancel(self) -> None:
        """Kill the child, or do not start it. Any thread may call this; it waits for nothing."""
        with self._lock:
            self.is_cancelled = True
            child = self._child
        if child is not None:
            child.kill()

    def run(
        self,
        content: bytes,
        *,
        longest_s: float,
        most_bytes: int,
        is_over: Callable[[], bool] = lambda: False,
    ) -> ChildAnswer:
        """Return the answer; call it once, in a thread that may wait.

        A child that cannot even be killed, such as one that reads from a network drive, is left
        behind, and costs a second more.

        Args:
            content: the message.
            longest_s: the time that the child may take once it has started.
            most_bytes: a longer answer is none.
            is_over: returns whether the answer is no longer needed; asked 20 times a second.

        Raises:
            OSError: the child cannot be started.
        """
        with self._lock:
            if self.is_cancelled:
                return ChildAnswer()
            child = self._child = ChildProcess(
                _MAIN,
                [self._module, str(longest_s)],
                log_path=self._log_path,
                memory_bytes=self._memory_bytes,
            )
        exchange = (child, content, most_bytes)
        threading.Thread(target=self._exchange, args=exchange, daemon=True).start()
        is_late = False
        try:
            is_late = not self._wait(child, longest_s, is_over)
        finally:
            if not self._has_read.is_set() or len(self._content) > most_bytes:
                child.kill()
            exit_code = child.end(_LONGEST_END_S)
        if is_late or self.is_cancelled or exit_code is None or len(self._content) > most_bytes:
            return ChildAnswer(is_late=is_late)
        return ChildAnswer(self._content, exit_code)

    def _exchange(self, child: ChildProcess, content: bytes, most_bytes: int) -> None:
        """Send the message and read the answer, in a thread: either may wait forever."""
        child.send(content)
        child.close_input()
        self._is_ready = child.read(len(READY)) == READY
        self._content = child.read(most_bytes + 1)
        self._has_read.set()

    def _wait(self, child: ChildProcess, longest_s: float, is_over: Callable[[], bool]) -> bool:
        """Return whether the child closed its pipe in time, or was cancelled."""
        waited_s, was_ready, last_s = 0.0, False, time.monotonic()
        while not (self._has_read.wait(_TICK_S) or self.is_cancelled):
            if is_over():
                self.cancel()
            now_s = time.monotonic()
            waited_s += min(now_s - last_s, _LONGEST_TICK_S)
            last_s = now_s
            if self._is_ready and not was_ready:
                was_ready, waited_s = True, 0.0
            if waited_s > (longest_s if was_ready else _LONGEST_START_S):
                return False
            most, used = self._memory_bytes, footprint_bytes(child.pid)
            if most is not None and used is not None and used > most:
                child.kill()
        return True


def call_child(
    module: str,
    content: bytes,
    *,
    longest_s: float,
    most_bytes: int,
    memory_bytes: int | None,
    is_over: Callable[[], bool] = lambda: False,
) -> ChildAnswer:
    """Return a child's answer; see `ChildCall`."""
    call = ChildCall(module, memory_bytes=memory_bytes)
    return call.run(content, longest_s=longest_s, most_bytes=most_bytes, is_over=is_over)


def footprint_bytes(pid: int) -> int | None:
    """Return the memory of a process on macOS, which has no limit for it; None elsewhere.

    The source is ``ri_phys_footprint`` of proc_pid_rusage(3), at its place in rusage_info_v0.
    """
    used = None
    if sys.platform == "darwin":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            record = (ctypes.c_uint64 * 64)()
            if ctypes.CDLL(None).proc_pid_rusage(pid, 0, ctypes.byref(record)) == 0:
                used = int(record[9])
    return used
