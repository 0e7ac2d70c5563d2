"""What a user's code may do to the engine's process, and what it may not.

It runs with the user's rights, in a child of its own. What it prints is kept up to a limit, nobody
can answer its questions, and a thread looks at its time and its memory: what never ends, or fills
the PC, ends the child with a sentence.
"""

from __future__ import annotations

import builtins
import contextlib
import faulthandler
import io
import logging
import os
import sys
import tempfile
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import psutil

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.units import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

LONGEST_CALL_S = 120.0
_MOST_PRINTED = 16_000  # characters of a side: a pane of some hundred lines
_MEMORY_SHARE = 0.9  # of what was free, so that the window and the system go on
_LOOK_S = 0.25


class Prints(io.TextIOBase):
    """Takes what is printed: the beginning is kept to be shown, the rest is only counted."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._room = _MOST_PRINTED
        self.count = 0
        self.is_muted = False
        """Whether it was shown before: each later call prints the same."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Keep a text as far as there is room."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.count += len(text)
        if not self.is_muted and self._room > 0 and text:
            self._kept.append(text[: self._room])
            self._room -= len(text)
            if self._room <= 0:
                self._kept.append("\n… (the rest is left out)\n")
        return len(text)

    @property
    def buffer(self) -> io.RawIOBase:
        """What takes bytes."""
        return _PrintedBytes(self)

    def take(self) -> str:
        """Return what was printed since the last time, and make room for the next side."""
        kept, self._kept, self._room = "".join(self._kept), [], _MOST_PRINTED
        return kept


class _PrintedBytes(io.RawIOBase):
    def __init__(self, prints: Prints) -> None:
        self._prints = prints

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self._prints.write(bytes(content).decode(errors="replace"))


PRINTS = Prints()


def _no_answer(*_: object) -> NoReturn:
    raise EOFError("input() has nobody to ask here")


_EXIT, _PROCESS = os._exit, os.getpid()


def _no_exit(status: int) -> NoReturn:
    if os.getpid() != _PROCESS:  # a child that the code made by a fork, such as a loader's worker
        _EXIT(status)
    raise SystemExit(status)


def take_over(path: str) -> None:
    """Give the user's code this process: its streams, arguments and folder.

    What a library prints below Python, or a program that is started, is printed as well. The
    engine's log keeps a descriptor of its own.

    Args:
        path: the script's file; empty for pasted code.
    """
    log = os.fdopen(os.dup(2), "w", buffering=1, errors="replace")
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(log)
    faulthandler.enable(log)
    reading, writing = os.pipe()
    for descriptor in (1, 2):
        os.dup2(writing, descriptor)
    os.close(writing)
    threading.Thread(target=_drain, args=(reading,), name="printed", daemon=True).start()
    sys.stdout = sys.stderr = PRINTS
    builtins.input, os._exit = _no_answer, _no_exit
    os.environ.setdefault("MPLBACKEND", "Agg")  # matplotlib opens no windows
    folder = os.path.dirname(path) or tempfile.gettempdir()
    sys.argv, sys.path[:] = [path or NAME], [*sys.path, folder]
    with contextlib.suppress(OSError):
        os.chdir(folder)


def _drain(descriptor: int) -> None:
    while content := os.read(descriptor, 1 << 16):
        PRINTS.write(content.decode(errors="replace"))


class CodeLimits:
    """Looks at a user's code that runs, from a thread.

    Attributes:
        lost: called with the reason if it has to end; ends the process.
        calls: how many calls have begun; each call counts itself.
        is_running: whether the user's code runs, or something that calls it again and again.
        longest_s: how long one call may take.
    """

    def __init__(self) -> None:
        self.lost: Callable[[Failure], object] | None = None
        self.calls, self.is_running = 0, False
        self.longest_s = LONGEST_CALL_S
        self._main = threading.get_ident()
        self._most_bytes = 0

    def start(self, lost: Callable[[Failure], object]) -> None:
        """Look from now on at the calls of this thread."""
        self.lost, self._main = lost, threading.get_ident()
        used = psutil.Process().memory_info().rss
        self._most_bytes = used + int(_MEMORY_SHARE * psutil.virtual_memory().available)
        threading.Thread(target=self._look, name="limits", daemon=True).start()

    def _look(self) -> None:
        process, tick = psutil.Process(), threading.Event()
        calls, waited_s = 0, 0.0
        while not tick.wait(_LOOK_S):
            waited_s = waited_s + _LOOK_S if self.is_running and calls == self.calls else 0.0
            calls = self.calls
            if waited_s > self.longest_s:
                self._end(
                    f"One run of your code takes longer than {format_duration(self.longest_s)} "
                    "here, or never ends. Make it smaller: fewer steps, or smaller tensors."
                )
            elif process.memory_info().rss > self._most_bytes:
                self._end(
                    "Your code needs more memory than this PC has free: "
                    f"{format_bytes(self._most_bytes)} are in use now. Make its tensors smaller."
                )

    def _end(self, sentence: str) -> None:
        assert self.lost is not None
        line = line_of(sys._current_frames().get(self._main))
        where = f"Line {line}: " if line else ""
        self.lost(Failure(FailureKind.OWN_CODE, f"{where}{sentence}", fatal=True))


WATCH = CodeLimits()
NAME = "<your code>"
"""What Python calls the file of a user's code: so its lines are known wherever they run."""


def line_of(frame: FrameType | None) -> int:
    """Return the line of the user's code in which something happens; 0 outside it."""
    while frame is not None:
        if frame.f_code.co_filename == NAME:
            return frame.f_lineno or 0
        frame = frame.f_back
    return 0


def threads_left() -> int:
    """Return how many other threads run the user's code now."""
    here = threading.get_ident()
    frames = sys._current_frames()
    return sum(bool(line_of(frame)) for thread, frame in frames.items() if thread != here)
