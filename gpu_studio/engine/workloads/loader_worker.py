"""The start of a loader's worker process. It is imported by name in a new process."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from multiprocessing.connection import wait

# A clean process that imports PyTorch once and forks the workers. Forking the engine itself would
# copy locks that its other threads hold, and its pipe to the window.
START_METHOD = "spawn" if sys.platform == "win32" else "forkserver"


def prepare_start() -> None:
    """Import PyTorch once in the process that forks the workers, not in each worker."""
    if START_METHOD == "forkserver":
        multiprocessing.set_forkserver_preload(["torch.utils.data", __name__])


def end_with_engine(worker: int) -> None:
    """Make a worker end at once when the engine ends.

    PyTorch itself watches only the process that forked the workers. That process lives as long as
    they do, so they would never end.

    Args:
        worker: the worker's number, from the loader.
    """
    engine = multiprocessing.parent_process()
    assert engine is not None

    def watch() -> None:
        wait([engine.sentinel])
        os._exit(0)

    threading.Thread(target=watch, name=f"engine of worker {worker}", daemon=True).start()
