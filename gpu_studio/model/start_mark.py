"""A file that stands as long as the program runs: one that was left behind tells of a bad end.

Each start locks a file of its own beside the log, so several windows do not disturb each other. The
system forgets the lock with the process, whatever ended it. A file from before the PC was started
again says nothing: most PCs are switched off over open programs.
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
        folder: where the log is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._boot = bytes(QSysInfo.bootUniqueId().data()).decode("ascii", "replace")[:8] or "0"
        self._lock = QLockFile(str(folder / f"running-{self._boot}-{os.getpid()}.lock"))
        self._lock.setStaleLockTime(0)  # however long it runs

    def take(self) -> bool:
        """Set the mark; return whether an earlier start did not end as it should."""
        ended_badly = False
        for path in self._folder.glob("running-*.lock"):
            if path.name.split("-")[1] != self._boot:
                with contextlib.suppress(OSError):
                    path.unlink()
                continue
            left_behind = QLockFile(str(path))
            left_behind.setStaleLockTime(0)
            # Locked at once only where its process is no more; then its file goes away, too.
            if left_behind.tryLock(0):
                left_behind.unlock()
                ended_badly = True
        self._lock.tryLock(0)  # on a full disk there is no mark, and nothing to tell next time
        return ended_badly

    def clear(self) -> None:
        """Take the mark away: this start has ended as it should."""
        self._lock.unlock()
