"""Install the versions that were tested, each file checked against its hash.

packaging/locks/ has a file for each platform, written by packaging/write_locks.py. A lock makes
the set-up safer and never harder. Whatever it leaves out is installed afterwards as pyproject.toml
allows it: PyTorch itself, a platform or a Python without a lock, a version that an index no longer
has. A file with another hash stops the set-up only where pip asks PyPI alone. If you configured a
mirror, an index or a folder of wheels, you want the files from there, and are told.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from gpu_studio.core.wheels import platform_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from studio_setup.pip_runner import Pip

_OTHER_HASH = "DO NOT MATCH THE HASHES"


def lock_path(root: Path) -> Path:
    """This platform's lock, which need not be there."""
    name = platform_key(platform.system(), platform.machine())
    return root / "packaging" / "locks" / f"{name}.txt"


def lines_of(lock: str, sections: Iterable[str]) -> list[str]:
    """The requirements of some sections of a lock; a section begins with its name, "# [run]"."""
    wanted, found, is_wanted = set(sections), [], False
    for line in lock.splitlines():
        if line.startswith("# ["):
            is_wanted = line[3:-1] in wanted
        elif is_wanted and line.strip():
            found.append(line)
    return found


def install_locked(pip: Pip, root: Path, tag: str, with_tests: bool) -> None:
    """Install what the lock names for this PC, where it can be had.

    Args:
        pip: pip of the environment, which has PyTorch already.
        root: The checkout.
        tag: The build of PyTorch.
        with_tests: Whether the tests' packages are wanted too.

    Raises:
        SetupError: PyPI gave a file that is not the one that was tested.
    """
    try:
        lock = lock_path(root).read_text(encoding="utf-8")
    except OSError:
        return
    lines = lines_of(lock, ("run", tag, *(("test",) if with_tests else ())))
    path = pip.environment / "tmp" / "locked.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # What depends on what was resolved when the lock was written.
    if pip.install("--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", str(path)):
        return
    if pip.last_words_contain(_OTHER_HASH):
        if not pip.has_places_of_its_own():
            raise pip.failure("Installing the tested packages")
        pip.console.note(
            "    The place that pip is configured with has other files than PyPI: taking those."
        )
    else:
        pip.console.note("    Not all of the tested versions can be had here: taking what fits.")
