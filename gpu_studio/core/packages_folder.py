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
# Where Intel's packages have their libraries, and what the system looks for them in. Their wheels
# put them beside Python's own, where PyTorch's expect them: that Python is not the build's.
_LIBRARIES = {
    "linux": ("LD_LIBRARY_PATH", "lib"),
    "win32": ("PATH", os.path.join("Library", "bin")),
}


def variables_for(
    folder: Path | None, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> dict[str, str]:
    """Return the environment variables of a process that uses a build.

    Args:
        folder: The build's packages; None if PyTorch is a package of this Python.
        environ: This process's variables.
        platform: A value of `sys.platform`.
    """
    if folder is None:
        return {}
    variables = {VARIABLE: str(folder), _PYTHONPATH: _before(environ, _PYTHONPATH, str(folder))}
    name, libraries = _libraries_of(str(folder), platform)
    if libraries:
        variables[name] = _before(environ, name, libraries)
    return variables


def use_packages() -> None:
    """Let this process import the build that its variables name; call it before any import."""
    folder = os.environ.get(VARIABLE, "")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    if sys.platform == "win32":
        _, libraries = _libraries_of(folder)
        if folder and libraries:
            os.add_dll_directory(libraries)


def _libraries_of(folder: str, platform: str = sys.platform) -> tuple[str, str]:
    """Return the variable and the folder of a build's libraries; "" if it has none of its own."""
    name, place = _LIBRARIES.get(platform, ("", ""))
    libraries = os.path.join(folder, place)
    return (name, libraries) if place and os.path.isdir(libraries) else ("", "")


def _before(environ: Mapping[str, str], name: str, first: str) -> str:
    """Return a variable with a folder before what it has."""
    before = environ.get(name, "")
    return os.pathsep.join([first, *([before] if before else [])])


def has_own_torch() -> bool:
    """Return whether PyTorch is a package of this Python itself; imports nothing."""
    folder = os.environ.get(VARIABLE, "")
    return PathFinder.find_spec("torch", [one for one in sys.path if one != folder]) is not None
