"""The packages that the window needs: which wheels, and which of their files stay.

The versions and hashes are those of uv.lock. PyTorch and what only PyTorch needs are in no
package of GPU Studio: the window installs them.
"""

from __future__ import annotations

import fnmatch
import re
import sys
import zipfile
from typing import TYPE_CHECKING

from packaging.markers import Marker

from studio_build.console import BuildError, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gpu_studio.builds.lock_file import LockedPackage

_PACKAGES = (
    "cffi", "colorama", "markdown-it-py", "mdurl", "msgspec", "numpy", "nvidia-ml-py", "pip",
    "platformdirs", "psutil", "pycparser", "pygments", "pyqtgraph", "pyside6-essentials", "rich",
    "shiboken6", "shtab", "typing-extensions", "wgpu",
)  # fmt: skip
# The oldest Python's numpy has wheels for these as well: its libraries, of 28 MB, and its modules
# are then packed once, and not for each Python. The locks have the newest numpy for each.
SHARED_NUMPY = "numpy==2.2.6"
_SHARED_HASHES = {
    11: "ba10f8411898fc418a521833e014a77d3ca01c15b0c6cdcce6a0d2897e6dbbdf",
    12: "fd83c01228a688733f1ded5201c678f0c53ecc1006ffbc404db9f7a899ac6249",
    13: "1bc23a79bfabc5d056d106f9befb8d50c31ced2fbc70eedb8155aec74a45798f",
}
_PLATFORMS = {
    "windows": ("win_amd64",),
    # glibc 2.34, which PySide6 needs, runs what was built for an older one.
    "linux": (
        *(f"manylinux_2_{minor}_x86_64" for minor in range(34, 4, -1)),
        "manylinux2014_x86_64",
        "manylinux2010_x86_64",
    ),
}

# The parts of Qt that the window and pyqtgraph import.
_QT = ("Core", "Gui", "OpenGL", "OpenGLWidgets", "Svg", "Widgets")
_PYSIDE = ("__init__.py", "_config.py", "_git_pyside_version.py", "support/*")
_PYSIDE_KEPT = {
    "windows": (
        *(f"Qt{part}.pyd" for part in _QT),
        *(f"Qt6{part}.dll" for part in _QT),
        "pyside6.abi3.dll", "msvcp140*.dll", "vcruntime140*.dll",
        "plugins/platforms/qwindows.dll", "plugins/platforms/qoffscreen.dll",
        "plugins/styles/*", "plugins/iconengines/*",
        "plugins/imageformats/qsvg.dll", "plugins/imageformats/qjpeg.dll",
        "plugins/imageformats/qico.dll", "plugins/imageformats/qwebp.dll",
        "plugins/imageformats/qgif.dll",
    ),
    "linux": (
        *(f"Qt{part}.abi3.so" for part in _QT),
        *(f"Qt/lib/libQt6{part}.so.6" for part in _QT),
        "libpyside6.abi3.so.*", "Qt/lib/libicu*", "Qt/lib/libQt6DBus.so.6",
        "Qt/lib/libQt6XcbQpa.so.6", "Qt/lib/libQt6WaylandClient.so.6",
        "Qt/lib/libQt6WlShellIntegration.so.6",
        "Qt/plugins/platforms/libqxcb.so", "Qt/plugins/platforms/libqwayland.so",
        "Qt/plugins/platforms/libqoffscreen.so",
        "Qt/plugins/platformthemes/libqxdgdesktopportal.so",
        "Qt/plugins/platforminputcontexts/libcompose*", "Qt/plugins/platforminputcontexts/libibus*",
        "Qt/plugins/wayland-decoration-client/*", "Qt/plugins/wayland-shell-integration/libxdg-*",
        "Qt/plugins/iconengines/*",
        "Qt/plugins/imageformats/libqsvg.so", "Qt/plugins/imageformats/libqjpeg.so",
        "Qt/plugins/imageformats/libqico.so", "Qt/plugins/imageformats/libqwebp.so",
        "Qt/plugins/imageformats/libqgif.so",
    ),
}  # fmt: skip
# What nothing imports: tests, type stubs, headers, a compiler of Fortran, examples, commands.
_LEFT_OUT = (
    "*.pyi", "*/py.typed", "*__pycache__/*", "*.data/*", "numpy/*/tests/*",
    "numpy/tests/*", "numpy/f2py/*", "numpy/distutils/*", "numpy/_core/_simd.*",
    "numpy/_core/_*_tests.*",
    "numpy/_core/include/*", "numpy/*.a", "numpy/*.lib", "numpy/*.pxd", "numpy/random/_examples/*",
    "numpy/_pyinstaller/*", "example.py", "pyqtgraph/examples/*", "psutil/tests/*",
    "shiboken6_generator/*", "wgpu/utils/imgui/*",
    "*/__pyinstaller/*", "shiboken6/include/*", "shiboken6/lib/*", "shiboken6/*.lib",
    "shiboken6/*140*.dll", "*.dist-info/RECORD*", "*.dist-info/sboms/*", "pip/*", "pip-*",
)  # fmt: skip


def fits(package: LockedPackage, minor: int) -> bool:
    """Return whether a package of the lock is for Python 3.``minor``."""
    python = {"python_full_version": f"3.{minor}.0", "python_version": f"3.{minor}"}
    return not package.marker or Marker(package.marker).evaluate(python)


def requirements(lock: Iterable[LockedPackage], minor: int) -> list[str]:
    """Return the lines of the window's packages for Python 3.``minor``, with hashes.

    Raises:
        BuildError: the lock has no version of a package for this Python.
    """
    found = {one.name: one for one in lock if one.name in _PACKAGES and fits(one, minor)}
    missing = sorted(set(_PACKAGES) - set(found))
    if missing:
        raise BuildError(f"The lock has no {missing[0]} for Python 3.{minor}: write it again.")
    return [with_hashes(one) for one in found.values()]


def with_hashes(package: LockedPackage) -> str:
    """Return pip's line for a package: ``numpy==2.4.6 --hash=sha256:…``."""
    pin = f"{package.name}=={package.version}"
    return " ".join([pin, *(f"--hash=sha256:{one}" for one in sorted(package.hashes))])


def with_shared_numpy(lines: Iterable[str], minor: int) -> list[str]:
    """Return the requirements for Python 3.``minor`` with the numpy that several Pythons share."""
    if minor not in _SHARED_HASHES:
        return list(lines)
    shared = f"{SHARED_NUMPY} --hash=sha256:{_SHARED_HASHES[minor]}"
    return [shared if one.startswith("numpy==") else one for one in lines]


def normal_name(name: str) -> str:
    """Return a package's name as PyPI normalizes it: a wheel's file has underscores."""
    return re.sub("[-_.]+", "-", name).lower()


def is_kept(name: str, system: str) -> bool:
    """Return whether a file of a wheel goes into the package.

    Args:
        name: the path in the wheel, with slashes.
        system: "windows" or "linux".
    """
    if any(fnmatch.fnmatchcase(name, one) for one in _LEFT_OUT):
        return False
    if not name.startswith("PySide6/"):
        return True
    kept = (*_PYSIDE, *_PYSIDE_KEPT[system])
    inner = name.removeprefix("PySide6/")
    return any(fnmatch.fnmatchcase(inner, one) for one in kept)


def download(
    lines: Iterable[str], system: str, minor: int, folder: Path, wheels: Path | None
) -> None:
    """Download the wheels of some requirements for a system and Python 3.``minor``.

    Args:
        lines: the requirements, with hashes.
        system: "windows" or "linux".
        minor: of the Python for which the wheels are.
        folder: where they go.
        wheels: a folder to take them from; None asks pip's index.

    Raises:
        BuildError: pip could not get one of them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / "requirements.txt"
    wanted.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-d", str(folder)]
    command += ["--implementation", "cp", "--python-version", f"3.{minor}", "-r", str(wanted)]
    # The stable ABI as well: psutil and PySide6 are built once for all versions.
    for abi in (f"cp3{minor}", "abi3", "none"):
        command += ["--abi", abi]
    for platform in _PLATFORMS[system]:
        command += ["--platform", platform]
    if wheels is not None:
        command += ["--no-index", "--find-links", str(wheels)]
    try:
        run(command)
    finally:
        wanted.unlink()


def unpack(wheel: Path, target: Path, system: str) -> None:
    """Unpack the files of a wheel that stay; a file that is already there must be the same.

    Raises:
        BuildError: another wheel put a different file there.
    """
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if entry.is_dir() or not is_kept(entry.filename, system):
                continue
            content, path = archive.read(entry), target / entry.filename
            if path.exists() and path.read_bytes() != content and not _may_differ(entry.filename):
                raise BuildError(f"{wheel.name} has a different {entry.filename}.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _may_differ(name: str) -> bool:
    """Return whether the wheels of one version for several Pythons differ in a file harmlessly.

    numpy's __config__.py only says with which compiler it was built.
    """
    return ".dist-info/" in name or name == "numpy/__config__.py"
