"""A file that exists while the program runs: a leftover file means that it ended badly.

Each start locks its own file beside the log, so several windows do not disturb each other. The
system releases the lock with the process, however it ended. A file from before the PC's last start
means nothing: most PCs are switched off with programs still open.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from PySide6.QtCore import QLockFile, QSysInfo

if TYPE_CHECKING:
    from pathlib import Path


class StartMark:
    """The mark of this start.

    Args:
        folder: the folder of the log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boot = bytes(QSysInfo.bootUniqueId().data()).decode("ascii", "replace")[:8] or "0"
        self._lock = QLockFile(str(folder / f"running-{self._boot}-{os.getpid()}.lock"))
        self._lock.setStaleLockTime(0)  # never stale, however long the program runs

    def set(self) -> bool:
        """Set the mark; return whether an earlier start ended badly."""
        ended_badly = False
        for path in self._folder.glob("running-*.lock"):
            if path.name.split("-")[1] != self._boot:
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            left_behind = QLockFile(str(path))
            left_behind.setStaleLockTime(0)
            # The lock succeeds only if its process has ended; then the file is removed as well.
            if left_behind.tryLock(0):
                left_behind.unlock()
                ended_badly = True
        self._lock.tryLock(0)  # on a full disk there is no mark, and no report next time
        return ended_badly

    def clear(self) -> None:
        """Remove the mark: the program has ended properly."""
        self._lock.unlock()
