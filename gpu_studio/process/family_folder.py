"""The folder for the temporary files of a child process and of all that it starts.

It goes when its family ends. A program that is killed cannot remove it, so the next start does.
The folder's owner holds a lock on a file in it, which the system takes back however the owner
ends. A folder whose file is locked has a living owner. One without the file is not ours, or its
owner is just about to lock it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import threading
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_PREFIX = "gpu-studio-"
_OWNER = "owner.lock"


class FamilyFolder:
    """A new temporary folder and the lock on it.

    Raises:
        OSError: the system's temporary folder cannot be written to.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock: int | None = None
        self._closing = threading.Lock()
        with contextlib.suppress(OSError):  # a disk without locks: it is never taken for left over
            self._lock = _locked(self.path / _OWNER)

    def close(self) -> None:
        """Remove the folder with all that is in it; a second call does nothing.

        The thread that reads a child and the one that closes it may both call this at once.
        """
        with self._closing:
            lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)  # Windows removes no file that is open
        with contextlib.suppress(OSError):  # another start removes it at the same time
            _remove(self.path)


def remove_left_over() -> None:
    """Remove the folders of this user's programs that were killed.

    A folder with a living owner, another user's folder, and what only a link leads to stay.
    """
    try:
        folders = list(os.scandir(tempfile.gettempdir()))
    except OSError:
        return
    for folder in folders:
        if folder.name.startswith(_PREFIX):
            with contextlib.suppress(OSError):  # locked, or removed by another start meanwhile
                if _is_own_folder(folder.stat(follow_symlinks=False)):
                    _remove_unlocked(Path(folder.path))


def _remove(folder: Path) -> None:
    """Remove a folder, and the lock's file last: if something stays, a later start removes it.

    On Windows, a file stays while a process has it open, also one that was just killed.
    """
    for path in folder.iterdir():
        if path.name != _OWNER:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
    if all(path.name == _OWNER for path in folder.iterdir()):
        shutil.rmtree(folder, ignore_errors=True)


def _is_own_folder(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and (
        sys.platform == "win32" or status.st_uid == os.getuid()
    )


if sys.platform == "win32":

    def _locked(path: Path) -> int:
        """Return the new file's descriptor: while it is open, Windows does not remove the file."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)

    def _remove_unlocked(folder: Path) -> None:
        (folder / _OWNER).unlink()
        _remove(folder)
        if folder.exists():
            (folder / _OWNER).touch()

else:

    def _locked(path: Path) -> int:
        """Return the new file's descriptor; it is locked before it has its name."""
        unnamed = path.with_suffix(".new")
        lock = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unnamed.rename(path)
        except OSError:
            os.close(lock)
            raise
        return lock

    def _remove_unlocked(folder: Path) -> None:
        """Remove a folder, while holding its lock.

        Raises:
            OSError: its owner lives, or it has no file to lock.
        """
        lock = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if stat.S_ISREG(os.fstat(lock).st_mode):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
        finally:
            os.close(lock)
