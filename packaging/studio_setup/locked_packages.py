"""Install the tested package versions; check each file against its hash.

packaging/locks/ has a file for each platform, written by packaging/write_locks.py. A lock makes the
setup safer and never harder. pip installs the rest afterwards, as pyproject.toml allows: PyTorch
itself, everything on a platform or a Python without a lock, and versions that an index no longer
has. A file with a different hash stops the setup only if pip uses PyPI alone. If you configured a
mirror, an index or a folder of wheels, you want those files: the setup uses them and says so.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from gpu_studio.builds.lock_file import lines_of, read_lock
from gpu_studio.core.wheels import platform_key

if TYPE_CHECKING:
    from pathlib import Path

    from studio_setup.pip_runner import Pip

_OTHER_HASH = "DO NOT MATCH THE HASHES"


def install_locked(pip: Pip, root: Path, with_tests: bool) -> None:
    """Install the packages that the lock lists for this PC, if they are available.

    Args:
        pip: pip of the environment.
        root: The checkout.
        with_tests: Whether to install the tests' packages as well.

    Raises:
        SetupError: PyPI sent a file that differs from the tested one.
    """
    key = platform_key(platform.system(), platform.machine())
    lock = read_lock(key, root / "packaging" / "locks")
    if not lock:
        return
    lines = lines_of(lock, ("run", *(("test",) if with_tests else ())))
    path = pip.environment / "tmp" / "locked.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # No dependencies: they were resolved when the lock was written.
    if pip.install("--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", str(path)):
        return
    if pip.last_words_contain(_OTHER_HASH):
        if not pip.has_places_of_its_own():
            raise pip.failure("Installing the tested packages")
        pip.console.note(
            "    pip is configured to use a place that has other files than PyPI: using those."
        )
    else:
        pip.console.note("    Some tested versions are not available here: using other versions.")
