"""The published PyTorch builds with code for a card, including those we do not install."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.maker_builds import serves, version_numbers
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import platform_key

if TYPE_CHECKING:
    from gpu_studio.core.wheel_table import PublishedBuild, WheelTable


def published_build(
    table: WheelTable, torch_version: str, cuda_build: str | None
) -> PublishedBuild | None:
    """Return the row of an installed PyTorch; None if the table has none.

    Args:
        table: the table of builds.
        torch_version: ``2.8.0+cu128``.
        cuda_build: ``12.8``.
    """
    series = version_numbers(torch_version)[:2]
    tag = "cu" + "".join(map(str, version_numbers(cuda_build)[:2]))
    for build in table.published:
        oldest, newest = map(version_numbers, build.torch)
        if build.tag == tag and oldest <= series <= newest:
            return build
    return None


def last_build(table: WheelTable, compute_capability: tuple[int, int]) -> PublishedBuild | None:
    """Return the newest published build with code for a card; None if there is none."""
    serving = [b for b in table.published if serves(b.arch_list, compute_capability)]
    return max(serving, key=lambda b: (version_numbers(b.torch[1]), b.tag), default=None)


def advice_for(
    compute_capability: tuple[int, int],
    *,
    system: str | None = None,
    machine: str | None = None,
) -> str:
    """Return the build to install for a card that the installed PyTorch has no code for.

    Args:
        compute_capability: (major, minor).
        system: "Linux" or "Windows"; this PC's if None.
        machine: "x86_64" or "aarch64"; this PC's if None.

    Raises:
        MissingResourceError: the program's own table is missing or broken.
    """
    table = load_table()
    key = platform_key(system or operating_system.system(), machine or operating_system.machine())
    for build in table.builds:  # newest first
        if serves(build.arch_list.get(key, ()), compute_capability):
            return f"Install the {build.tag} build: the Devices tab has the command."
    last = last_build(table, compute_capability)
    if last is None:
        return "No PyTorch since 2.0 has code for it: use the CPU."
    return f"The last PyTorch with code for it is {last.torch[1]}, in the {last.tag} build."


def driver_floor(table: WheelTable, cuda_build: str | None, system: str) -> str | None:
    """Return the oldest driver for a CUDA generation; None if the table does not have it.

    A whole generation shares it: CUDA minor version compatibility.
    """
    major = "".join(map(str, version_numbers(cuda_build)[:1]))
    return table.driver_floor.get(major, {}).get(system.lower())
