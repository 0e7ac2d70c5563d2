"""Runs a script, and ends when its engine ends, however the engine ends.

It is started by its path, with the script's path as argument. The script runs as
``python script.py`` would run it. Standard input is the engine's end of a pipe, which the system
closes with the engine. Only the standard library is used, because the script's own imports come
later.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import threading
from pathlib import Path


def end_with_engine(folder: Path) -> None:
    """End this process and remove the script's folder when standard input ends."""
    lifeline = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)  # the script has no input
    os.close(null)

    def watch() -> None:
        os.read(lifeline, 1)
        os.chdir(folder.parent)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=watch, name="engine", daemon=True).start()


if __name__ == "__main__":
    script = Path(sys.argv.pop(1))
    # Here and not by the engine: Windows removes no folder that a process is in, and the program
    # that starts Python in an environment would be in it.
    os.chdir(script.parent)
    end_with_engine(script.parent)
    sys.path[0] = str(script.parent)
    runpy.run_path(str(script), run_name="__main__")
