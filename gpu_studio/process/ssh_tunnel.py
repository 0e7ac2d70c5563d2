"""Ports of this PC and of another one, joined by the system's own ``ssh`` until the tunnel ends.

Both ends of every port are on a loopback address, so nothing is open to a network.
"""

from __future__ import annotations

import contextlib
import re
import threading

from gpu_studio.process.child_process import ChildProcess

_ALLOCATED = re.compile(r"Allocated port (\d{1,5}) for remote forward")
_MOST_ERROR_BYTES = 16 << 10
_LONGEST_END_S = 1.0


class SshTunnel:
    """One ``ssh -N``, which ends with this object or with this process.

    Args:
        command: ssh's words, whose last forward asks the other PC for any free port. ssh has
            opened all others when it says which (ssh(1), ``-R``).

    Attributes:
        errors: the beginning of what ssh wrote.
        port_there: that port; None until the tunnel stands.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        self._child = ChildProcess(command, keeps_errors=True)
        self.errors = ""
        self.port_there: int | None = None
        self._changed = threading.Event()
        self._reader = threading.Thread(target=self._read, name="tunnel", daemon=True)
        self._reader.start()

    def wait(self, timeout_s: float) -> bool:
        """Return whether the tunnel stands; waits until it does, fails, or the time is over."""
        self._changed.wait(timeout_s)
        return self.port_there is not None

    def exit_code(self) -> int | None:
        """Return ssh's exit code; None if it still runs."""
        return self._child.wait(0)

    def close(self) -> None:
        """End ssh, and with it all ports."""
        self._child.kill()
        self._child.end(_LONGEST_END_S)
        self._reader.join(_LONGEST_END_S)
        if not self._reader.is_alive() and self._child.errors is not None:
            self._child.errors.close()

    def _read(self) -> None:
        stream = self._child.errors
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(_MOST_ERROR_BYTES):
                # Read to the end, however much comes: a full pipe would hold ssh up.
                if len(self.errors) < _MOST_ERROR_BYTES:
                    self.errors += line.decode(errors="replace")
                found = _ALLOCATED.search(self.errors)
                if found is not None and 0 < int(found[1]) < 1 << 16:
                    self.port_there = int(found[1])
                    self._changed.set()
        self._changed.set()
