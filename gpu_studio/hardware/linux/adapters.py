"""The display adapters that Linux lists, with any driver or none; this wakes no card."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.devices.gpu_chips import gpu_chip, product_name
from gpu_studio.core.texts import plain_text
from gpu_studio.hardware.pci import (
    DisplayAdapter,
    adapter_name,
    normal_bus_id,
    vendor_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.hardware.linux.sys_tree import SysTree

_PCI = "bus/pci/devices"
_DRM = "class/drm"
_CARD = re.compile(r"card\d+")
_DISPLAY_CLASS = 0x03  # PCI Code and ID Assignment Specification: display controller
# Parts of a card of AMD's Instinct series that have files of their own.
_PARTS = ("amdgpu_xcp_drv", "amdgpu_xcp")
_DEEPEST, _MOST_FOLDERS = 9, 4000


def find_adapters(tree: SysTree) -> list[DisplayAdapter]:
    """Return the display adapters of a tree, those on the PCI bus first, in its order.

    A copy may lack the lists of the bus or of the cards, and may have the cards in its first
    folder.
    """
    cards = dict(_cards(tree))
    on_bus = [f"{_PCI}/{name}" for name in tree.names(_PCI)]
    if tree.is_copy and not cards and not on_bus:
        on_bus = list(_folders_of_devices(tree))
    found: dict[str, DisplayAdapter] = {}
    for listed_folder in on_bus:
        folder = tree.place(listed_folder) or listed_folder
        slot = listed_folder.rpartition("/")[2]
        if normal_bus_id(slot) is None or not _is_display(tree, folder, cards):
            continue
        found[slot] = _adapter(tree, folder, cards.get(folder, ""), slot)
    on_pci = {one.folder for one in found.values()}
    for folder, card in cards.items():
        if folder in on_pci:
            continue
        slot = tree.fields(f"{folder}/uevent").get("PCI_SLOT_NAME", "") or folder.rpartition("/")[2]
        is_part = tree.fields(f"{folder}/uevent").get("DRIVER") in _PARTS
        if slot not in found and not is_part:
            found[slot] = _adapter(tree, folder, card, slot)
    ordered = [found[slot] for slot in sorted(found, key=lambda slot: (":" not in slot, slot))]
    return [one for one in ordered if not _is_second_head(one, ordered)]


def is_asleep(slot: str, tree: SysTree) -> bool:
    """Return whether Linux has switched a card off to save power; this does not wake it.

    Args:
        slot: `DisplayAdapter.slot` of the card.
        tree: the tree that has it.
    """
    domain, _, rest = slot.lower().partition(":")
    if normal_bus_id(slot) is not None:
        folder = f"{_PCI}/{int(domain, 16):04x}:{rest}"
        if tree.is_folder(folder):
            return _is_suspended(tree, folder)
    return any(_is_suspended(tree, one.folder) for one in find_adapters(tree) if one.slot == slot)


def _adapter(tree: SysTree, folder: str, card: str, slot: str) -> DisplayAdapter:
    event = tree.fields(f"{folder}/uevent")
    vendor, _, device = event.get("PCI_ID", "").partition(":")
    vendor_id = tree.hexadecimal(f"{folder}/vendor") or _from_hexadecimal(vendor)
    device_id = tree.hexadecimal(f"{folder}/device") or _from_hexadecimal(device)
    driver = event.get("DRIVER") or _linked(tree, f"{folder}/driver")
    if card and (drm_driver := _drm_driver(tree, card, folder)):
        driver = drm_driver
    revision = tree.hexadecimal(f"{folder}/revision")
    return DisplayAdapter(
        vendor_id=vendor_id or 0,
        device_id=device_id or 0,
        revision=revision,
        name=_name(vendor_id, device_id, revision, driver),
        pci_bus_id=normal_bus_id(slot),
        is_asleep=_is_suspended(tree, folder),
        kernel_driver=driver,
        folder=folder,
        card=card,
    )


def _name(
    vendor_id: int | None, device_id: int | None, revision: int | None, driver: str | None
) -> str:
    if not vendor_id or not device_id:
        return f"Display adapter ({driver})" if driver else "Display adapter"
    named = product_name(vendor_id, device_id, revision)
    if not named and (chip := gpu_chip(vendor_name(vendor_id), device_id)) is not None:
        named = f"{chip.name} graphics"
    return adapter_name(vendor_id, device_id, named)


def _cards(tree: SysTree) -> Iterator[tuple[str, str]]:
    """Yield the folder of each card's device, and that of the card: ``card0``."""
    for base in (_DRM, "drm", "") if tree.is_copy else (_DRM,):
        names = [name for name in tree.names(base) if _CARD.fullmatch(name)]
        for name in names:
            card = f"{base}/{name}".lstrip("/")
            card = tree.place(card) or card
            folder = tree.place(f"{card}/device") or f"{card}/device"
            above = folder.rpartition("/")[0]
            # A virtio card hangs below its PCI device.
            is_on_bus = normal_bus_id(above.rpartition("/")[2]) is not None
            is_below = normal_bus_id(folder.rpartition("/")[2]) is None
            yield (above if is_on_bus and is_below and _has_class(tree, above) else folder), card
        if names:
            return


def _has_class(tree: SysTree, folder: str) -> bool:
    device_class = tree.hexadecimal(f"{folder}/class")
    if device_class is None:
        device_class = _from_hexadecimal(tree.fields(f"{folder}/uevent").get("PCI_CLASS", ""))
    return (device_class or 0) >> 16 == _DISPLAY_CLASS


def _is_display(tree: SysTree, folder: str, cards: dict[str, str]) -> bool:
    return folder in cards or _has_class(tree, folder)


def _drm_driver(tree: SysTree, card: str, folder: str) -> str | None:
    """Return the driver of a card whose device hangs below that of the bus."""
    device = tree.place(f"{card}/device")
    if device is None or device == folder:
        return None
    return tree.fields(f"{device}/uevent").get("DRIVER") or _linked(tree, f"{device}/driver")


def _is_second_head(one: DisplayAdapter, others: list[DisplayAdapter]) -> bool:
    """Return whether it is the second function of another adapter, which has no driver."""
    slot = one.pci_bus_id
    if slot is None or slot.endswith(".0") or one.kernel_driver or one.card:
        return False
    return any(other.pci_bus_id == f"{slot[:-1]}0" for other in others)


def _folders_of_devices(tree: SysTree) -> Iterator[str]:
    """Yield the folders of a copy that may be PCI devices: a copy without links has no lists."""
    ahead, seen = ["devices"], 0
    while ahead and seen < _MOST_FOLDERS:
        folder = ahead.pop(0)
        seen += 1
        if normal_bus_id(folder.rpartition("/")[2]) is not None:
            yield folder
        if folder.count("/") < _DEEPEST:
            names = tree.names(folder)
            below = (name for name in names if name.startswith("pci") or normal_bus_id(name))
            ahead.extend(f"{folder}/{name}" for name in below)


def _linked(tree: SysTree, path: str) -> str | None:
    """Return the name of the folder to which a link leads."""
    place = tree.place(path)
    if place is None or place == path:
        return None
    return plain_text(place.rpartition("/")[2]) or None


def _is_suspended(tree: SysTree, folder: str) -> bool:
    return tree.text(f"{folder}/power/runtime_status") in ("suspended", "suspending")


def _from_hexadecimal(text: str) -> int | None:
    try:
        return int(text, 16)
    except ValueError:
        return None
