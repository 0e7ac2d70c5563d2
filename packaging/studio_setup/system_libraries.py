"""The system libraries that Qt loads, and the font that it draws with: no wheel carries them.

The lists were found in fresh Debian 12 systems with PySide6-Essentials: what a window needs that is
drawn off the screen, and what a real screen needs in addition.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from studio_setup.console import Log

OFFSCREEN = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libxkbcommon.so.0": "libxkbcommon0",
}
SCREEN = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
# Qt brings no font and draws empty boxes without one.
FONT = {"a font": "fonts-dejavu-core"}
_CHECK_MARK = b":charset=2714"  # as fc-list takes it
# Debian 13 and Ubuntu 24.04 renamed it when they moved to 64-bit times.
_GLIB_NEW = "libglib2.0-0t64"


def loads(soname: str) -> bool:
    """Whether the dynamic loader finds a library."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def has_fonts() -> bool:
    """Whether fontconfig, which Qt asks on Linux, knows a font with the window's check mark.

    Liberation and Inter have letters and no such mark; Qt takes it from any other font there is.
    """
    try:
        library = ctypes.CDLL("libfontconfig.so.1")
        pointers = (library.FcNameParse, library.FcObjectSetCreate, library.FcFontList)
    except (OSError, AttributeError):
        return False
    for function in pointers:
        function.restype = ctypes.c_void_p
    wanted = ctypes.c_void_p(library.FcNameParse(_CHECK_MARK))
    told = ctypes.c_void_p(library.FcObjectSetCreate())
    found = library.FcFontList(None, wanted, told)
    # An FcFontSet begins with the number of its fonts.
    return bool(found) and ctypes.c_int.from_address(found).value > 0


def missing_libraries(
    screen: bool,
    system: str = sys.platform,
    is_there: Callable[[str], bool] = loads,
    is_font_there: Callable[[], bool] = has_fonts,
) -> dict[str, str]:
    """What Qt will miss, {soname: Debian package}, a font included; empty off Linux.

    Args:
        screen: Whether a window is to be opened on a real screen.
        system: As `sys.platform`.
        is_there: Whether a library of that soname can be loaded.
        is_font_there: Whether the system has a font.
    """
    if system != "linux":
        return {}
    needed = OFFSCREEN | SCREEN if screen else OFFSCREEN
    missing = {soname: package for soname, package in needed.items() if not is_there(soname)}
    return missing if is_font_there() else missing | FONT


def missing_venv_package() -> str | None:
    """The Debian package with the half of `venv` that Debian splits off, if it is missing."""
    if importlib.util.find_spec("ensurepip") is not None:
        return None
    major, minor = sys.version_info[:2]
    return f"python{major}.{minor}-venv"


def has_apt() -> bool:
    """Whether this is Debian, Ubuntu or a relative."""
    return shutil.which("apt-get") is not None


def as_named_here(packages: list[str], known_names: str) -> list[str]:
    """Replace the packages that newer releases renamed.

    Args:
        packages: Names as in Debian 12.
        known_names: What `apt-cache pkgnames libglib2.0-0` prints here.
    """
    renamed = _GLIB_NEW in known_names.split()
    return [_GLIB_NEW if renamed and name == "libglib2.0-0" else name for name in packages]


def apt_names(packages: list[str]) -> list[str]:
    """The packages under the names this release gives them."""
    command = ["apt-cache", "pkgnames", "libglib2.0-0"]
    try:
        known = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        known = ""
    return as_named_here(packages, known)


def apt_command(packages: list[str]) -> str:
    """The one line that someone who is not root has to type."""
    return f"sudo apt-get install -y {' '.join(packages)}"


def apt_install(packages: list[str], log: Log) -> bool:
    """Install as root, without questions; False where apt fails (its words are in the log)."""
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends"]):
        names = apt_names(packages) if arguments[0] == "install" else []
        command = ["apt-get", "-q", *arguments, *names]
        log.write(f"$ {' '.join(command)}")
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        log.write(done.stdout)
    # An index that could not be refreshed is no failure as long as the packages came.
    return done.returncode == 0
