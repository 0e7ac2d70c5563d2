"""Build a virtual environment with PyTorch, the program's dependencies and the program."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.child_process import interpreter
from studio_setup import stamp as stamps
from studio_setup.console import SetupError
from studio_setup.launch import NO_WINDOW, clean_environ
from studio_setup.project_wheel import build_pointer_wheel, read_project

if TYPE_CHECKING:
    from collections.abc import Iterable

    from studio_setup.console import Console, Log
    from studio_setup.pip_runner import Pip


def make_environment(
    environment: Path, console: Console, log: Log, pass_fds: tuple[int, ...] = ()
) -> None:
    """Make an empty virtual environment; one that was not finished is deleted first.

    Raises:
        SetupError: It cannot be made.
    """
    _clear(environment, console)
    stamps.mark_ours(str(environment))
    # From inside another environment, the interpreter below it. An environment remembers what it
    # was made by, and Windows' shortcut is of the one without a console.
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
            f"Making the environment {environment} did not work: "
            f"{(log.last_lines(1) or ['no reason given'])[-1]}\nThe whole log: {log.path}"
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
            f"{environment} cannot be replaced ({error.strerror}): close GPU Studio and whatever "
            "else runs from it, then start this again."
        ) from error
    console.note(f"    There was a {environment.name} that is not GPU Studio's: now {aside.name}.")


def _empty(environment: Path) -> None:
    # The mark stays: a kill in the middle must leave a folder that is known as ours.
    for path in environment.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif not stamps.is_mark(path.name):
            path.unlink()


def require_space(folder: Path, needed_bytes: int) -> None:
    """Refuse before a download that cannot fit; the folder need not be there yet.

    Raises:
        SetupError: Less is free on that disk.
    """
    folder = next(one for one in (folder, *folder.parents) if one.exists())
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise SetupError(
            f"The installation needs {needed_bytes / 1e9:.1f} GB and {free_bytes / 1e9:.1f} GB are "
            f"free at {folder}: free some space, then start this again."
        )


def install_project(
    pip: Pip, root: Path, pinned_torch: str, extras: Iterable[str], newest: bool = False
) -> None:
    """Install what the program needs, and the program as a pointer to the checkout.

    Args:
        pip: pip of the environment, which has PyTorch already.
        root: The checkout.
        pinned_torch: The requirement that keeps PyTorch as it is.
        extras: The optional dependencies to install too.
        newest: Whether what is there is replaced by the newest versions that are allowed.

    Raises:
        SetupError: pip failed.
    """
    environment = pip.environment
    python = stamps.python_in(str(environment))
    project = read_project(Path(python), root / "pyproject.toml")
    requirements = [pinned_torch, *project["dependencies"]]
    for extra in extras:
        requirements += project["optional-dependencies"][extra]
    newer = ("--upgrade", "--upgrade-strategy", "eager") if newest else ()
    if not pip.install(*newer, *requirements):
        raise pip.failure("Installing what the program needs")
    wheel = build_pointer_wheel(project, root, environment / "tmp")
    if not pip.install("--no-index", "--no-deps", "--force-reinstall", str(wheel)):
        raise pip.failure("Installing the program")
    shutil.rmtree(environment / "tmp", ignore_errors=True)
    # The window is there sooner where nothing has to be compiled first; a folder that may not be
    # written to only costs that.
    command = [python, "-I", "-m", "compileall", "-q", str(root / "gpu_studio")]
    subprocess.run(
        command, capture_output=True, env=clean_environ(), check=False, creationflags=NO_WINDOW
    )


def try_imports(environment: Path, modules: Iterable[str], log: Log) -> None:
    """Import once what was installed, so that a broken installation is found here.

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
    """What to do about an import that fails right after the installation."""
    if "DLL load failed" in last_line or "WinError 126" in last_line or "c10.dll" in last_line:
        return (
            "A Windows library is missing: install the Microsoft Visual C++ Redistributable "
            "(https://aka.ms/vs/17/release/vc_redist.x64.exe), then start this again."
        )
    if "cannot open shared object file" in last_line:
        return "A system library is missing: install the one named here, then start this again."
    return "What was installed cannot be imported: start this again."
