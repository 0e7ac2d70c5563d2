"""The graphics cards of this PC: of any vendor, and without any driver."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpu_studio.hardware.linux import adapters
from gpu_studio.hardware.linux.sys_tree import sys_tree
from gpu_studio.hardware.pci import NVIDIA_VENDOR_ID, adapters_in_registry
from gpu_studio.hardware.windows.reader import kernel_adapters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.hardware.pci import DisplayAdapter


def display_adapters() -> list[DisplayAdapter]:
    """Return the graphics cards of this PC; empty if the system does not list them.

    With `linux.sys_tree.SYSFS_VARIABLE` they are those of the PC that the variable names.
    """
    tree = sys_tree()
    if sys.platform == "win32" and not tree.is_copy:
        import winreg

        return joined(adapters_in_registry(winreg), kernel_adapters())
    return adapters.find_adapters(tree)


def joined(
    registered: Sequence[DisplayAdapter], in_kernel: Sequence[DisplayAdapter]
) -> list[DisplayAdapter]:
    """Return Windows' adapters: those of its graphics kernel, which knows their slots.

    Of NVIDIA's cards NVML knows more. A card of which only the registry knows is named, not read.
    """
    known = [one for one in in_kernel if one.vendor_id != NVIDIA_VENDOR_ID]
    seen = {(one.vendor_id, one.device_id) for one in known}
    return [*(one for one in registered if (one.vendor_id, one.device_id) not in seen), *known]


def is_asleep(slot: str) -> bool:
    """Return whether the system has switched a card off to save power; this does not wake it."""
    return adapters.is_asleep(slot, sys_tree())


def is_off_bus(adapter: DisplayAdapter) -> bool:
    """Return whether the slot of a card that is awake answers with ones only, as an empty one does.

    Such a card has lost its link or its power; lspci shows ``rev ff``.
    """
    if adapter.is_asleep or not adapter.folder:
        return False
    first = sys_tree().data(f"{adapter.folder}/config")
    return first[:4] == b"\xff" * 4 if first else adapter.revision == 0xFF
