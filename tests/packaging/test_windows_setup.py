import re
import sys
from pathlib import Path

import pytest
from studio_build import python_for_windows, starter
from studio_build.app_folder import Program
from studio_build.windows_setup import install_script, longest_folder, removal_script, setup_name

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="built on Linux alone")


def _app(folder: Path) -> Path:
    for name in ("GPU Studio.exe", "python/python.exe", "packages/a$b/x.py", "packages/z.py"):
        path = folder / "app" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    return folder / "app"


@on_linux
def test_every_file_is_written_in_its_folder_and_in_a_fixed_order(tmp_path: Path) -> None:
    app = _app(tmp_path)
    lines = install_script(app).splitlines()
    places = [line for line in lines if line.startswith("SetOutPath")]
    assert places == [
        'SetOutPath "$INSTDIR"',
        'SetOutPath "$INSTDIR\\packages"',
        'SetOutPath "$INSTDIR\\packages\\a$$b"',
        'SetOutPath "$INSTDIR\\python"',
    ]
    assert len([line for line in lines if line.startswith("File ")]) == 4
    assert lines.index(places[2]) + 1 == lines.index(f'File "{app}/packages/a$$b/x.py"')


@on_linux
def test_the_removal_names_what_was_written_and_never_the_whole_folder(tmp_path: Path) -> None:
    assert removal_script(_app(tmp_path)).splitlines() == [
        'Delete "$INSTDIR\\GPU Studio.exe"',
        'RMDir /r "$INSTDIR\\packages"',
        'RMDir /r "$INSTDIR\\python"',
    ]


@on_linux
def test_every_file_has_a_name_that_windows_allows(tmp_path: Path) -> None:
    app = _app(tmp_path)
    longest = max(len(str(path.relative_to(app))) for path in app.rglob("*"))
    folder = "C:\\" + "x" * (longest_folder(app) - 3)
    assert len(folder) + len("\\") + longest == 259


@on_linux
def test_the_setups_own_script_removes_no_folder_of_others(root: Path) -> None:
    script = (root / "packaging" / "windows" / "setup.nsi").read_text(encoding="utf-8")
    removed = [line.split(";")[0].strip() for line in script.splitlines() if "RMDir /r" in line]
    assert removed == ['RMDir /r "${FOLDER}\\$1"', 'RMDir /r "${DOWNLOADS}"']
    emptied = re.findall(r'!insertmacro RemoveAllBut "(.*?)" "(.*?)"', script)
    assert emptied == [("${ENGINES}", "downloads"), ("${DATA}", "engines")]
    defined = dict(re.findall(r'^!define (DATA|ENGINES|DOWNLOADS) "(.*)"$', script, re.MULTILINE))
    assert defined == {
        "DATA": "$LOCALAPPDATA\\gpu-studio",
        "ENGINES": "${DATA}\\engines",
        "DOWNLOADS": "${ENGINES}\\downloads",
    }


@on_linux
def test_a_removal_that_leaves_something_ends_with_the_same_status_everywhere(root: Path) -> None:
    script = (root / "packaging" / "windows" / "setup.nsi").read_text(encoding="utf-8")
    source = (root / "packaging" / "windows" / "uninstall.c").read_text(encoding="utf-8")
    assert "#define IN_USE 3 " in source
    assert "!define IN_USE 3\n" in script
    assert "SetErrorLevel ${IN_USE}\n" in script
    assert script.count('WriteUninstaller "$INSTDIR\\remove.exe"') == 1
    assert source.count('L"remove.exe"') == 2


@on_linux
def test_the_version_is_in_the_starters_resources(root: Path) -> None:
    text = starter.resource_script(Program(root, "1.2.3", 0), "gpu-studio.exe")
    assert 'FILE_NAME "gpu-studio.exe"' in text
    assert "VERSION_NUMBERS 1,2,3,0" in text
    assert 'VERSION_TEXT "1.2.3"' in text
    assert setup_name("1.2.3") == "GPU-Studio-1.2.3-setup.exe"


@on_linux
def test_what_the_starter_looks_for_is_packed(root: Path) -> None:
    from studio_build.window_packages import is_kept

    source = (root / "packaging" / "windows" / "starter.c").read_text(encoding="utf-8")
    needed = []
    for table in ("NEEDED[] = {", "NEEDED_BY_COMMANDS[] = {"):
        names = source.partition(table)[2].partition("};")[0]
        needed += [one.replace("\\\\", "/") for one in names.split('"')[1::2]]
    assert len(needed) == 6
    for name in needed:
        if name.startswith("packages/"):
            assert is_kept(name.removeprefix("packages/"), "windows")
        elif name.startswith("gpu_studio/"):
            assert (root / name).exists()
        else:
            assert name in ("python/pythonw.exe", "python/python.exe")


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
