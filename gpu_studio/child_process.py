"""A child process that speaks JSON lines: how the window reaches its engine and its sensors.

The child reads requests from its standard input and writes events to the pipe that was its
standard output. Before anything else it moves both away from where native libraries read and print
(`child_streams`). It ends when its standard input closes, so a child never outlives the window,
however the window ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_LINE = 64 << 20
# "python -m" imports from the current folder before all others: in the user's own, a script that
# is called torch.py or random.py would stand for the library.
_HOME_OF_THE_PACKAGE = Path(__file__).resolve().parent.parent


def interpreter(executable: str = "", system: str = sys.platform) -> str:
    """Return the Python that children are started with: on Windows never ``pythonw.exe``.

    What a program without a console starts in its turn gets its standard streams from Windows only
    where they are named, and torchrun does not name those of its workers. A console that nobody
    sees (``CREATE_NO_WINDOW``) also keeps grandchildren from opening one that somebody does.

    Args:
        executable: an interpreter; empty is this process's own.
        system: as `sys.platform`.
    """
    executable = executable or sys.executable
    if system != "win32" or not executable.lower().endswith("pythonw.exe"):
        return executable
    beside = Path(executable).with_name("python.exe")
    return str(beside) if beside.exists() else executable


class ChildProcess:
    """One ``python -m module`` and its two pipes. `send` and `end` may be called by any thread.

    Args:
        module: what to run, as for ``python -m``.
        arguments: its arguments.
        environment: variables on top of this process's own.
        log_path: where its standard error goes; None inherits this process's.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        log_path: Path | None = None,
    ) -> None:
        log: IO[bytes] | None = open(log_path, "ab") if log_path else None  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [interpreter(), "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(environment or {})},
                cwd=_HOME_OF_THE_PACKAGE,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        finally:
            if log is not None:
                log.close()
        self._sending = threading.Lock()
        self._reading = threading.Lock()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the child still lives."""
        return self._process.poll() is None

    def send(self, line: bytes) -> bool:
        """Write one line; return False when the child is gone."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with self._sending:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError):  # a broken pipe, or closed by `end`
            return False
        return True

    def lines(self) -> Iterator[bytes]:
        """Yield the child's lines until it closes its pipe. One thread reads at a time."""
        stdout = self._process.stdout
        assert stdout is not None
        while True:
            try:
                with self._reading:
                    line = stdout.readline(LONGEST_LINE)
            except ValueError:  # closed by `end`
                return
            if not line:
                return
            yield line

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit code, negative for a signal; None when it still runs after a while."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the child now. A child inside a hung driver call may stay; it is left behind."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def end(self, timeout_s: float = 2.0) -> int | None:
        """Close the child's input, wait, kill if need be.

        Returns:
            Its exit code, negative for a signal; None where it had to be killed here.
        """
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError, ValueError):
            stdin.close()
        exit_code = self.wait(timeout_s)
        if exit_code is None:
            self.kill()
            self.wait(timeout_s)
        # A reader in another thread sees the end first; only one inside a hung child never does.
        if self._reading.acquire(timeout=timeout_s):
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._reading.release()
        return exit_code
