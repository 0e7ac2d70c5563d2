"""Write a file whole, so that a reader never finds a part of it."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ABANDONED_AFTER_S = 3600.0


def write_atomically(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file so that a reader finds either the old or the new contents, never a part.

    Args:
        path: The file.
        content: Its new contents.
        is_private: Whether other users of this PC may not read it; on Windows, the user's own
            folders see to that.

    Raises:
        OSError: nothing was changed.
    """
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    _remove_abandoned(path)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(part, flags, 0o600 if is_private else 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _remove_abandoned(path: Path) -> None:
    """Remove the parts of writers that were killed; one that still writes has a new part."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.????????.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > _ABANDONED_AFTER_S:
                part.unlink()


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
