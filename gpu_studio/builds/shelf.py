"""The folder with the installed builds of PyTorch: one folder and one record for each.

::

    engines/cpu/          the packages of a build
    engines/cpu.json      its record, written last
    engines/downloads/    whole wheels and parts of wheels, until they are installed
    engines/wanted.json   the builds that the user asked for, and the one to use
    engines/python-3.12/  the same for another Python of the user
    engines/setup.log
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.record import (
    FAMILIES,
    LARGEST_FILE_BYTES,
    BuildRecord,
    Wanted,
    best_of,
    parsed_json,
    record_from,
)
from gpu_studio.core.builds.trouble import TroubleError
from gpu_studio.core.packages_folder import has_own_torch
from gpu_studio.core.program_form import is_checkout
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.user_file import UnusableFileError, read_own_text, try_lock, write_atomically
from gpu_studio.core.wheel_table import load_table

ENGINES = "engines"
"""The folder of all builds: in the user's data folder, or in the environment of a checkout."""
# Windows allows paths of 259 characters by default. The longest file that is imported, a compiled
# module of torch 2.13.0, takes 118 of them below the folder, and the slash one.
LONGEST_FOLDER = 140
_PLAN = ".plan.json"
_PROCESSES = Path("/proc")
OWN_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


class BuildShelf:
    """The installed builds.

    Args:
        root: The folder ``engines``, which may be missing.
        torch_version: The version that this program installs; that of its table if None.
        python: The Python of this program.

    Attributes:
        torch_version: "2.13.0"; "" without the program's own table.
        python: "3.11".
        downloads: The folder of whole wheels and parts of wheels.
        log_path: The installer's log.
    """

    def __init__(
        self, root: Path, torch_version: str | None = None, python: str = OWN_PYTHON
    ) -> None:
        self.root = root
        self.python = python
        try:
            self.torch_version = torch_version or load_table().torch_version
        except MissingResourceError:  # what is installed still works
            self.torch_version = ""
        self.downloads = root / "downloads"
        self.log_path = root / "setup.log"

    def folder(self, family: str) -> Path:
        """Return the folder of a build's packages, which may be missing."""
        return self.root / family

    def records(self) -> tuple[BuildRecord, ...]:
        """Return the records of all builds, the CPU's first; not all of them are ready."""
        found = (self.record(family) for family in FAMILIES)
        return tuple(one for one in found if one is not None)

    def record(self, family: str) -> BuildRecord | None:
        """Return a build's record; None if there is no such build, or an unfinished one."""
        try:
            text = read_own_text(self._record_path(family), LARGEST_FILE_BYTES)
        except UnusableFileError:
            return None
        record = record_from(text)
        is_whole = record is not None and record.family == family and self.folder(family).is_dir()
        return record if is_whole else None

    def used(self) -> str:
        """Return the build that the next engine uses; "" if there is none."""
        wanted = self.wanted().used
        return best_of(self.records(), wanted, self.torch_version, self.python)

    def used_folder(self) -> Path | None:
        """Return the packages of the build that the next engine uses; None if there is none."""
        family = self.used()
        return self.folder(family) if family else None

    def outdated(self, record: BuildRecord) -> str:
        """Return why a build is older than this program; "" if it is not."""
        return record.outdated(self.torch_version, self.python)

    def is_loadable(self, record: BuildRecord) -> bool:
        """Return whether this Python can load a build."""
        return record.is_ready and record.python == self.python

    def is_begun(self, family: str) -> bool:
        """Return whether the user began the present version of a wanted build.

        Its plan is kept from the first byte on. What an older program installed or began is no
        reason to download another version, or for another Python.
        """
        try:
            text = read_own_text(self.plan_path(family), LARGEST_FILE_BYTES)
        except UnusableFileError:
            return self.record(family) is None
        try:
            plan: Any = parsed_json(text)
            version = str(plan["torch_version"]).partition("+")[0]
            return (version, plan["python"]) == (self.torch_version, self.python)
        except (ValueError, KeyError, TypeError):
            return False

    def plan_path(self, family: str) -> Path:
        """Return the file with the plan of a build's unfinished installation."""
        return self.downloads / f"{family}{_PLAN}"

    @property
    def plan_paths(self) -> tuple[Path, ...]:
        """The files with the plans of all unfinished installations."""
        return tuple(sorted(self.downloads.glob(f"*{_PLAN}")))

    def write_record(self, record: BuildRecord) -> None:
        """Write a build's record in one step."""
        write_atomically(self._record_path(record.family), record.text().encode())

    def _remove(self, folder: Path) -> None:
        try:
            if folder.exists():
                shutil.rmtree(extended(folder))
        except OSError as error:
            path = str(getattr(error, "filename", None) or folder)
            raise TroubleError(troubles.file_held(path, str(error))) from error

    def _keep_rest(self, record: BuildRecord, size_bytes: int) -> None:
        rest = record.broken("not all of it could be removed", size_bytes)
        try:
            self.write_record(rest)
        except OSError:  # a full disk is why people remove an engine
            self.withdraw(record.family)

    def withdraw(self, family: str) -> None:
        """Remove a build's record: from now on, the build is unfinished."""
        with contextlib.suppress(FileNotFoundError):
            self._record_path(family).unlink()

    def remove(self, family: str) -> None:
        """Remove a build; what is left after a failure stays on the list, but is no engine.

        Raises:
            TroubleError: A program holds a file of it.
        """
        record, folder = self.record(family), self.folder(family)
        if record is not None:
            self._keep_rest(record, record.size_bytes)
        try:
            self._remove(folder)
        except TroubleError:
            if record is not None:
                self._keep_rest(record, self.size_bytes(family))
            raise
        self.withdraw(family)

    def discard(self) -> None:
        """Remove what unfinished installations have downloaded and unpacked.

        Raises:
            TroubleError: Another window installs, or a program holds a file.
        """
        with self.alone():
            for folder in self._unfinished:
                self._remove(folder)

    def size_bytes(self, family: str) -> int:
        """Return the size of a build's files now."""
        return _size_of(extended(self.folder(family)))

    def downloads_bytes(self) -> int:
        """Return the size of the downloads that are not installed."""
        return _size_of(extended(self.downloads))

    def unfinished_bytes(self) -> int:
        """Return the size of what unfinished installations have downloaded and unpacked."""
        return sum(_size_of(extended(folder)) for folder in self._unfinished)

    def free_bytes(self) -> int:
        """Return the free space of the disk."""
        folder = next(one for one in (self.root, *self.root.parents) if one.exists())
        return shutil.disk_usage(folder).free

    def wanted(self) -> Wanted:
        """Return what the user asked for; nothing if the file is missing or broken."""
        try:
            content: Any = parsed_json(read_own_text(self._wanted_path, LARGEST_FILE_BYTES))
            builds = tuple(one for one in content["builds"] if one in FAMILIES)
            used = content["used"] if content["used"] in FAMILIES else ""
            declined = str(content.get("declined", ""))
            return Wanted(builds, used, bool(content["is_paused"]), declined)
        except (UnusableFileError, ValueError, KeyError, TypeError, AttributeError):
            return Wanted()

    def write_wanted(self, wanted: Wanted) -> None:
        """Remember what the user asked for; a folder that cannot be written to forgets it."""
        with contextlib.suppress(OSError):
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomically(self._wanted_path, (json.dumps(wanted._asdict()) + "\n").encode())

    @contextlib.contextmanager
    def alone(self, family: str = "") -> Iterator[None]:
        """Hold the lock of the builds, which ends with this process, however it ends.

        Args:
            family: The build to name if another process has the lock; "" for all of them.

        Raises:
            TroubleError: Another process has it, or this user cannot write there.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise TroubleError(troubles.no_write(str(self.root), str(error))) from error
        try:
            if not try_lock(descriptor):
                raise TroubleError(troubles.build_in_use(family))
            yield
        finally:
            os.close(descriptor)

    @property
    def _unfinished(self) -> tuple[Path, ...]:
        # A record that cannot be read, or is a newer program's, is no unfinished installation's.
        rests = [self.folder(one) for one in FAMILIES if not self._record_path(one).exists()]
        return (self.downloads, *rests)

    @property
    def _wanted_path(self) -> Path:
        return self.root / "wanted.json"

    def _record_path(self, family: str) -> Path:
        return self.root / f"{family}.json"


def require_unused(shelf: BuildShelf, family: str, processes: Path = _PROCESSES) -> None:
    """Refuse to change a build that a running engine of this user has loaded.

    Windows itself refuses to change such a file. Linux does not: the engine would run on, and fail
    later, when it imports a module that is gone.

    Args:
        shelf: The installed builds.
        family: The build.
        processes: The system's folder of processes: proc(5).

    Raises:
        TroubleError: A process has mapped a file of it.
    """
    folder = os.fsencode(os.path.realpath(shelf.folder(family))) + b"/"
    try:
        names = [name for name in os.listdir(processes) if name.isdecimal()]
    except OSError:  # not Linux
        return
    for name in names:
        try:
            mapped = (processes / name / "maps").read_bytes()
        except OSError:  # another user's, or gone
            continue
        if folder in mapped:
            raise TroubleError(troubles.engine_at_work(family, process=name))


def own_shelf(data_folder: Callable[[], Path]) -> BuildShelf | None:
    """Return the builds that this program installs; None if PyTorch is a package of this Python.

    The environment of a checkout has a folder for its builds, so a try of it leaves nothing in the
    user's folder. Each Python of the user has builds of its own, which no other one replaces.

    Args:
        data_folder: Returns the user's data folder.
    """
    of_checkout = Path(sys.prefix, ENGINES)
    if of_checkout.is_dir():
        return BuildShelf(of_checkout)
    if has_own_torch():
        return None
    if is_checkout():
        return BuildShelf(of_checkout)
    shared = data_folder() / ENGINES
    own = shared / f"python-{OWN_PYTHON}"
    return BuildShelf(own if own.is_dir() or _is_of_another(BuildShelf(shared)) else shared)


def _is_of_another(shelf: BuildShelf) -> bool:
    """Return whether a Python that is still there has builds on a shelf, and this one has none."""
    records = shelf.records()
    others = [one for one in records if one.python != shelf.python and os.path.exists(one.made_by)]
    return bool(others) and len(others) == len(records)


def extended(path: Path, system: str = sys.platform) -> str:
    """Return a path in the form that Windows accepts at any length; elsewhere the path.

    Microsoft, "Maximum Path Length Limitation": the prefix asks for the long form.
    """
    if system != "win32":
        return str(path)
    plain = os.path.abspath(path)
    if plain.startswith("\\\\"):
        return plain if plain.startswith("\\\\?\\") else "\\\\?\\UNC" + plain[1:]
    return "\\\\?\\" + plain


def require_short(folder: Path, system: str = sys.platform, *, allows_long: bool = False) -> None:
    """Refuse a folder whose files Windows could not import.

    Args:
        folder: The folder of a build.
        system: A value of `sys.platform`.
        allows_long: Whether long paths are turned on in this Windows.

    Raises:
        TroubleError: The folder's name is too long.
    """
    if system == "win32" and not allows_long and len(str(folder)) > LONGEST_FOLDER:
        raise TroubleError(
            troubles.long_path(str(folder), length=len(str(folder)), longest=LONGEST_FOLDER)
        )


def _size_of(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
