"""Commands as they are typed on this PC: in which Python the copied line installs something.

What PyTorch cannot do is found in the Python that runs this program. A shell's ``python`` is often
another one, or none at all: a line that is copied would change something else.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys

_PYTHON = "python "
_STUDIO = "gpu-studio "


def python_here(executable: str = sys.executable) -> str:
    """Return what runs this Python in the user's shell: ``python`` only where that is this one.

    Args:
        executable: this Python's own path; may be empty where Python does not know it.
    """
    folder, name = os.path.split(executable)
    if name.lower() == "pythonw.exe":  # the window's, which has no console
        executable = os.path.join(folder, "python.exe")
    found = shutil.which("python")
    if not executable or (found is not None and _normal(found) == _normal(executable)):
        return "python"
    if os.name == "nt":
        return f'"{executable}"' if " " in executable else executable
    return shlex.quote(executable)


def typed(command: str, executable: str = sys.executable) -> str:
    """Return a command that begins with ``python`` or ``gpu-studio`` for the user's own shell."""
    python = python_here(executable)
    if command.startswith(_PYTHON):
        return f"{python} {command.removeprefix(_PYTHON)}"
    if command.startswith(_STUDIO) and not _is_ours(shutil.which("gpu-studio"), executable):
        return f"{python} -m gpu_studio {command.removeprefix(_STUDIO)}"
    return command


def _is_ours(script: str | None, executable: str) -> bool:
    """Whether a script is beside this Python, as pip puts it."""
    return script is not None and _normal(os.path.dirname(script)) == _normal(
        os.path.dirname(executable)
    )


def _normal(path: str) -> str:
    # Links are not followed: the Python of an environment is often one to the system's.
    return os.path.normcase(os.path.abspath(path))
