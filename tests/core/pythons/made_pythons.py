"""Made-up Pythons with a PyTorch, as tools lay them out, whose own pip really runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pip

from gpu_studio.core.pythons import search
from gpu_studio.core.pythons.search import AskPythons, FoundPythons

VERSION = f"3.{sys.version_info[1]}"
LINUX_SITE = f"lib/python{VERSION}/site-packages"
WINDOWS_SITE = "Lib/site-packages"
_REAL = os.path.realpath(sys.executable)


def find_pythons(*folders: str, longest_s: float = 20.0) -> FoundPythons:
    """Return what the child of a search finds; in this process."""
    question = msgspec.msgpack.encode(AskPythons(folders=folders, longest_s=longest_s))
    return msgspec.msgpack.decode(search.answer(question), type=FoundPythons)


def put_package(site: Path, name: str, version: str, said: str = "", requires: str = "") -> Path:
    """Write a package with its record, and with ``version.py`` if that says another version."""
    folder = site / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("")
    if said:
        (folder / "version.py").write_text(said)
    record = site / f"{name}-{version}.dist-info"
    record.mkdir(parents=True)
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    (record / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    )
    (record / "INSTALLER").write_text("pip\n")
    files = [f"{name}/__init__.py", *([f"{name}/version.py"] if said else [])]
    lines = [*files, *(f"{record.name}/{one}" for one in ("METADATA", "INSTALLER", "RECORD"))]
    (record / "RECORD").write_text("".join(f"{line},,\n" for line in lines))
    return record


def torch_says(version: str, cuda: str = "", hip: str = "", xpu: str = "") -> str:
    """Return a ``torch/version.py`` as PyTorch's setup writes it."""
    values = {"cuda": cuda, "hip": hip, "xpu": xpu}
    lines = [f"{name}: Optional[str] = {value or None!r}" for name, value in values.items()]
    head = "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda']\n"
    return f"{head}__version__ = '{version}'\ndebug = False\n" + "\n".join(lines) + "\n"


def put_torch(
    site: Path, version: str, *, record: str = "", vision: str = "", audio: str = ""
) -> Path:
    """Put a PyTorch into a folder of packages, with what its build has; return its record."""
    label = version.partition("+")[2]
    cuda = f"{label[2:-1]}.{label[-1]}" if label.startswith("cu") else ""
    hip = "6.4.43482" if label.startswith("rocm") else ""
    said = torch_says(version, cuda, hip, "20250101" if label == "xpu" else "")
    made = put_package(site, "torch", record or version, said)
    names = ["libtorch_cpu.so", "libc10.so"]
    names += [f"libtorch_{kind}.so" for kind, is_it in
              (("cuda", cuda), ("hip", hip), ("xpu", label == "xpu")) if is_it]  # fmt: skip
    (site / "torch" / "lib").mkdir()
    for name in names:
        (site / "torch" / "lib" / name).write_bytes(b"\x7fELF")
    put_package(site, "numpy", "1.26.4")
    for name, its in (("torchvision", vision), ("torchaudio", audio)):
        if its:
            put_package(site, name, its, f"__version__ = '{its}'\n")
    return made


def borrow_pip(site: Path) -> None:
    """Let a Python use the pip of the tests."""
    own = Path(pip.__file__).parent
    (site / "pip").symlink_to(own)
    record = next(own.parent.glob("pip-*.dist-info"))
    (site / record.name).symlink_to(record)


def make_venv(folder: Path, *, windows: bool = False, has_pip: bool = True) -> Path:
    """Make an environment in the layout of a system; return its folder of packages.

    In Windows' layout, the other one is there as a link, so that this system's Python works in it.
    """
    site = folder / (WINDOWS_SITE if windows else LINUX_SITE)
    site.mkdir(parents=True)
    home = os.path.dirname(_REAL)
    (folder / "pyvenv.cfg").write_text(
        f"home = {home}\ninclude-system-site-packages = false\nversion = {VERSION}.7\n"
    )
    names = ("Scripts/python.exe",) if windows else ("bin/python", f"bin/python{VERSION}")
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).symlink_to(_REAL)
    if windows:
        (folder / LINUX_SITE).parent.mkdir(parents=True)
        (folder / LINUX_SITE).symlink_to(site)
    if has_pip:
        borrow_pip(site)
    return site


def make_whole_python(folder: Path, beside: Path, *, windows: bool = False) -> Path:
    """Make a Python that is no environment; ``beside`` gets what makes it work in tests."""
    site = folder / (WINDOWS_SITE if windows else LINUX_SITE)
    site.mkdir(parents=True)
    inner = make_venv(beside, has_pip=False)
    inner.rmdir()
    inner.symlink_to(site)
    for name in ("python.exe",) if windows else ("bin/python", f"bin/python{VERSION}"):
        program = folder / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{beside}/bin/python" "$@"\n')
        program.chmod(0o755)
    borrow_pip(site)
    return site


def make_embedded(folder: Path, beside: Path) -> Path:
    """Make the Python of a portable program for Windows."""
    site = make_whole_python(folder, beside, windows=True)
    (folder / f"python3{sys.version_info[1]}._pth").write_text("import site\n")
    return site


def make_conda(folder: Path, beside: Path) -> Path:
    """Make a conda environment whose PyTorch is conda-forge's."""
    site = make_whole_python(folder, beside)
    meta = folder / "conda-meta"
    meta.mkdir()
    (meta / f"python-{VERSION}.7-h955ad1f_0.json").write_text("{}")
    (meta / "pytorch-2.5.1-py3.11_0.json").write_text('{"channel": "conda-forge"}')
    return site
