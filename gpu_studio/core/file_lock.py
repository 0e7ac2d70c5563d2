"""Lock a file for this process: the system releases the lock when the process ends."""

from __future__ import annotations

import sys


def try_lock(descriptor: int) -> bool:
    """Lock an open file, which the system unlocks with its holder's end; return whether it did."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
