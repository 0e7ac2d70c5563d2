"""A lock: only one setup at a time in a folder."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from gpu_studio.core.user_file import try_lock
from studio_setup.console import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from studio_setup.console import Console

_POLL_S = 0.5


@contextlib.contextmanager
def one_at_a_time(path: Path, console: Console) -> Iterator[tuple[int, ...]]:
    """Hold the lock; wait while another setup has it.

    The system releases the lock when its holder ends, however it ends.

    Yields:
        The `pass_fds` for children that write into the environment (empty on Windows). They
        inherit the lock, so if the setup is killed, the lock lasts until its pip ends.

    Raises:
        SetupError: The folder cannot be written to.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise SetupError(
            f"GPU Studio cannot write to {path.parent.parent} ({error.strerror}): copy GPU Studio "
            "to a folder in your home folder and start it there."
        ) from error
    try:
        if not try_lock(descriptor):
            console.note(
                "Another GPU Studio setup is running in this folder: waiting for it to finish "
                "(press Ctrl+C to stop waiting)."
            )
            while not try_lock(descriptor):
                time.sleep(_POLL_S)
        yield () if sys.platform == "win32" else (descriptor,)
    finally:
        os.close(descriptor)
