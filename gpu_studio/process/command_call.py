"""A call of another program: no input, a limit of time, and a little of what it prints."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from gpu_studio.process.child_call import ChildAnswer
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TICK_S = 0.05
_ERROR_LINES = 20  # the last ones, of which the very last says why


def call_command(
    command: tuple[str, ...],
    variables: Mapping[str, str],
    *,
    longest_s: float,
    most_bytes: int,
    is_over: Callable[[], bool] = lambda: False,
) -> ChildAnswer:
    """Return what a program prints; with exit code 1, the last line of its errors.

    It ends with all that it has started, at the latest when its time is over.

    Args:
        command: its words.
        variables: all its environment variables.
        longest_s: how long it may take.
        most_bytes: what is read of it; more is dropped.
        is_over: returns whether the answer is no longer needed; asked 20 times a second.
    """
    try:
        child = ChildProcess(command, inherited=variables, keeps_errors=True)
    except OSError as error:
        return ChildAnswer(str(error.strerror or error).encode(), 1)
    child.close_input()
    content: list[bytes] = []
    errors: deque[bytes] = deque(maxlen=_ERROR_LINES)
    readers = [
        threading.Thread(target=_read_some, args=(child, content, most_bytes), daemon=True),
        threading.Thread(target=_read_lines, args=(child, errors), daemon=True),
    ]
    for reader in readers:
        reader.start()
    deadline_s = time.monotonic() + longest_s
    while any(map(threading.Thread.is_alive, readers)):
        if is_over() or time.monotonic() > deadline_s:
            child.kill()
            child.end()
            return ChildAnswer(is_late=not is_over())
        readers[0].join(_TICK_S)
        readers[1].join(_TICK_S)
    exit_code = child.end()
    if exit_code == 0:
        return ChildAnswer(b"".join(content), 0)
    return ChildAnswer(errors[-1].strip() if errors else b"", 1)


def _read_some(child: ChildProcess, content: list[bytes], most_bytes: int) -> None:
    """Keep the first bytes, and read on: a full pipe would hold the program."""
    while part := child.read_some(most_bytes):
        if sum(map(len, content)) < most_bytes:
            content.append(part)


def _read_lines(child: ChildProcess, errors: deque[bytes]) -> None:
    assert child.errors is not None
    with child.errors as lines:
        errors.extend(lines)
