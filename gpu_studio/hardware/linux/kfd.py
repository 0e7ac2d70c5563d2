"""AMD's compute driver (amdkfd): what it calls a card, and the programs that compute on it.

Documentation/ABI and drivers/gpu/drm/amd/amdkfd/kfd_process.c of Linux have the files. Every user
may read them, so the programs of other users are among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gpu_studio.hardware.linux.sys_tree import SysTree

_FOLDERS = ("class/kfd/kfd", "devices/virtual/kfd/kfd", "kfd", "class/kfd")
_NODES = "topology/nodes"
_MOST_BYTES = 1 << 50


class KfdNode(NamedTuple):
    """A card as amdkfd lists it.

    Attributes:
        folder: amdkfd's own.
        gpu_id: its name of the card; empty if it has none.
        target: the version of the architecture; None for a processor.
    """

    folder: str
    gpu_id: str
    target: int | None


def kfd_node(tree: SysTree, pci_bus_id: str | None) -> KfdNode | None:
    """Return the card in a slot; None if amdkfd does not have it."""
    location = _location(pci_bus_id)
    for folder in _FOLDERS:
        names = tree.names(f"{folder}/{_NODES}")
        for name in names:
            node = f"{folder}/{_NODES}/{name}"
            fields = dict(
                line.split(None, 1)
                for line in tree.lines(f"{node}/properties")
                if len(line.split()) == 2
            )
            target = _whole(fields.get("gfx_target_version"))
            here = (_whole(fields.get("domain")) or 0, _whole(fields.get("location_id")))
            if target and here == location:
                return KfdNode(folder, tree.text(f"{node}/gpu_id") or "", target)
        if names:
            return None
    return None


def computing_on(tree: SysTree, node: KfdNode | None) -> dict[int, int | None]:
    """Return the processes that compute on a card, with their bytes of its memory."""
    if node is None or not node.gpu_id:
        return {}
    held = {
        int(name): tree.number(f"{node.folder}/proc/{name}/vram_{node.gpu_id}", 0, _MOST_BYTES)
        for name in tree.names(f"{node.folder}/proc")
        if name.isdecimal()
    }
    return {pid: size for pid, size in held.items() if size}  # each is listed for every card


def _location(pci_bus_id: str | None) -> tuple[int, int | None]:
    """Return the domain and the number by which amdkfd calls a slot: its bus, device, function."""
    if pci_bus_id is None:
        return 0, None
    domain, bus, rest = pci_bus_id.split(":")
    slot, function = rest.split(".")
    return int(domain, 16), int(bus, 16) << 8 | int(slot, 16) << 3 | int(function, 16)


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None
