"""Build a virtual environment with the program's packages, and lead its Python to the program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from gpu_studio.process.child_process import interpreter
from studio_setup import stamp as stamps
from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW, clean_environ

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from studio_setup.console import Console, Log
    from studio_setup.pip_runner import Pip


def make_environment(
    environment: Path, console: Console, log: Log, pass_fds: tuple[int, ...] = ()
) -> None:
    """Create an empty virtual environment; first delete an unfinished one.

    Raises:
        SetupError: It cannot be created, or it is a link to another folder.
    """
    _refuse_link(environment)
    _clear(environment, console)
    stamps.mark_ours(str(environment))
    # Inside another environment, use its base interpreter. An environment records the interpreter
    # that made it, and the Windows shortcut starts the one without a console.
    python = interpreter(getattr(sys, "_base_executable", ""))
    command = [python, "-I", "-m", "venv", str(environment)]
    log.write(f"$ {' '.join(command)}")
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        creationflags=NO_WINDOW,
        pass_fds=pass_fds,
    )
    log.write(done.stdout + done.stderr)
    if done.returncode != 0:
        raise SetupError(
            f"Python could not create the environment {environment}: "
            f"{(log.last_lines(1) or ['no reason given'])[-1]}\nThe whole log: {log.path}"
        )


def _refuse_link(environment: Path) -> None:
    """Raise if the environment is elsewhere: another copy of the program may run from there."""
    target = os.path.realpath(environment)  # follows the junctions of Windows as well
    if os.path.dirname(target) != os.path.realpath(environment.parent):
        raise SetupError(
            f"{environment} is a link to {target}, which another copy of GPU Studio may use, so "
            "nothing was changed there: remove the link, then start GPU Studio again."
        )


def _clear(environment: Path, console: Console) -> None:
    if not environment.exists() or not any(environment.iterdir()):
        return
    try:
        if stamps.is_ours(str(environment)):
            _empty(environment)
            return
        aside = environment.with_name(f"{environment.name}.other-{time.time_ns() // 10**9}")
        environment.rename(aside)
    except OSError as error:
        raise SetupError(
            f"Cannot replace {environment} ({error.strerror}): close GPU Studio and all programs "
            "that run from this folder, then start GPU Studio again."
        ) from error
    console.note(f"    Renamed a {environment.name} that is not GPU Studio's to {aside.name}.")


def _empty(environment: Path) -> None:
    # Keep the mark: if killed halfway, the folder must still be recognizable as ours.
    for path in environment.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not stamps.is_mark(path.name):
            path.unlink()


def require_space(folder: Path, needed_bytes: int) -> None:
    """Refuse a download that cannot fit on the disk; the folder need not exist yet.

    Raises:
        SetupError: The disk has less free space.
    """
    folder = next(one for one in (folder, *folder.parents) if one.exists())
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise SetupError(
            f"The installation needs {needed_bytes / 1e9:.1f} GB, but {folder} has only "
            f"{free_bytes / 1e9:.1f} GB free: free some space, then start GPU Studio again."
        )


def install_packages(
    pip: Pip, root: Path, extras: Iterable[str], newest: bool = False, torch: str = ""
) -> None:
    """Install the program's dependencies.

    Args:
        pip: pip of the environment.
        root: The checkout.
        extras: The optional dependencies to install as well.
        newest: Whether to upgrade installed packages to the newest allowed versions.
        torch: The requirement that keeps an installed PyTorch as it is; "" if it is no package of
            the environment.

    Raises:
        SetupError: pip failed.
    """
    project = read_project(stamps.python_in(str(pip.environment)), root / "pyproject.toml")
    requirements = [*project["dependencies"], *([torch] if torch else [])]
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    newer = ("--upgrade", "--upgrade-strategy", "eager") if newest else ()
    if not pip.install(*newer, *requirements):
        raise pip.failure("Installing the dependencies")
    shutil.rmtree(pip.environment / "tmp", ignore_errors=True)


def lead_to(environment: Path, *folders: Path) -> None:
    """Let the environment's Python import from folders as well: the checkout, and PyTorch's."""
    (site,) = (*environment.glob("lib/python*/site-packages"), *environment.glob("Lib/site-p*"))
    # ASCII code only: older Pythons read .pth files in the locale's encoding.
    lines = [f"import sys; sys.path.append({str(folder)!a})\n" for folder in folders]
    (site / "gpu_studio.pth").write_text("".join(lines), encoding="ascii")


def compile_program(environment: Path, root: Path) -> None:
    """Compile now, so that the window opens faster; a read-only folder loses only this speed."""
    python = stamps.python_in(str(environment))
    command = [python, "-I", "-m", "compileall", "-q", str(root / "gpu_studio")]
    subprocess.run(
        command, capture_output=True, env=clean_environ(), check=False, creationflags=NO_WINDOW
    )


# Python 3.10 has no tomllib, but its pip contains tomli.
_READ_PROJECT = """
import json, sys
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    print(json.dumps(tomllib.load(file)["project"]))
"""


def read_project(python: str, pyproject: Path) -> dict[str, Any]:
    """Return the table [project] of pyproject.toml, read by the environment's interpreter.

    Raises:
        SetupError: The file cannot be read.
    """
    command = [python, "-I", "-X", "utf8", "-c", _READ_PROJECT, str(pyproject)]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=False, creationflags=NO_WINDOW
    )
    if done.returncode != 0:
        raise SetupError(f"Cannot read {pyproject}: download GPU Studio again.")
    project: dict[str, Any] = json.loads(done.stdout)
    return project


def try_imports(environment: Path, modules: Iterable[str], log: Log) -> None:
    """Import the installed modules once, so that a broken installation fails here.

    Raises:
        SetupError: An import failed.
    """
    python = stamps.python_in(str(environment))
    code = "; ".join(f"import {module}" for module in modules)
    done = subprocess.run(
        [python, "-I", "-c", code],
        env=clean_environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        creationflags=NO_WINDOW,
    )
    log.write(f"$ {code}\n{done.stdout}{done.stderr}")
    if done.returncode == 0:
        return
    last_line = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    raise SetupError(f"{import_hint(last_line)}\n    {last_line}\nThe whole log: {log.path}")


def import_hint(last_line: str) -> str:
    """Return advice for an import that fails right after the installation."""
    if "DLL load failed" in last_line or "WinError 126" in last_line or "c10.dll" in last_line:
        return (
            "A Windows library is missing: install the Microsoft Visual C++ Redistributable "
            "(https://aka.ms/vs/17/release/vc_redist.x64.exe), then start GPU Studio again."
        )
    if "cannot open shared object file" in last_line:
        return "A system library is missing: install it (see below), then start GPU Studio again."
    return "The installed packages cannot be imported: start GPU Studio again."
