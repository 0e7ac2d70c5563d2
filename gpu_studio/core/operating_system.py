"""The operating system of this PC and its kind of processor, named without starting a process.

On Windows, `platform.system` and `platform.machine` run ``cmd /c ver`` (`platform.win32_ver` in
CPython). That held the window for as long as Windows needs to start a program, and left that
program behind if the window was killed meanwhile.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_BUILD_OF_WINDOWS_11 = 22000  # its version number is still 10


def system(platform: str = sys.platform) -> str:
    """Return "Windows", "Darwin" or "Linux", as `platform.system`.

    Args:
        platform: a value of `sys.platform`.
    """
    return {"win32": "Windows", "darwin": "Darwin"}.get(platform, platform.capitalize())


def machine() -> str:
    """Return the kind of processor as `platform.machine`: "x86_64", "AMD64", "aarch64"."""
    if sys.platform == "win32":
        return machine_of_windows(os.environ)
    else:  # noqa: RET505 - so that mypy checks it for either system
        return os.uname().machine


def machine_of_windows(environ: Mapping[str, str]) -> str:
    """Return the kind of processor from the variables that Windows gives to every program.

    A 32-bit program on a 64-bit Windows has two of them; the first is the PC's.
    """
    return environ.get("PROCESSOR_ARCHITEW6432") or environ.get("PROCESSOR_ARCHITECTURE", "")


def release() -> str:
    """Return the release of the system: "11" of Windows, the kernel's of Linux."""
    if sys.platform == "win32":
        major, _, build = sys.getwindowsversion().platform_version
        return "11" if build >= _FIRST_BUILD_OF_WINDOWS_11 else str(major)
    else:  # noqa: RET505 - so that mypy checks it for either system
        return os.uname().release
