"""A child process that works on until another thread asks it to stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LONGEST_END_S = 2.0


class StoppableChild:
    """Holds one child at a time. Any thread may call `ask_to_stop` and `close`.

    Args:
        entry: what the child runs; see `ChildProcess`.
        log_path: the file for the child's standard error; None inherits this process's.
    """

    def __init__(self, entry: str | Path, log_path: Path | None = None) -> None:
        self._entry, self._log_path = entry, log_path
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._is_closed = False

    def start(self, arguments: Sequence[str]) -> ChildProcess | None:
        """Start the child; None after `close`.

        Raises:
            OSError: it could not be started.
        """
        with self._lock:
            if self._is_closed:
                return None
            self._child = ChildProcess(self._entry, arguments, log_path=self._log_path)
            return self._child

    def ask_to_stop(self) -> None:
        """Close the child's input: it keeps what it has, and tells its end."""
        with self._lock:
            if self._child is not None:
                self._child.close_input()

    def close(self) -> None:
        """End the child now, and start no other one."""
        with self._lock:
            self._is_closed = True
            child = self._child
        if child is not None:
            child.end(LONGEST_END_S)
