"""The graphics cards of this PC: of any vendor, and without any driver."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpu_studio.hardware.linux import adapters
from gpu_studio.hardware.linux.sys_tree import sys_tree
from gpu_studio.hardware.pci import adapters_in_registry

if TYPE_CHECKING:
    from gpu_studio.hardware.pci import DisplayAdapter


def display_adapters() -> list[DisplayAdapter]:
    """Return the graphics cards of this PC; empty if the system does not list them.

    With `linux.sys_tree.SYSFS_VARIABLE` they are those of the PC that the variable names.
    """
    tree = sys_tree()
    if sys.platform == "win32" and not tree.is_copy:
        import winreg

        return adapters_in_registry(winreg)
    return adapters.find_adapters(tree)


def is_asleep(slot: str) -> bool:
    """Return whether the system has switched a card off to save power; this does not wake it."""
    return adapters.is_asleep(slot, sys_tree())
