"""The embedded CPython: python.org's embeddable package, with `site` turned on."""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
from typing import TYPE_CHECKING, NamedTuple

from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = ("python.exe", "pythonw.exe", "LICENSE.txt")
# Microsoft's runtime, which PySide6 ships for its own DLLs. PyTorch looks for it in PATH and
# beside python.exe.
_RUNTIME = ("msvcp140*.dll", "vcruntime140*.dll")


class EmbeddedPython(NamedTuple):
    """Which Python it is.

    Attributes:
        version: For example "3.11.9".
        sha256: Of the zip file, as python.org publishes it; of an unpacked folder, of the names and
            contents of its files.
    """

    version: str
    sha256: str

    @property
    def minor(self) -> int:
        """The N of Python 3.N."""
        return int(self.version.split(".")[1])


def copy(source: Path, target: Path) -> EmbeddedPython:
    """Copy an embeddable package, as a zip file or unpacked, and turn `site` on.

    Raises:
        BuildError: it is not an embeddable package for 64-bit Intel and AMD processors.
    """
    if source.is_file():
        sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
        with zipfile.ZipFile(source) as archive:
            archive.extractall(target)
    elif source.is_dir():
        sha256 = folder_hash(source)
        shutil.copytree(source, target)
    else:
        raise BuildError(f"There is no {source}.")
    missing = [name for name in _NEEDED if not (target / name).exists()]
    paths = list(target.glob("python3*._pth"))
    dlls = [one for one in target.glob("python3*.dll") if one.name != "python3.dll"]
    if missing or len(paths) != 1 or len(dlls) != 1:
        raise BuildError(f"{source} is not python.org's embeddable package of CPython.")
    if machine_of(dlls[0]) != 0x8664:
        raise BuildError(f"{source} is not for 64-bit Intel and AMD processors.")
    text = paths[0].read_text(encoding="utf-8")
    if not re.search(r"^import site$", text, re.MULTILINE):
        text = re.sub(r"^#\s*import site\s*$", "", text, flags=re.MULTILINE).rstrip()
        paths[0].write_text(text + "\nimport site\n", encoding="utf-8")
    return EmbeddedPython(version_of(dlls[0]), sha256)


def share_runtime(pyside: Path, python: Path) -> None:
    """Move Microsoft's runtime from PySide6 to beside python.exe, where all others find it.

    All of it comes from PySide6, because its parts must have one version.
    """
    for pattern in _RUNTIME:
        for path in sorted(pyside.glob(pattern)):
            for old in [one for one in python.glob("*.dll") if one.name.lower() == path.name]:
                old.unlink()
            shutil.move(path, python / path.name)


def folder_hash(folder: Path) -> str:
    """Return a SHA-256 of the names and contents of all files in a folder."""
    whole = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def machine_of(program: Path) -> int:
    """Return the field Machine of a Windows program: 0x8664 is a 64-bit Intel or AMD processor.

    Microsoft, "PE Format": the header's offset is at 0x3C; the field follows its four letters.
    """
    content = program.read_bytes()
    offset = int.from_bytes(content[0x3C:0x40], "little")
    return int.from_bytes(content[offset + 4 : offset + 6], "little")


def version_of(dll: Path) -> str:
    """Return the version of CPython that its DLL has as a text.

    Raises:
        BuildError: it has none.
    """
    minor = dll.stem.removeprefix("python3")
    found = re.search(rb"\0(3\." + minor.encode() + rb"\.\d+)\0", dll.read_bytes())
    if found is None:
        raise BuildError(f"{dll.name} tells no version.")
    return found[1].decode()
