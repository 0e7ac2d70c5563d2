"""The check that is running, as a file: a crash or a restart of the PC leaves it behind.

The next start finds it, tells the interruption as a result, and can continue an overnight check.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.check_record import Interruption
from gpu_studio.core.check.check_run import CheckState  # noqa: TC001  # msgspec reads it
from gpu_studio.core.check.stages import OVERNIGHT_MINUTES
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.user_file import UnusableFileError, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE_NAME = "unfinished.json"
SAVED_EVERY_S = 60.0
_SCHEMA = 1
_LARGEST_BYTES = 4 << 20


class UnfinishedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was running when the file was written.

    ``saved_at`` is the time in ISO 8601, ``pid`` the program that runs the check.
    """

    schema: int = _SCHEMA
    saved_at: str
    pid: int
    state: CheckState

    @property
    def can_continue(self) -> bool:
        """Whether it is worth continuing: only an overnight check is."""
        return self.state.plan.minutes >= OVERNIGHT_MINUTES

    @property
    def saved_at_s(self) -> float:
        """The time of the file, in seconds since 1970."""
        return datetime.fromisoformat(self.saved_at).timestamp()

    def interruption(self, pc_started_at_s: float) -> Interruption:
        """Return what interrupted it.

        Args:
            pc_started_at_s: the start of the PC, in seconds since 1970.
        """
        return Interruption(
            after_s=self.state.elapsed_s, is_restart=pc_started_at_s > self.saved_at_s
        )


class UnfinishedFile:
    """The file with the check that is running. Its folder is shared by window and terminal.

    Args:
        folder: created with the first check.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def save(self, unfinished: UnfinishedCheck) -> None:
        """Write the file; it is never half written.

        Raises:
            StudioError: it cannot be written.
        """
        new = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with new.open("wb") as file:
                file.write(msgspec.json.encode(unfinished))
                file.flush()
                # A PC that loses its power must find the file whole.
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as error:
            reason = error.strerror or str(error)
            message = f"The state of the check cannot be saved: {reason}."
            raise StudioError(FailureKind.NOT_SAVED, message) from error

    def found(self, is_running: Callable[[int, float], bool]) -> UnfinishedCheck | None:
        """Return the check that was left behind; None if there is none.

        Args:
            is_running: `hardware.running.is_program_running`.
        """
        unfinished = self.read()
        if unfinished is None or is_running(unfinished.pid, unfinished.saved_at_s):
            return None
        return unfinished

    def is_busy(self, is_running: Callable[[int, float], bool]) -> bool:
        """Return whether a program runs a check now; see `found`."""
        unfinished = self.read()
        return unfinished is not None and is_running(unfinished.pid, unfinished.saved_at_s)

    def remove(self) -> None:
        """Remove the file, because the check is over."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def read(self) -> UnfinishedCheck | None:
        """Return what is in the file; None if there is no such file, or if it is broken."""
        try:
            text = read_user_file(self._path, _LARGEST_BYTES)
            found = msgspec.json.decode(text, type=UnfinishedCheck)
            datetime.fromisoformat(found.saved_at)
        except (UnusableFileError, msgspec.MsgspecError, RecursionError, ValueError):
            return None
        return found if found.schema == _SCHEMA else None
