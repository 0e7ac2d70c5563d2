"""The Python that a folder holds: its kind, its interpreter, and where its packages are.

Layouts of Linux and of Windows are told apart by their names, so that either can be read on any
system. Only names and small files are read.
"""

from __future__ import annotations

import os
import re
import shutil
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.pythons.torch_files import TorchFiles, is_closed, names_in, text_of, torch_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_VERSIONED = re.compile(r"python3(?:\.(\d{1,2}))?t?")
_WINDOWS_VERSION = re.compile(r"python3(\d{1,2})t?(?:\._pth|\.dll|\.zip)", re.IGNORECASE)
_OF_PATH = re.compile(r"[Pp]ython\.?3\.?(\d{1,2})(?!\d)")
_STORE = re.compile(r"PythonSoftwareFoundation\.Python\.3\.\d+_\w+")
_PLACES = ("site-packages", "dist-packages")


class PythonKind(str, Enum):
    """How a Python came to its folder."""

    VENV = "venv"
    CONDA = "conda"
    EMBEDDED = "embedded"
    PLAIN = "python"
    USER = "user"  # the packages of one user, beside a Python elsewhere
    SYSTEM = "system"  # the packages of a Linux distribution
    ENGINE = "engine"  # a build of GPU Studio's own, beside its record


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """A Python with a PyTorch in it.

    Attributes:
        kind: how it came here.
        folder: its own folder.
        site: the folder of its packages.
        python: the path of its interpreter, or ``py -3.11``; "" without one.
        minor: the 11 of Python 3.11; None if unknown.
        lost: the path that its interpreter needs and that is not there; "" if all is there.
        has_pip: whether it has pip.
        is_managed: whether its system asks pip to leave it alone (PEP 668).
        is_writable: whether this user may install there.
        torch: its PyTorch.
        program: the name of the program that it belongs to.
    """

    kind: PythonKind
    folder: str
    site: str
    python: str = ""
    minor: int | None = None
    lost: str = ""
    has_pip: bool = True
    is_managed: bool = False
    is_writable: bool = True
    torch: TorchFiles = TorchFiles()
    program: str = ""


def kind_of(folder: str, names: Sequence[str]) -> PythonKind | None:
    """Return the kind of Python that a folder with these names in it is; None if it is none."""
    has = set(names)
    if "pyvenv.cfg" in has:
        return PythonKind.VENV
    if "conda-meta" in has:
        return PythonKind.CONDA
    if "python.exe" in has and ("Lib" in has or any(name.endswith("._pth") for name in has)):
        is_embedded = any(name.endswith("._pth") for name in has)
        named = os.path.basename(folder).lower() in ("python_embeded", "python_embedded")
        return PythonKind.EMBEDDED if is_embedded or named else PythonKind.PLAIN
    if {"lib", "bin"} <= has or (os.path.basename(folder) == ".local" and "lib" in has):
        is_python = any(map(_VERSIONED.fullmatch, names_in(os.path.join(folder, "lib"))))
        return PythonKind.PLAIN if is_python else None
    if os.path.basename(folder).lower() in _PLACES:
        return PythonKind.USER
    is_engine = "torch" in has and os.path.isfile(f"{folder}.json")
    return PythonKind.ENGINE if is_engine else None


def environments_in(folder: str, kind: PythonKind) -> Iterator[Environment]:
    """Yield each place for packages with a PyTorch of a Python's folder."""
    config = text_of(os.path.join(folder, "pyvenv.cfg")) if kind is PythonKind.VENV else ""
    meta = os.path.join(folder, "conda-meta") if kind is PythonKind.CONDA else ""
    for site, minor in _sites(folder, kind):
        torch = torch_in(site, meta)
        if torch is not None:
            yield _environment(folder, kind, site, torch, config, minor)


def closed_sites(folder: str, kind: PythonKind) -> list[str]:
    """Return the places for packages that this user may not read."""
    return [site for site, _ in _sites(folder, kind) if is_closed(site)]


def _sites(folder: str, kind: PythonKind) -> Iterator[tuple[str, int | None]]:
    """Yield the places for packages of a Python, each with its version if its path says it."""
    if kind in (PythonKind.USER, PythonKind.ENGINE):
        yield folder, None
        return
    windows = os.path.join(folder, "Lib", "site-packages")
    if os.path.isdir(windows):
        yield windows, None
    seen = {os.path.realpath(windows)}
    for lib in ("lib", "lib64", os.path.join("local", "lib")):
        for name in sorted(names_in(os.path.join(folder, lib))):
            version = _VERSIONED.fullmatch(name)
            for place in _PLACES if version else ():
                site = os.path.join(folder, lib, name, place)
                if os.path.isdir(site) and os.path.realpath(site) not in seen:
                    seen.add(os.path.realpath(site))  # lib64 is often a link to lib
                    yield site, int(version[1]) if version and version[1] else None


def _environment(
    folder: str, kind: PythonKind, site: str, torch: TorchFiles, config: str, minor: int | None
) -> Environment:
    if os.path.basename(folder) == ".local" or kind is PythonKind.USER:
        kind = PythonKind.USER
    elif kind is PythonKind.PLAIN and os.path.basename(os.path.dirname(site)) == "python3":
        kind = PythonKind.SYSTEM
    minor = minor or _minor(folder, config, site) or torch.python_minor
    python = _interpreter(folder, kind, site, minor)
    home = _configured(config, "home")
    lost = ""
    is_stores = "WindowsApps" in python  # a link that only Windows itself can follow
    if os.path.lexists(python) and not os.path.exists(python) and not is_stores:
        lost = os.path.realpath(python)
    elif home and os.path.isabs(home) and not os.path.isdir(home):
        lost = home
    stdlib = os.path.dirname(site)
    own = {*names_in(site)}
    return Environment(
        kind=kind,
        folder=folder,
        site=site,
        python="" if not python.startswith("py ") and not os.path.lexists(python) else python,
        minor=minor,
        lost=lost,
        has_pip="pip" in own or "pipx_shared.pth" in own or _borrows_pip(kind, folder, config),
        is_managed=any(
            os.path.isfile(os.path.join(place, "EXTERNALLY-MANAGED"))
            for place in (stdlib, f"/usr/lib/python3.{minor}" if _is_posix(site) else stdlib)
            if kind is not PythonKind.VENV and not (kind is PythonKind.CONDA and place != stdlib)
        ),
        is_writable=os.access(site, os.W_OK),
        torch=torch,
    )


def _is_posix(site: str) -> bool:
    return _VERSIONED.fullmatch(os.path.basename(os.path.dirname(site))) is not None


def _borrows_pip(kind: PythonKind, folder: str, config: str) -> bool:
    """Return whether pip may be in another folder of packages than PyTorch."""
    is_open = _configured(config, "include-system-site-packages").lower() == "true"
    is_debians = folder == "/usr/local" and os.path.isdir("/usr/lib/python3/dist-packages/pip")
    return kind in (PythonKind.USER, PythonKind.SYSTEM) or is_open or is_debians


def _configured(config: str, key: str) -> str:
    found = re.search(rf"^{key}\s*=\s*(.+?)\s*$", config, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else ""


def _minor(folder: str, config: str, site: str) -> int | None:
    version = re.match(r"3\.(\d{1,2})", _configured(config, "version(?:_info)?"))
    if version is not None:
        return int(version[1])
    for name in (*names_in(folder), *names_in(os.path.join(folder, "conda-meta"))):
        found = _WINDOWS_VERSION.fullmatch(name) or re.match(r"python-3\.(\d{1,2})\.", name)
        if found is not None:
            return int(found[1])
    ways = _OF_PATH.findall(site)
    return int(ways[-1]) if ways else None


def _interpreter(folder: str, kind: PythonKind, site: str, minor: int | None) -> str:
    """Return the path of an interpreter, which need not be there, or how Windows finds it."""
    if kind is PythonKind.ENGINE:
        return ""  # it has none of its own
    if kind is PythonKind.USER:
        return _of_user(site, minor)
    exact = [f"bin/python3.{minor}"] if minor is not None else []
    exact = [*exact, "bin/python", "bin/python3"]
    if kind is not PythonKind.PLAIN:
        exact = [*exact[1:], exact[0]] if minor is not None else exact
    for name in ("Scripts/python.exe", "python.exe", *exact):
        path = os.path.join(folder, *name.split("/"))
        if os.path.lexists(path):
            return path
    # Debian's own Python has a second place for packages, below /usr/local.
    below = folder == "/usr/local" and minor is not None
    return f"/usr/bin/python3.{minor}" if below else os.path.join(folder, "bin", "python")


def _of_user(site: str, minor: int | None) -> str:
    """Return the Python of a user's own packages."""
    store = _STORE.search(site)
    if store is not None:  # …/AppData/Local/Packages/<store>/LocalCache/local-packages/…
        local = site[: store.start()].rstrip("/\\")
        names = ("Microsoft", "WindowsApps", store[0], "python.exe")
        return os.path.join(os.path.dirname(local), *names)
    if minor is None or os.path.basename(site) not in _PLACES:
        return ""
    if _is_posix(site):
        name = f"python3.{minor}"
        usual = os.path.join("/usr", "bin", name)
        return usual if os.path.exists(usual) else shutil.which(name) or ""
    return f"py -3.{minor}" if "Roaming" in site else ""
