"""The PCIe link of a card according to Linux."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_studio.hardware.pci import normal_bus_id

if TYPE_CHECKING:
    from gpu_studio.hardware.linux.sys_tree import SysTree

# PCI Express Base Specification: transfers per second of a lane, by generation.
_GENERATIONS = {"2.5": 1, "5": 2, "5.0": 2, "8": 3, "8.0": 3, "16": 4, "16.0": 4, "32": 5,
                "32.0": 5, "64": 6, "64.0": 6}  # fmt: skip
_SPEED = re.compile(r"(\d+(?:\.\d)?) GT/s")
_MOST_LANES = 32
_BRIDGE_CLASS = 0x0604
_ROOT_BUS = "00000000:00:"
# AMD and Intel: a switch is between the slot and the chip, whose own link is an inner one.
_AMD, _INTEL = 0x1002, 0x8086
_WITH_SWITCH = (_AMD, _INTEL)


@dataclass(frozen=True, slots=True)
class PcieLink:
    """A link; None for what is not reported."""

    generation: int | None = None
    width: int | None = None


def link_of(tree: SysTree, device: str, which: str) -> PcieLink:
    """Return the link of a card to its slot.

    Args:
        tree: the tree that has it.
        device: the folder of the card's device.
        which: ``current`` or ``max``.
    """
    folder = _slot_side(tree, device)
    found = _SPEED.match(tree.text(f"{folder}/{which}_link_speed") or "")
    generation = _GENERATIONS.get(found[1]) if found else None
    width = tree.number(f"{folder}/{which}_link_width", 1, _MOST_LANES)
    link = PcieLink(generation, width)
    if not generation or not width or (folder == device and _is_placeholder(tree, device, link)):
        return PcieLink()
    return link


def _is_placeholder(tree: SysTree, device: str, link: PcieLink) -> bool:
    """Return whether it is what every card of Intel's says of the link inside it."""
    return tree.hexadecimal(f"{device}/vendor") == _INTEL and link == PcieLink(1, 1)


def _slot_side(tree: SysTree, device: str) -> str:
    """Return the folder of the outermost bridge on the card itself; the card's if it has none."""
    vendor, folder = tree.hexadecimal(f"{device}/vendor"), device
    while vendor in _WITH_SWITCH:
        above = folder.rpartition("/")[0]
        slot = normal_bus_id(above.rpartition("/")[2])
        is_own = tree.hexadecimal(f"{above}/vendor") == vendor if slot else False
        is_bridge = (tree.hexadecimal(f"{above}/class") or 0) >> 8 == _BRIDGE_CLASS
        if slot is None or slot.startswith(_ROOT_BUS) or not is_own or not is_bridge:
            break
        folder = above
    return folder
