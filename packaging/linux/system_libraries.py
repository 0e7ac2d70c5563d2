"""The system libraries and the font that Qt needs and no wheel contains.

The lists were found on fresh Debian 12 systems with PySide6-Essentials: the libraries for a window
that is drawn off screen, and the additional ones for a real screen.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
# Qt contains no font; without one, it draws empty boxes.
FONT = {"a font": "fonts-dejavu-core"}
_CHECK_MARK = b":charset=2714"  # fc-list's syntax
# Debian 13 and Ubuntu 24.04 renamed it in the move to 64-bit time.
_GLIB_NEW = "libglib2.0-0t64"


def loads(soname: str) -> bool:
    """Return whether the dynamic loader finds a library."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def has_fonts() -> bool:
    """Return whether fontconfig, which Qt uses on Linux, has a font with the window's check mark.

    Liberation and Inter have letters but no check mark; Qt takes it from any other font.
    """
    try:
        library = ctypes.CDLL("libfontconfig.so.1")
        pointers = (library.FcNameParse, library.FcObjectSetCreate, library.FcFontList)
    except (OSError, AttributeError):
        return False
    for function in pointers:
        function.restype = ctypes.c_void_p
    wanted = ctypes.c_void_p(library.FcNameParse(_CHECK_MARK))
    properties = ctypes.c_void_p(library.FcObjectSetCreate())
    found = library.FcFontList(None, wanted, properties)
    # An FcFontSet starts with the number of its fonts.
    return bool(found) and ctypes.c_int.from_address(found).value > 0


def missing_libraries(
    screen: bool,
    system: str = sys.platform,
    is_there: Callable[[str], bool] = loads,
    is_font_there: Callable[[], bool] = has_fonts,
) -> dict[str, str]:
    """Return the libraries and font that Qt lacks, as {soname: Debian package}; empty off Linux.

    Args:
        screen: Whether a window opens on a real screen.
        system: A value of `sys.platform`.
        is_there: Returns whether the library of this soname can be loaded.
        is_font_there: Returns whether the system has a font.
    """
    if system != "linux":
        return {}
    needed = OFFSCREEN | SCREEN if screen else OFFSCREEN
    missing = {soname: package for soname, package in needed.items() if not is_there(soname)}
    return missing if is_font_there() else missing | FONT


def has_apt() -> bool:
    """Return whether this is Debian, Ubuntu or a relative."""
    return shutil.which("apt-get") is not None


def as_named_here(packages: list[str], known_names: str) -> list[str]:
    """Replace the packages that newer releases renamed.

    Args:
        packages: The names in Debian 12.
        known_names: The output of `apt-cache pkgnames libglib2.0-0` here.
    """
    renamed = _GLIB_NEW in known_names.split()
    return [_GLIB_NEW if renamed and name == "libglib2.0-0" else name for name in packages]


def apt_names(packages: list[str]) -> list[str]:
    """Return the packages under the names that this release gives them."""
    command = ["apt-cache", "pkgnames", "libglib2.0-0"]
    try:
        known = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        known = ""
    return as_named_here(packages, known)


def apt_command(packages: list[str]) -> str:
    """Return the command for a user who is not root."""
    return f"sudo apt-get install -y {' '.join(packages)}"


def apt_install(packages: list[str]) -> bool:
    """Install as root, without questions; return False if apt fails."""
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (("update",), ("install", "-y", "--no-install-recommends")):
        names = apt_names(packages) if command[0] == "install" else []
        called = ["apt-get", "-qq", *command, *names]
        done = subprocess.run(called, env=environ, stdout=subprocess.DEVNULL, check=False)
    # It does not matter if the index could not be refreshed, as long as the packages install.
    return done.returncode == 0
