"""Keeps the PC from falling asleep while it works without its user.

Each system's own means, which end with this process however it ends: an execution state on Windows
(SetThreadExecutionState), an inhibitor of logind on Linux (systemd-inhibit), an assertion of macOS
(caffeinate). Closing a laptop's lid, and a person who chooses Sleep, still win.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from typing import TYPE_CHECKING

if sys.platform == "win32":
    import ctypes

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

_CONTINUOUS, _SYSTEM_REQUIRED = 0x80000000, 0x00000001  # winbase.h
_COMMANDS = {
    "darwin": ("caffeinate", "-i"),
    "linux": (
        "systemd-inhibit", "--what=sleep:idle", "--mode=block", "--who=GPU Studio", "--why={why}",
    ),
}  # fmt: skip


class SleepBlock:
    """While it is held, the system does not fall asleep by itself; a context manager.

    Hold and release it in the same thread: on Windows, it belongs to a thread.

    Args:
        why: the reason, for the system's own list.
    """

    def __init__(self, why: str) -> None:
        self._why = why
        self._holder: subprocess.Popen[bytes] | None = None
        self._is_set = False

    @property
    def is_held(self) -> bool:
        """Whether the PC is kept awake; a system may refuse it."""
        return self._is_set or (self._holder is not None and self._holder.poll() is None)

    def hold(self) -> None:
        """Keep the PC awake, if its system allows it."""
        if sys.platform == "win32":
            state = _CONTINUOUS | _SYSTEM_REQUIRED
            self._is_set = bool(ctypes.windll.kernel32.SetThreadExecutionState(state))
        elif self._holder is None and (command := _command(self._why)):
            import subprocess  # 2 ms

            # The holder ends with its standard input, and so with this process.
            with contextlib.suppress(OSError):
                self._holder = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )  # fmt: skip

    def release(self) -> None:
        """Let the PC sleep again."""
        if sys.platform == "win32" and self._is_set:
            ctypes.windll.kernel32.SetThreadExecutionState(_CONTINUOUS)
        self._is_set = False
        holder, self._holder = self._holder, None
        if holder is not None:
            holder.kill()
            holder.communicate()

    def __enter__(self) -> SleepBlock:
        self.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.release()


def _command(why: str) -> list[str]:
    """Return the command that keeps this PC awake as long as it runs; empty if there is none."""
    name, *options = _COMMANDS.get(sys.platform, _COMMANDS["linux"])
    program = shutil.which(name)
    return [] if program is None else [program, *(one.format(why=why) for one in options), "cat"]
