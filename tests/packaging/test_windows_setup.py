from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from studio_build import sizes, starter
from studio_build.app_folder import Program
from studio_build.windows_setup import (
    install_script,
    longest_folder,
    removal_script,
    setup_name,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="built on Linux alone")


def _app(folder: Path) -> Path:
    for name in ("GPU Studio.exe", "python/python.exe", "packages/a$b/x.py", "packages/z.py"):
        path = folder / "app" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    return folder / "app"


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


def test_the_removal_names_what_was_written_and_never_the_whole_folder(tmp_path: Path) -> None:
    assert removal_script(_app(tmp_path)).splitlines() == [
        'Delete "$INSTDIR\\GPU Studio.exe"',
        'RMDir /r "$INSTDIR\\packages"',
        'RMDir /r "$INSTDIR\\python"',
    ]


def test_every_file_has_a_name_that_windows_allows(tmp_path: Path) -> None:
    app = _app(tmp_path)
    longest = max(len(str(path.relative_to(app))) for path in app.rglob("*"))
    folder = "C:\\" + "x" * (longest_folder(app) - 3)
    assert len(folder) + len("\\") + longest == 259


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


def test_a_removal_that_leaves_something_ends_with_the_same_status_everywhere(root: Path) -> None:
    script = (root / "packaging" / "windows" / "setup.nsi").read_text(encoding="utf-8")
    source = (root / "packaging" / "windows" / "uninstall.c").read_text(encoding="utf-8")
    assert "#define IN_USE 3 " in source
    assert "!define IN_USE 3\n" in script
    assert "SetErrorLevel ${IN_USE}\n" in script
    assert script.count('WriteUninstaller "$INSTDIR\\remove.exe"') == 1
    assert source.count('L"remove.exe"') == 2


def test_the_version_is_in_the_starters_resources(root: Path) -> None:
    text = starter.resource_script(Program(root, "1.2.3", 0), "gpu-studio.exe")
    assert 'FILE_NAME "gpu-studio.exe"' in text
    assert "VERSION_NUMBERS 1,2,3,0" in text
    assert 'VERSION_TEXT "1.2.3"' in text
    assert setup_name("1.2.3") == "GPU-Studio-1.2.3-setup.exe"


def test_the_starter_has_the_identity_of_the_window(root: Path) -> None:
    source = (root / "packaging" / "windows" / "starter.c").read_text(encoding="utf-8")
    app = (root / "gpu_studio" / "app.py").read_text(encoding="utf-8")
    assert 'APP_ID L"gpu-studio"' in source
    assert 'APP_ID = "gpu-studio"' in app


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


def test_sizes_are_reported_by_part(tmp_path: Path) -> None:
    lines = sizes.table(_app(tmp_path)).splitlines()
    assert lines[-1].split() == ["0.0", "MB", "together"]
    assert sizes.part_of("packages/PySide6/QtCore.pyd") == "PySide6"
    assert sizes.part_of("packages/numpy.libs/openblas.dll") == "numpy"
    assert sizes.part_of("packages-numpy-2.2.6/numpy/core.so") == "numpy 2.2.6"
    assert sizes.part_of("python/python.exe") == "python"
