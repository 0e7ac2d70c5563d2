"""The folder that has an installed build's PyTorch, and its way into the processes that import it.

The installed program's own folder has no PyTorch, and nothing is ever written to it. So the engine
and everything that it starts get the folder in two variables: PYTHONPATH, which any usual Python
reads at its start, and a variable of our own, for a Python whose ``._pth`` file makes it deaf to
PYTHONPATH. Standard library only.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

VARIABLE = "GPU_STUDIO_PACKAGES"
_PYTHONPATH = "PYTHONPATH"


def variables_for(folder: Path | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment variables of a process that uses a build.

    Args:
        folder: The build's packages; None if PyTorch is a package of this Python.
        environ: This process's variables.
    """
    if folder is None:
        return {}
    before = environ.get(_PYTHONPATH, "")
    joined = os.pathsep.join([str(folder), *([before] if before else [])])
    return {VARIABLE: str(folder), _PYTHONPATH: joined}


def use_packages() -> None:
    """Let this process import the build that its variables name; call it before any import."""
    folder = os.environ.get(VARIABLE, "")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)


def has_own_torch() -> bool:
    """Return whether PyTorch is a package of this Python itself; imports nothing."""
    folder = os.environ.get(VARIABLE, "")
    return PathFinder.find_spec("torch", [one for one in sys.path if one != folder]) is not None
