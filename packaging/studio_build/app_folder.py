"""The folder of the installed program, as docs/development/installed-program.md describes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.builds.lock_file import read_lock
from studio_build import licenses, python_for_windows, window_packages
from studio_build.console import BuildError, run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PROGRAM = ("gpu_studio", "resources")
_FILES = ("pyproject.toml", "uv.lock", "LICENSE")
# Debian 13, Ubuntu 25.04 and newer have the window's packages; its Python is the first of them.
DEBIAN_MINOR = 13
_DEBIANS_PACKAGES = "/usr/lib/python3/dist-packages"
# Not pyqtgraph: Debian's brings PyQt5, PyQt6, scipy and compilers, 230 MB more.
_OF_DEBIAN = {
    "msgspec": "msgspec",
    "numpy": "numpy",
    "platformdirs": "platformdirs",
    "psutil": "psutil",
    "pyside6-essentials": "PySide6",
    "shiboken6": "shiboken6",
    "typing-extensions": "typing_extensions.py",
}
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
_ENGINE = (
    "import os, sys; p = os.environ.get('GPU_STUDIO_PACKAGES'); "
    "p and p not in sys.path and sys.path.insert(0, p)"
)
_PATH_FILE = "gpu-studio.pth"


class Program(NamedTuple):
    """What is built.

    Attributes:
        root: The checkout.
        version: For example "0.1.0".
        epoch: The time of all files, in seconds since 1970.
    """

    root: Path
    version: str
    epoch: int


def program_of(root: Path) -> Program:
    """Return what a checkout builds; its time is SOURCE_DATE_EPOCH, or that of its last commit.

    Raises:
        BuildError: the checkout tells no version, or no time.
    """
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(\d+\.\d+\.\d+)"$', text, re.MULTILINE)
    if version is None:
        raise BuildError("pyproject.toml has no version of three numbers.")
    return Program(root, version[1], _epoch(root))


def _epoch(root: Path) -> int:
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(epoch)
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    try:
        return int(run(command))
    except (BuildError, ValueError) as error:
        raise BuildError("This is not a git checkout: set SOURCE_DATE_EPOCH.") from error


def make_windows(program: Program, python: Path, wheels: Path | None, work: Path) -> Path:
    """Make the folder for Windows, without its starter.

    Args:
        program: what is built.
        python: an embeddable package of CPython, as a zip file or unpacked.
        wheels: a folder of wheels; None downloads them.
        work: where the folder is made; downloads are kept there as well.

    Raises:
        BuildError: it cannot be made; the text says why.
    """
    app = _empty(work / "app-windows")
    embedded = python_for_windows.copy(python, app / "python")
    folder = work / "wheels-windows"
    lines = _lock(program, embedded.minor)
    window_packages.download(lines, "windows", embedded.minor, folder, wheels)
    for wheel in sorted(folder.glob("*.whl")):
        window_packages.unpack(wheel, app / "packages", "windows")
    python_for_windows.share_runtime(app / "packages" / "PySide6", app / "python")
    _copy_program(program, app, folder)
    site = app / "python" / "Lib" / "site-packages"
    _write_path_file(site, ("packages",))
    licenses.collect(app, python=embedded.version)
    _mark(program, app, "windows", {"python": embedded.version, "python_sha256": embedded.sha256})
    _compile(app, embedded.minor)
    return app


def make_linux(
    program: Program, wheels: Path | None, work: Path, newest_minor: int | None = None
) -> Path:
    """Make the self-contained folder for Linux, without its starter and without its mark.

    Args:
        program: what is built.
        wheels: a folder of wheels; None downloads them.
        work: where the folder is made; downloads are kept there as well.
        newest_minor: the N of the newest Python 3.N that it is for; None for all.

    Raises:
        BuildError: it cannot be made; the text says why.
    """
    app = _empty(work / "app-linux")
    minors = [one for one in _minors(program.root) if newest_minor is None or one <= newest_minor]
    lines = {
        minor: window_packages.with_shared_numpy(_lock(program, minor), minor) for minor in minors
    }
    folders = {}
    for minor, wanted in lines.items():
        folders[minor] = work / f"wheels-linux-3.{minor}"
        window_packages.download(wanted, "linux", minor, folders[minor], wheels)
    own = own_folders(lines)
    for minor, folder in folders.items():
        for wheel in sorted(folder.glob("*.whl")):
            name = window_packages.normal_name(wheel.name.split("-")[0])
            place = own[minor].get(name, "packages")
            window_packages.unpack(wheel, app / place, "linux")
        site = app / "lib" / f"python3.{minor}" / "site-packages"
        _write_path_file(site, (*sorted(own[minor].values()), "packages"))
    _finish_linux(program, app, folders[max(folders)])
    return app


def make_on_debian(program: Program, wheels: Path | None, work: Path) -> Path:
    """Make the folder for a Debian whose own packages the window can use.

    Links lead to those packages, and to nothing else of the system's Python. Arguments, and what it
    raises, are those of `make_linux`.
    """
    app = _empty(work / "app-debian")
    minors = [one for one in _minors(program.root) if one >= DEBIAN_MINOR]
    lines = [
        line for line in _lock(program, minors[-1]) if line.partition("==")[0] not in _OF_DEBIAN
    ]
    folder = work / "wheels-debian"
    window_packages.download(lines, "linux", minors[-1], folder, wheels)
    for minor in minors[:-1]:  # of what remains, only cffi is built for each Python
        own = [line for line in _lock(program, minor) if line.startswith("cffi==")]
        window_packages.download(own, "linux", minor, folder, wheels)
    for wheel in sorted(folder.glob("*.whl")):
        window_packages.unpack(wheel, app / "packages", "linux")
    for name in _OF_DEBIAN.values():
        (app / "packages" / name).symlink_to(f"{_DEBIANS_PACKAGES}/{name}")
    for minor in minors:
        _write_path_file(app / "lib" / f"python3.{minor}" / "site-packages", ("packages",))
    _finish_linux(program, app, folder)
    return app


def _finish_linux(program: Program, app: Path, wheels: Path) -> None:
    (app / "bin").mkdir()
    (app / "bin" / "python3").symlink_to("/usr/bin/python3")
    # The settings of a folder that no Python has adopted yet: installed-program.md has more.
    settings = b"home = /usr/bin\ninclude-system-site-packages = false\n"
    (app / "pyvenv.cfg").write_bytes(settings)
    _copy_program(program, app, wheels)
    licenses.collect(app)


def mark(program: Program, app: Path, package: str) -> None:
    """Write the file by which the program knows that it is installed, and as which package."""
    _mark(program, app, package, {})


def varying(lines: Mapping[int, list[str]]) -> set[str]:
    """Return the packages whose version is not the same for every Python.

    Args:
        lines: requirements such as "numpy==2.4.6 --hash=…", by minor version of Python 3.
    """
    seen: dict[str, set[str]] = {}
    for wanted in lines.values():
        for line in wanted:
            name, _, version = line.partition(" ")[0].partition("==")
            seen.setdefault(name, set()).add(version)
    return {name for name, versions in seen.items() if len(versions) > 1}


def own_folders(lines: Mapping[int, list[str]]) -> dict[int, dict[str, str]]:
    """Return the folder of each package that has not one version for every Python.

    Args:
        lines: as in `varying`.

    Returns:
        The folders by package, by minor version of Python 3; Pythons with one version share it.
    """
    apart = varying(lines)
    pins = {
        minor: [line.partition(" ")[0].partition("==") for line in wanted]
        for minor, wanted in lines.items()
    }
    return {
        minor: {name: f"packages-{name}-{version}" for name, _, version in rows if name in apart}
        for minor, rows in pins.items()
    }


def set_times(folder: Path, epoch: int) -> None:
    """Give every file of a folder the same time and a plain mode."""
    for path in [*folder.rglob("*"), folder]:
        if not path.is_symlink():
            is_run = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if is_run else 0o644)
            os.utime(path, (epoch, epoch))


def _minors(root: Path) -> range:
    """Return the N of each Python 3.N that the program supports."""
    table = json.loads((root / "resources" / "wheels.json").read_text(encoding="utf-8"))
    return range(table["python"]["oldest"][1], table["python"]["newest"][1] + 1)


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _lock(program: Program, minor: int) -> list[str]:
    return window_packages.requirements(read_lock(program.root / "uv.lock"), minor)


def _copy_program(program: Program, app: Path, wheels: Path) -> None:
    for name in _PROGRAM:
        shutil.copytree(program.root / name, app / name, ignore=_NOT_COPIED)
    for name in _FILES:
        shutil.copy(program.root / name, app / name)
    (pip,) = wheels.glob("pip-*.whl")
    shutil.copy(pip, app)


def _write_path_file(site: Path, folders: tuple[str, ...]) -> None:
    """Write the file that leads a Python to the packages, from three folders below the program."""
    site.mkdir(parents=True)
    lines = [*(f"../../../{folder}" for folder in folders), "../../..", _ENGINE]
    (site / _PATH_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _mark(program: Program, app: Path, package: str, more: dict[str, str]) -> None:
    told = {"version": program.version, "package": package, **more}
    (app / "installed.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _compile(app: Path, minor: int) -> None:
    """Compile all modules: the program cannot where it may not write, and is slow without.

    Raises:
        BuildError: this Python writes other bytecode.
    """
    if sys.version_info[:2] != (3, minor):
        raise BuildError(
            f"Run build.py with Python 3.{minor}: it compiles the modules for the embedded one."
        )
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(app), *(str(app / name) for name in ("packages", "gpu_studio"))]
    # Before Python 3.11, the order of a constant set follows the seed.
    run(command, environ={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""})
