"""The wheels in a folder: PyTorch's, and what only a build's own index has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_studio.core.builds.package_page import fits, version_of
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.wheel_table import IndexPackage, TorchBuild, WheelTable, load_table
from gpu_studio.core.wheels import own_platform_key

# PyPI's wheels have no build in their version; for these systems they are these builds.
PLAIN_BUILDS = {"windows": "cpu", "linux": "cu130", "darwin": "cpu"}


def packages_of(build: TorchBuild, platform_key: str) -> Sequence[IndexPackage]:
    """Return what only a build's index has for a platform, besides PyTorch."""
    return build.packages.get(platform_key.partition("-")[0], ())


def package_in(
    folder: Path, package: IndexPackage, platform_key: str, python: tuple[int, int]
) -> Path | None:
    """Return a package's wheel in a folder, or its source; None if the folder has neither.

    Args:
        folder: The folder.
        package: The package and its version.
        platform_key: As `core.wheels.platform_key`.
        python: The Python that the wheel is for.
    """
    wheels = f"{package.name.replace('-', '_')}-{package.version}-*.whl"
    try:
        paths = sorted(folder.glob(wheels))
    except OSError:
        return None
    for path in paths:
        if fits("-".join(path.stem.split("-")[-3:]), python, platform_key):
            return path
    source = folder / f"{package.name}-{package.version}.tar.gz"
    return source if package.source_sha256 and source.is_file() else None


def torch_wheel_in(
    folder: Path, tag: str, table: WheelTable, platform_key: str, python: tuple[int, int]
) -> Path | None:
    """Return PyTorch's wheel of a build in a folder; None if the folder has none.

    Args:
        folder: The folder.
        tag: The build.
        table: The table of builds.
        platform_key: As `core.wheels.platform_key`.
        python: The Python that the wheel is for.
    """
    versions = [table.version_of(tag)]
    if PLAIN_BUILDS.get(platform_key.partition("-")[0]) == tag:
        versions.append(table.torch_version)
    try:
        paths = sorted(folder.glob("torch-*.whl"))
    except OSError:
        paths = []
    for wanted in versions:
        for path in paths:
            tags = path.stem.split("-", 2)[-1]
            if version_of(path.name) == wanted and fits(tags, python, platform_key):
                return path
    return None


def builds_in(folder: Path) -> tuple[str, ...]:
    """Return the builds whose wheels, for this Python and PC, are in a folder.

    What PyPI has may be missing.
    """
    table, key, python = load_table(), own_platform_key(), sys.version_info[:2]
    return tuple(
        one
        for one in FAMILIES
        if torch_wheel_in(folder, one, table, key, python) is not None
        and all(
            package_in(folder, package, key, python) is not None
            for package in packages_of(table.build(one), key)
        )
    )
