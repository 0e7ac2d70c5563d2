"""The native starters for Windows, compiled from one source by Debian's mingw-w64."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from studio_build.console import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from studio_build.app_folder import Program

# For a double-click, which has no terminal, and for a terminal: the name, and gcc's subsystem.
NAMES = {"GPU Studio.exe": "-mwindows", "gpu-studio.exe": "-mconsole"}
_TRIPLET = "x86_64-w64-mingw32"
_LIBRARIES = ("-lole32", "-lshell32", "-luuid", "-lpropsys")


def compile_starters(program: Program, work: Path, app: Path) -> None:
    """Compile the starters, with the icon and the version, into the program's folder.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    for name, subsystem in NAMES.items():
        console = f"-DCONSOLE={int(subsystem == '-mconsole')}"
        _compile(program, work, app / name, "starter.c", subsystem, console)


def compile_uninstaller(program: Program, work: Path) -> Path:
    """Compile the program that waits for NSIS's uninstaller; return its path.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    target = work / "uninstall.exe"
    _compile(program, work, target, "uninstall.c", "-mwindows")
    return target


def _compile(program: Program, work: Path, target: Path, source: str, *flags: str) -> None:
    resources, script = work / "starter.o", work / "version.rc"
    # The windres of mingw splits what -D gives at blanks: what needs quotes goes into a file.
    script.write_text(resource_script(program, target.name), encoding="ascii")
    run([f"{_TRIPLET}-windres", "-o", str(resources), str(script)])
    run(
        [
            f"{_TRIPLET}-gcc", "-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-DUNICODE",
            "-D_UNICODE", "-municode", *flags,
            "-s", "-static-libgcc", "-Wl,--no-insert-timestamp",
            "-Wl,--dynamicbase,--nxcompat,--high-entropy-va",
            "-o", str(target), str(program.root / "packaging" / "windows" / source),
            str(resources), *_LIBRARIES,
        ]
    )  # fmt: skip


def sign_programs(programs: Sequence[Path], sign: str) -> None:
    """Sign compiled programs.

    Raises:
        BuildError: the command failed.
    """
    for path in programs:
        run([*shlex.split(sign), str(path)])


def resource_script(program: Program, name: str) -> str:
    """Return the resource script of a starter: its constants, then packaging/windows/starter.rc."""
    icon = program.root / "resources" / "app" / "gpu-studio.ico"
    own = program.root / "packaging" / "windows"
    numbers = ",".join([*program.version.split("."), "0"])
    return (
        f'#define ICON_FILE "{icon}"\n#define MANIFEST_FILE "{own / "starter.manifest"}"\n'
        f'#define VERSION_NUMBERS {numbers}\n#define VERSION_TEXT "{program.version}"\n'
        f'#define FILE_NAME "{name}"\n'
        f'#include "{own / "starter.rc"}"\n'
    )
