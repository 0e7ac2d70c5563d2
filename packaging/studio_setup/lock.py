"""One set-up at a time in one folder."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from studio_setup.console import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from studio_setup.console import Console

_POLL_S = 0.5


@contextlib.contextmanager
def one_at_a_time(path: Path, console: Console) -> Iterator[tuple[int, ...]]:
    """Hold the lock, waiting while another set-up has it.

    The system releases the lock when its holder ends, however it ends.

    Yields:
        The `pass_fds` for children that write into the environment (empty on Windows): they hold
        the lock too, so that it outlives a killed set-up for as long as its pip is at work.

    Raises:
        SetupError: The folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SetupError(
            f"The folder {path.parent.parent} cannot be written to ({error.strerror}): "
            "copy GPU Studio to a folder of your own and start it there."
        ) from error
    try:
        if not _try_lock(descriptor):
            console.note(
                "Another set-up of GPU Studio is at work in this folder: waiting for it to end "
                "(Ctrl+C stops waiting)."
            )
            while not _try_lock(descriptor):
                time.sleep(_POLL_S)
        yield () if sys.platform == "win32" else (descriptor,)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
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
