from __future__ import annotations

import hashlib
import struct
import zipfile
from typing import TYPE_CHECKING

import pytest
from studio_build import python_for_windows
from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path


INTEL, ARM = 0x8664, 0xAA64


def _dll(machine: int, version: str) -> bytes:
    """Return the parts of a Windows DLL that are read."""
    head = b"MZ" + bytes(0x3A) + (0x80).to_bytes(4, "little")
    header = b"PE\0\0" + machine.to_bytes(2, "little")
    return head.ljust(0x80, b"\0") + header + f"\0{version}\0".encode()


@pytest.fixture
def embeddable(tmp_path: Path) -> Path:
    """An embeddable package of CPython 3.13.5."""
    folder = tmp_path / "embeddable"
    folder.mkdir()
    for name in ("python.exe", "pythonw.exe", "python3.dll", "LICENSE.txt", "VCRUNTIME140.dll"):
        (folder / name).write_bytes(b"python.org's")
    (folder / "python313.dll").write_bytes(_dll(INTEL, "3.13.5"))
    text = "python313.zip\n.\n\n# Uncomment to run site.main() automatically\n#import site\n"
    (folder / "python313._pth").write_text(text, encoding="utf-8")
    return folder


def test_the_embedded_python_runs_site(embeddable: Path, tmp_path: Path) -> None:
    result = python_for_windows.copy(embeddable, tmp_path / "python")
    lines = (tmp_path / "python" / "python313._pth").read_text(encoding="utf-8").splitlines()
    assert (result.version, result.minor) == ("3.13.5", 13)
    assert lines[:2] == ["python313.zip", "."]
    assert "import site" in lines
    assert "#import site" not in lines


def test_the_zip_file_has_the_hash_that_python_org_publishes(
    embeddable: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "embed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in embeddable.iterdir():
            archive.write(path, path.name)
    result = python_for_windows.copy(packed, tmp_path / "python")
    assert result.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()


def test_the_hash_of_a_folder_follows_names_and_contents(embeddable: Path) -> None:
    before = python_for_windows.folder_hash(embeddable)
    (embeddable / "LICENSE.txt").write_bytes(b"another's")
    changed = python_for_windows.folder_hash(embeddable)
    (embeddable / "LICENSE.txt").rename(embeddable / "LICENSE.md")
    assert len({before, changed, python_for_windows.folder_hash(embeddable)}) == 3


@pytest.mark.parametrize("name", ["pythonw.exe", "LICENSE.txt", "python313._pth", "python313.dll"])
def test_another_folder_is_no_python(embeddable: Path, tmp_path: Path, name: str) -> None:
    (embeddable / name).unlink()
    with pytest.raises(BuildError, match="embeddable package"):
        python_for_windows.copy(embeddable, tmp_path / "python")


def test_a_python_for_arm_is_refused(embeddable: Path, tmp_path: Path) -> None:
    (embeddable / "python313.dll").write_bytes(_dll(ARM, "3.13.5"))
    with pytest.raises(BuildError, match="64-bit Intel and AMD"):
        python_for_windows.copy(embeddable, tmp_path / "python")


def test_microsofts_runtime_is_beside_python_and_of_one_version(
    embeddable: Path, tmp_path: Path
) -> None:
    pyside = tmp_path / "PySide6"
    pyside.mkdir()
    for name in ("msvcp140.dll", "vcruntime140.dll", "vcruntime140_1.dll", "Qt6Core.dll"):
        (pyside / name).write_bytes(b"PySide6's")
    python_for_windows.share_runtime(pyside, embeddable)
    assert [path.name for path in pyside.iterdir()] == ["Qt6Core.dll"]
    runtime = [path for path in embeddable.iterdir() if "140" in path.name]
    assert sorted(path.name.lower() for path in runtime) == [
        "msvcp140.dll",
        "vcruntime140.dll",
        "vcruntime140_1.dll",
    ]
    assert {path.read_bytes() for path in runtime} == {b"PySide6's"}


def test_the_icon_is_in_the_middle_of_a_bitmap_for_nsis(root: Path) -> None:
    content = (root / "packaging" / "windows" / "side.bmp").read_bytes()
    size, start = struct.unpack_from("<IxxxxI", content, 2)
    width, height, planes, bits = struct.unpack_from("<iiHH", content, 18)
    assert (content[:2], size, start) == (b"BM", len(content), 54)
    assert (width, height, planes, bits) == (164, 314, 1, 24)
