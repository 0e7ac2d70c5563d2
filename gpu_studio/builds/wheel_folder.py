"""Which builds' wheels are in a folder, by the names of its files."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.wheel_table import IndexPackage, TorchBuild, WheelTable, load_table
from gpu_studio.core.wheels import own_platform_key

# PyPI's wheels have no build in their version; for these systems they are these builds.
_PLAIN_BUILDS = {"windows": "cpu", "linux": "cu130", "darwin": "cpu"}
_PLATFORMS = {
    "windows-x86_64": "win_amd64", "windows-aarch64": "win_arm64",
    "linux-x86_64": r"(?:many)?linux\w*_x86_64", "linux-aarch64": r"(?:many)?linux\w*_aarch64",
    "darwin-x86_64": r"macosx\w*_(?:x86_64|universal2)",
    "darwin-aarch64": r"macosx\w*_(?:arm64|universal2)",
}  # fmt: skip


def packages_of(build: TorchBuild, platform_key: str) -> Sequence[IndexPackage]:
    """Return what only a build's index has for a platform, besides PyTorch."""
    return build.packages.get(platform_key.partition("-")[0], ())


def versions_of(tag: str, table: WheelTable, platform_key: str) -> list[str]:
    """Return the versions of a build's PyTorch: "2.13.0+cu130", and PyPI's if it is that build."""
    is_plain = _PLAIN_BUILDS.get(platform_key.partition("-")[0]) == tag
    return [table.version_of(tag), *([table.torch_version] if is_plain else [])]


def builds_in(
    folder: Path, table: WheelTable | None = None, platform_key: str = ""
) -> tuple[str, ...]:
    """Return the builds whose wheels, for this Python and PC, are in a folder.

    What PyPI has may be missing.

    Args:
        folder: The folder, which may be missing.
        table: The builds; the program's own if None.
        platform_key: As `core.wheels.platform_key`; this PC's if empty.
    """
    table, key = table or load_table(), platform_key or own_platform_key()
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return ()

    def is_here(family: str) -> bool:
        own = packages_of(table.build(family), key)
        return any(_has(names, "torch", one, key) for one in versions_of(family, table, key)) and (
            all(_has(names, one.name, one.version, key) for one in own)
        )

    tags = {build.tag for build in table.builds}
    return tuple(one for one in FAMILIES if one in tags and is_here(one))


def wheel_name_of(name: str, version: str, platform_key: str) -> re.Pattern[str]:
    """Return the pattern of the file names that a package's wheel for this Python may have."""
    python = f"(?:py3|cp{sys.version_info[0]}{sys.version_info[1]})"
    platform = f"(?:any|{_PLATFORMS.get(platform_key, 'any')})"
    return re.compile(
        rf"{re.escape(name.replace('-', '_'))}-{re.escape(version)}-(?:\w+\.)*{python}(?:\.\w+)*"
        rf"-(?:none|{python}|abi3)-(?:\w+\.)*{platform}(?:\.\w+)*\.whl"
    )


def _has(names: Collection[str], name: str, version: str, platform_key: str) -> bool:
    """Return whether a package is among files: its wheel for this PC and Python, or its source."""
    wheel = wheel_name_of(name, version, platform_key)
    return f"{name}-{version}.tar.gz" in names or any(map(wheel.fullmatch, names))
