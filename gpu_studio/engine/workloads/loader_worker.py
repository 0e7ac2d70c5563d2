"""What a loader's worker process does first. Importable by name: workers start from nothing."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from multiprocessing.connection import wait

# A clean process that has imported PyTorch once and forks the workers: forking the engine itself
# would copy its locks as they are while its other threads hold them, and its pipe to the window.
START_METHOD = "spawn" if sys.platform == "win32" else "forkserver"


def prepare_start() -> None:
    """Have PyTorch imported once where workers are forked from, not in each of them."""
    if START_METHOD == "forkserver":
        multiprocessing.set_forkserver_preload(["torch.utils.data", __name__])


def end_with_engine(worker: int) -> None:
    """Make a worker end at once when the engine does.

    PyTorch's own watch looks after the process that forked the workers, which lives as long as
    they do: they would stay for good.

    Args:
        worker: its number, which the loader tells.
    """
    engine = multiprocessing.parent_process()
    assert engine is not None

    def watch() -> None:
        wait([engine.sentinel])
        os._exit(0)

    threading.Thread(target=watch, name=f"engine of worker {worker}", daemon=True).start()
