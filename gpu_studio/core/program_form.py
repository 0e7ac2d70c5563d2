"""How this program came to this PC, and what the user types to run it or to install PyTorch.

There are three forms. An installed program has a starter of its own and a Python that is not the
user's. A checkout is run by its setup script. In an environment of the user's, the program is a
package beside others. Every advice to type something goes through `typed`.

Standard library only: the setup and the program's start use this before anything is installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from gpu_studio.core.packages_folder import VARIABLE, has_own_torch

HOME = Path(__file__).resolve().parents[2]
"""The folder that has this package."""
_NAME = "gpu-studio"
INSTALLED_MARK = "installed.json"
"""Beside the package: docs/development/installed-program.md."""
_SETUP_SCRIPT = ("packaging", "bootstrap.py")
_ENVIRONMENT = ".venv"  # which the setup script makes, as `uv sync` does
_STUDIO, _PYTHON, _PIP = "gpu-studio ", "python ", "python -m pip "
_INSTALL_ENGINE = "gpu-studio engine install "


class ProgramForm(Enum):
    """How this program came to this PC."""

    INSTALLED = "installed"
    CHECKOUT = "checkout"
    OWN_ENVIRONMENT = "own environment"


class Program(NamedTuple):
    """This program as the user types it.

    Attributes:
        form: How it came to this PC.
        start: What to type before a command, "gpu-studio".
        python: What to type for its Python.
        has_own_torch: Whether PyTorch is a package of its Python. If not, the program installs
            PyTorch itself, and its Python cannot be asked anything about it.
        has_pip: Whether its Python has pip; environments made by uv have none.
    """

    form: ProgramForm
    start: str
    python: str = "python"
    has_own_torch: bool = False
    has_pip: bool = True

    def typed(self, command: str) -> str:
        """Return a command in the form in which it works in the user's shell.

        Args:
            command: One of ours ("gpu-studio doctor"), one for Python ("python -m pip …"), or
                anything else, which stays as it is.

        Returns:
            The command; "" if it cannot be typed in this form: there is no Python of the user's.
        """
        if command.startswith(_INSTALL_ENGINE) and self.has_own_torch:
            from gpu_studio.core.wheels import choice_of_tag

            command = choice_of_tag(command.removeprefix(_INSTALL_ENGINE)).pip_command
        if command.startswith(_STUDIO):
            return f"{self.start} {command.removeprefix(_STUDIO)}"
        if not command.startswith(_PYTHON):
            return command
        if not self.has_own_torch:
            return ""
        if command.startswith(_PIP) and not self.has_pip:
            verb, _, rest = command.removeprefix(_PIP).partition(" ")
            return f"uv pip {verb} --python {self.python} {rest}"
        return f"{self.python} {command.removeprefix(_PYTHON)}"


def own_program(
    executable: str = sys.executable, home: Path = HOME, prefix: str = sys.prefix
) -> Program:
    """Return the form of this program.

    Args:
        executable: The path of this Python; empty if Python does not know it.
        home: The folder that has the package ``gpu_studio``.
        prefix: This Python's environment.
    """
    python = python_here(executable)
    if (home / INSTALLED_MARK).is_file():
        return Program(ProgramForm.INSTALLED, _starter_in(home), python)
    script = home.joinpath(*_SETUP_SCRIPT)
    has_torch = has_own_torch() and not Path(prefix, "engines").is_dir()
    if is_checkout(home, prefix):
        start = f"{'py' if os.name == 'nt' else 'python3'} {_shortened(script)} run"
        return Program(ProgramForm.CHECKOUT, start, python, has_torch)
    found = shutil.which(_NAME)
    # uv and pipx link to the scripts of an environment from a folder of the user's.
    places = [] if found is None else [_folder_of(found), _folder_of(os.path.realpath(found))]
    is_ours = _folder_of(executable) in places
    start = _NAME if is_ours else f"{python} -m gpu_studio"
    return Program(
        ProgramForm.OWN_ENVIRONMENT, start, python, has_torch, find_spec("pip") is not None
    )


def is_checkout(home: Path = HOME, prefix: str | None = None) -> bool:
    """Return whether this Python is the environment of a checkout, by its setup or by uv.

    Args:
        home: The folder that has the package ``gpu_studio``.
        prefix: This Python's environment; `sys.prefix` if None.
    """
    own = os.path.realpath(home / _ENVIRONMENT)
    here = os.path.realpath(sys.prefix if prefix is None else prefix)
    return here == own and home.joinpath(*_SETUP_SCRIPT).is_file()


OF_ANOTHER_PC = Program(ProgramForm.INSTALLED, _NAME, "python")
"""What is typed on another PC, however the program came to this one."""


def typed(command: str) -> str:
    """Return a command in the form in which it works here; see `Program.typed`."""
    return own_program().typed(command)


def install_command(package: str) -> str:
    """Return the command that installs a package where this process finds PyTorch."""
    python, folder = python_here(), os.environ.get(VARIABLE, "")
    if wheels := sorted(HOME.glob("pip-*.whl")):
        command = f"{python} {_quoted(str(wheels[0] / 'pip'))} install"
    elif find_spec("pip") is not None:
        command = f"{python} -m pip install"
    else:
        command = f"uv pip install --python {python}"
    return f"{command}{f' --target {_quoted(folder)}' if folder else ''} {package}"


def python_here(executable: str = sys.executable) -> str:
    """Return the shell command for this Python: ``python`` only if that is this very Python.

    Args:
        executable: the path of this Python; empty if Python does not know it.
    """
    folder, name = os.path.split(executable)
    if name.lower() == "pythonw.exe":  # runs the window and has no console
        executable = os.path.join(folder, "python.exe")
    found = shutil.which("python")
    if not executable or (found is not None and _normal(found) == _normal(executable)):
        return "python"
    return _quoted(executable)


def _starter_in(home: Path) -> str:
    """Return the name of an installed program's starter, or its path if the shell finds another."""
    name = f"{_NAME}.exe" if os.name == "nt" else _NAME
    starter = home / name
    found = shutil.which(_NAME)
    is_found = found is not None and os.path.realpath(found) == os.path.realpath(starter)
    return _NAME if is_found else _quoted(str(starter))


def _shortened(script: Path) -> str:
    """Return the script's path as one types it in the current folder."""
    try:
        return _quoted(str(script.relative_to(Path.cwd())))
    except (ValueError, OSError):  # elsewhere, or in a folder that is gone
        return _quoted(str(script))


def _quoted(path: str) -> str:
    if os.name == "nt":
        return f'"{path}"' if " " in path else path
    return shlex.quote(path)


def _folder_of(path: str) -> str:
    return _normal(os.path.dirname(path))


def _normal(path: str) -> str:
    # Links are not followed: an environment's Python is often a link to the system's.
    return os.path.normcase(os.path.abspath(path))
