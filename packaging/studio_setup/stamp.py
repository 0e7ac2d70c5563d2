"""Whether the environment is the one this checkout and this PC need.

The environment is built in place. The stamp is written last, so an environment without one was
interrupted and is built again; a copied or renamed one has broken scripts and is built again too.
This module is read at every start: it imports little.
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

# Which packages are installed: those of the lock, or the newest that pyproject.toml allows.
TESTED, NEWEST = "tested", "newest"
_FORMAT = 1
_STAMP = "gpu-studio-stamp.json"
# Written before anything else: the environment is ours to delete, even half built.
_MARK = "made-by-gpu-studio"


class Verdict(enum.Enum):
    """What has to be done before the program can start."""

    FRESH = "nothing"
    HARDWARE = "a card or the driver changed: choose PyTorch again"
    UPDATE = "the requirements changed: install into the environment that is there"
    BUILD = "there is no finished environment: build one"


def python_in(environment: str) -> str:
    """The interpreter of an environment."""
    parts = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    return os.path.join(environment, *parts)


def read_stamp(environment: str) -> dict[str, Any] | None:
    """The stamp of an environment, or None where there is none that can be read."""
    try:
        with open(os.path.join(environment, _STAMP), encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) and os.path.exists(python_in(environment)) else None


def write_stamp(environment: str, stamp: dict[str, Any]) -> None:
    """Write the stamp in one go."""
    path = os.path.join(environment, _STAMP)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(stamp, file, indent=2)
    os.replace(path + ".new", path)


def remove_stamp(environment: str) -> None:
    """From here to the next `write_stamp`, an interruption means building again."""
    if os.path.exists(os.path.join(environment, _STAMP)):
        os.remove(os.path.join(environment, _STAMP))


def mark_ours(environment: str) -> None:
    """Make the environment's folder and say in it who made it."""
    os.makedirs(environment, exist_ok=True)
    with open(os.path.join(environment, _MARK), "w", encoding="utf-8") as file:
        file.write("packaging/bootstrap.py builds this folder and may delete it.\n")


def is_mark(name: str) -> bool:
    """Whether that is the name of the file that `mark_ours` writes."""
    return name == _MARK


def is_ours(environment: str) -> bool:
    """Whether the folder was made by `mark_ours`."""
    return os.path.exists(os.path.join(environment, _MARK))


def requirements_hash(root: str) -> str:
    """One hash over the files that decide what is installed."""
    total = hashlib.sha256()
    locks = os.path.join(root, "packaging", "locks")
    paths = [os.path.join(root, name) for name in ("pyproject.toml", "resources/wheels.json")]
    if os.path.isdir(locks):
        paths += [os.path.join(locks, name) for name in sorted(os.listdir(locks))]
    for path in paths:
        with open(path, "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


def present_facts(root: str, environment: str, hardware: str) -> dict[str, Any]:
    """What the stamp of a finished environment has to say today."""
    return {
        "format": _FORMAT,
        "place": os.path.abspath(environment),
        "python": ".".join(map(str, sys.version_info[:2])),
        "requirements": requirements_hash(root),
        "hardware": hardware,
    }


def judge(
    stamp: dict[str, Any] | None,
    present: dict[str, Any],
    extras: Iterable[str],
    wanted_tag: str | None,
    python_of_environment: Callable[[], str],
    packages: str | None = None,
) -> Verdict:
    """Compare a stamp with the present.

    Args:
        stamp: From `read_stamp`.
        present: From `present_facts`.
        extras: The optional dependencies that are needed now.
        wanted_tag: The build that was asked for by name ("auto" to choose), or None for no wish.
        python_of_environment: Asked only when another Python than the stamped one runs this:
            the environment serves as long as its own interpreter is still what it was.
        packages: `TESTED` or `NEWEST` where that was asked for, None for no wish.
    """
    if stamp is None or any(stamp.get(key) != present[key] for key in ("format", "place")):
        return Verdict.BUILD
    if stamp.get("python") != present["python"] and stamp.get("python") != python_of_environment():
        return Verdict.BUILD
    if stamp.get("requirements") != present["requirements"]:
        return Verdict.UPDATE
    if not set(extras) <= set(stamp.get("extras", ())):
        return Verdict.UPDATE
    if wanted_tag is not None and wanted_tag != stamp.get("wanted"):
        return Verdict.UPDATE
    if packages is not None and packages != stamp.get("packages", TESTED):
        return Verdict.UPDATE
    if stamp.get("hardware") != present["hardware"] or stamp.get("look_again"):
        return Verdict.HARDWARE
    return Verdict.FRESH
