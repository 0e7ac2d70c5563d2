"""The setup for Windows, compiled by NSIS (Debian's package nsis)."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from studio_build.console import run

if TYPE_CHECKING:
    from pathlib import Path

    from studio_build.app_folder import Program


def setup_name(version: str) -> str:
    """Return the file name of the setup of a version."""
    return f"GPU-Studio-{version}-setup.exe"


def compile_setup(
    program: Program,
    app: Path,
    uninstaller: Path,
    out: Path,
    is_fast: bool,
    sign: str | None = None,
) -> Path:
    """Compile the setup of a program's folder; return its path.

    Args:
        program: what is built.
        app: the program's folder, complete.
        uninstaller: the compiled uninstall.exe; scripts go beside it.
        out: where the setup goes.
        is_fast: whether to compress little, for a try.
        sign: the command that signs a file; None if there is none.

    Raises:
        BuildError: there is no NSIS, or it failed.
    """
    work = uninstaller.parent
    os.utime(uninstaller, (program.epoch, program.epoch))
    files, old = work / "files.nsh", work / "old.nsh"
    files.write_text(install_script(app), encoding="utf-8")
    old.write_text(removal_script(app), encoding="utf-8")
    shutil.copyfile(program.root / "packaging" / "windows" / "side.bmp", work / "side.bmp")
    os.utime(work / "side.bmp", (program.epoch, program.epoch))  # NSIS packs its time as well
    target = out / setup_name(program.version)
    size = sum(path.stat().st_size for path in app.rglob("*") if path.is_file())
    defines = {
        "VERSION": program.version,
        "NUMBERS": f"{program.version}.0",
        "OUT": target,
        "ICON": program.root / "resources" / "app" / "gpu-studio.ico",
        "SIDE": work / "side.bmp",
        "UNINSTALL": uninstaller,
        "FILES": files,
        "OLD": old,
        "SIZE_KB": size // 1024,
        "LONGEST_FOLDER": longest_folder(app),
    }
    command = ["makensis", "-V2", "-INPUTCHARSET", "UTF8"]
    if sign:
        command.append(f"-DSIGN={sign}")
    if is_fast:
        command.append("-XSetCompressor /FINAL zlib")
    command += [f"-D{name}={value}" for name, value in defines.items()]
    command.append(str(program.root / "packaging" / "windows" / "setup.nsi"))
    run(command, environ={"SOURCE_DATE_EPOCH": str(program.epoch), "LC_ALL": "C.UTF-8"})
    return target


def longest_folder(app: Path) -> int:
    """Return how many characters the name of the folder may have in which a program is installed.

    By default, Windows allows paths of at most 259 characters (Microsoft, "Maximum Path Length
    Limitation"); the slash before a file is one of them.
    """
    return 259 - 1 - max(len(str(path.relative_to(app))) for path in app.rglob("*"))


def install_script(app: Path) -> str:
    """Return NSIS commands that write every file of a folder, in a fixed order."""
    lines = []
    for folder in [app, *sorted(path for path in app.rglob("*") if path.is_dir())]:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        if files:
            below = str(folder.relative_to(app)).replace("/", "\\")
            place = "$INSTDIR" if below == "." else f"$INSTDIR\\{_escaped(below)}"
            lines.append(f'SetOutPath "{place}"')
            lines += [f'File "{_escaped(str(path))}"' for path in files]
    return "\n".join(lines) + "\n"


def removal_script(app: Path) -> str:
    """Return NSIS commands that remove what a setup wrote, and nothing else of that folder."""
    lines = []
    for path in sorted(app.iterdir()):
        place = f"$INSTDIR\\{_escaped(path.name)}"
        lines.append(f'RMDir /r "{place}"' if path.is_dir() else f'Delete "{place}"')
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Return a text for a string of NSIS, where a dollar sign begins a variable."""
    return text.replace("$", "$$")
