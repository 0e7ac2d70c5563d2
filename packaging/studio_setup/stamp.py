"""Check whether the environment is the one that this checkout and this PC need.

The environment is built in place, and the stamp is written last. So an environment without a stamp
was interrupted and is built again. While a finished one gets other packages, its stamp asks for the
same installation again. A copied or renamed one has broken scripts and is built again
too. This module runs at every start, so it imports little.
"""

from __future__ import annotations

import enum
import hashlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# The installed packages: those in the lock, or the newest that pyproject.toml allows.
TESTED, NEWEST = "tested", "newest"
ENGINES = "engines"
"""The folder of the builds of PyTorch, as `gpu_studio.builds.shelf` names it."""
_FORMAT = 2
_STAMP = "gpu-studio-stamp.json"
# Written first: it marks the environment as ours to delete, even half built.
_MARK = "made-by-gpu-studio"


class Verdict(enum.Enum):
    """The setup's task before the program can start."""

    FRESH = "nothing"
    UPDATE = "the requirements changed: install into the existing environment"
    BUILD = "no finished environment: build one"


def python_in(environment: str) -> str:
    """Return the interpreter of an environment."""
    parts = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return os.path.join(environment, *parts)


def read_stamp(environment: str) -> dict[str, Any] | None:
    """Return the stamp of an environment; None if there is no readable one."""
    try:
        with open(os.path.join(environment, _STAMP), encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) and os.path.exists(python_in(environment)) else None


def write_stamp(environment: str, stamp: dict[str, Any]) -> None:
    """Write the stamp atomically."""
    path = os.path.join(environment, _STAMP)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(stamp, file, indent=2)
    os.replace(path + ".new", path)


def remove_stamp(environment: str) -> None:
    """Remove the stamp: an interruption before the next `write_stamp` means building again."""
    if os.path.exists(os.path.join(environment, _STAMP)):
        os.remove(os.path.join(environment, _STAMP))


def withdraw(environment: str, stamp: dict[str, Any]) -> None:
    """Write a stamp that asks for the same installation again, but not for a new environment."""
    write_stamp(environment, stamp | {"requirements": None})


def mark_ours(environment: str) -> None:
    """Create the environment's folder with a file that says what made it."""
    os.makedirs(environment, exist_ok=True)
    with open(os.path.join(environment, _MARK), "w", encoding="utf-8") as file:
        file.write("packaging/bootstrap.py builds this folder and may delete it.\n")


def is_mark(name: str) -> bool:
    """Return whether `mark_ours` writes a file of this name."""
    return name == _MARK


def is_ours(environment: str) -> bool:
    """Return whether `mark_ours` made the folder."""
    return os.path.exists(os.path.join(environment, _MARK))


def requirements_hash(root: str) -> str:
    """Return one hash of the files that decide which packages are installed."""
    total = hashlib.sha256()
    locks = os.path.join(root, "packaging", "locks")
    paths = [os.path.join(root, name) for name in ("pyproject.toml", "resources/wheels.json")]
    if os.path.isdir(locks):
        paths += [os.path.join(locks, name) for name in sorted(os.listdir(locks))]
    for path in paths:
        with open(path, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


def present_facts(root: str, environment: str) -> dict[str, Any]:
    """Return the values that the stamp of an up-to-date environment has."""
    return {
        "format": _FORMAT,
        "place": os.path.abspath(environment),
        "python": ".".join(map(str, sys.version_info[:2])),
        "requirements": requirements_hash(root),
    }


def judge(
    stamp: dict[str, Any] | None,
    present: dict[str, Any],
    extras: Iterable[str],
    wanted_build: str | None,
    python_of_environment: Callable[[], str],
    packages: str | None = None,
) -> Verdict:
    """Compare a stamp with the present facts; return the setup's task.

    Args:
        stamp: From `read_stamp`.
        present: From `present_facts`.
        extras: The optional dependencies that the command needs.
        wanted_build: The requested build ("auto" to choose), or None if none was requested.
        python_of_environment: Called only if a Python other than the stamped one runs this: the
            environment stays good as long as its own interpreter is unchanged.
        packages: `TESTED` or `NEWEST` if requested, otherwise None.
    """
    if stamp is None or any(stamp.get(key) != present[key] for key in ("format", "place")):
        return Verdict.BUILD
    if stamp.get("python") != present["python"] and stamp.get("python") != python_of_environment():
        return Verdict.BUILD
    engine = stamp.get("engine", "")
    is_fresh = (
        stamp.get("requirements") == present["requirements"]
        and set(extras) <= set(stamp.get("extras", ()))
        and wanted_build in (None, stamp.get("wanted"))
        and packages in (None, stamp.get("packages", TESTED))
        and (not engine or os.path.isdir(os.path.join(present["place"], ENGINES, engine)))
    )
    return Verdict.FRESH if is_fresh else Verdict.UPDATE
