"""The licenses of everything inside the package, in its folder ``licenses``."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from studio_build.console import BuildError

if TYPE_CHECKING:
    from email.message import Message

# Debian keeps these texts; PySide6's wheels name them without containing them.
_COMMON = Path("/usr/share/common-licenses")
_LGPL = ("LGPL-3", "GPL-3")
_RUNTIME = "Microsoft's terms for redistributable files of Visual Studio"


class Part(NamedTuple):
    """A part of the package.

    Attributes:
        name: For example "numpy".
        version: Of this part.
        license: The license in words, or its SPDX expression.
        files: Its texts, below the folder ``licenses``, with slashes.
    """

    name: str
    version: str
    license: str
    files: tuple[str, ...]


def collect(app: Path, python: str | None = None) -> list[Part]:
    """Move the licenses of all parts to one folder, and write its list.

    Args:
        app: the program's folder, with its packages and without its licenses.
        python: the version of the Python inside; None if there is none.

    Raises:
        BuildError: a text that has to be there is missing.
    """
    folder = app / "licenses"
    folder.mkdir(exist_ok=True)
    parts = [_own(app, folder)]
    if python is not None:
        parts.append(_of_python(app, folder, python))
    for wheel in sorted(app.glob("pip-*.whl")):
        parts.append(_of_wheel(wheel, folder))
    for info in sorted(app.glob("packages*/*.dist-info"), key=lambda path: path.name.lower()):
        parts.append(_of_package(info, folder))
    rows = sorted({part._replace(files=part.files) for part in parts}, key=_order)
    listed = json.dumps([part._asdict() for part in rows], indent=1)
    (folder / "index.json").write_text(listed + "\n", encoding="utf-8")
    return rows


def _order(part: Part) -> tuple[bool, str, str]:
    return part.name != "GPU Studio", part.name.lower(), part.version


def _own(app: Path, folder: Path) -> Part:
    text = (app / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', text, re.MULTILINE)
    return Part("GPU Studio", version[1] if version else "", "MIT",
                _copied([app / "LICENSE"], folder, "gpu-studio"))  # fmt: skip


def _of_python(app: Path, folder: Path, version: str) -> Part:
    text = app / "python" / "LICENSE.txt"
    license_ = f"PSF-2.0, and the licenses that its text names; {_RUNTIME}"
    return Part("CPython", version, license_, _copied([text], folder, "cpython"))


def _of_package(info: Path, folder: Path) -> Part:
    told = HeaderParser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
    name, version = str(told["Name"]), str(told["Version"])
    license_ = license_of(told)
    texts = [one for one in sorted(info.rglob("*")) if one.is_file() and _is_text(one, info)]
    if "LGPL" in license_:
        texts = [_COMMON / one for one in _LGPL]
        if not all(one.exists() for one in texts):
            raise BuildError(f"{name} needs the texts {' and '.join(map(str, texts))}, of Debian.")
    elif name == "nvidia-ml-py":
        texts = [info.parent / "pynvml.py"]  # its license is at its beginning
    files = _copied(texts, folder, f"{name.lower()}-{version}")
    shutil.rmtree(info / "licenses", ignore_errors=True)
    return Part(name, version, license_, files)


def _of_wheel(wheel: Path, folder: Path) -> Part:
    """Return the part of a wheel that is packed as it is, with the licenses of what it contains."""
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(one for one in archive.namelist() if ".dist-info/" in one)
        (metadata,) = (one for one in names if one.endswith("/METADATA"))
        told = HeaderParser().parsestr(archive.read(metadata).decode())
        name, version, copied = str(told["Name"]), str(told["Version"]), []
        for one in names:
            inner = one.partition(".dist-info/licenses/")[2]
            if inner:
                target = folder / f"{name.lower()}-{version}" / inner.replace("/", "-")
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(archive.read(one))
                copied.append(target.relative_to(folder).as_posix())
    return Part(name, version, license_of(told), tuple(copied))


def license_of(told: Message) -> str:
    """Return the license that a package's METADATA tells."""
    expression = told["License-Expression"] or told["License"]
    if expression and "\n" not in expression.strip():
        return str(expression).strip()
    for one in told.get_all("Classifier", []):
        if one.startswith("License ::"):
            return str(one).rpartition(":: ")[2]
    return "see its text"


def _is_text(path: Path, info: Path) -> bool:
    below = path.relative_to(info).parts
    return below[0] == "licenses" or path.name.upper().startswith(("LICENSE", "COPYING", "NOTICE"))


def _copied(texts: list[Path], folder: Path, part: str) -> tuple[str, ...]:
    """Copy texts to a part's own folder; return their paths below ``licenses``."""
    copied = []
    for text in texts:
        below = text.name
        for above in text.parents:  # two of numpy's texts have the same name
            if above.name == "licenses" and above.parent.name.endswith(".dist-info"):
                below = "-".join(text.relative_to(above).parts)
        target = folder / part / below
        if target.suffix == ".py":
            target = target.with_suffix(".txt")
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(text, target)
        copied.append(target.relative_to(folder).as_posix())
    return tuple(copied)
