"""What computes without PyTorch: adapters, which cards they are, and which of them to measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import address_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import Adapter

ADAPTER_KINDS = frozenset({"vulkan", "directx", "metal", "opengl"})
"""The first parts of their addresses."""
_BEST_FIRST = ("Vulkan", "Metal", "DirectX 12", "OpenGL")
# PCI's numbers of the makers.
_VENDORS = {"NVIDIA": 0x10DE, "AMD": 0x1002, "Intel": 0x8086}


def is_adapter(address: str) -> bool:
    """Return whether an address names an adapter: ``vulkan:0``."""
    return address_there(address).partition(":")[0] in ADAPTER_KINDS


def usual_adapters(adapters: Sequence[Adapter]) -> list[Adapter]:
    """Return each card once, by its best interface; one software adapter where there is no card."""
    ordered = sorted(adapters, key=lambda one: _BEST_FIRST.index(one.interface))
    best: dict[tuple[int, int], str] = {}
    for one in ordered:
        best.setdefault((one.vendor_id, one.device_id), one.interface)
    cards = [
        one
        for one in ordered
        if not one.is_software and best[one.vendor_id, one.device_id] == one.interface
    ]
    return cards or ordered[:1]


def card_of(
    adapter: Adapter, adapters: Sequence[Adapter], cards: Sequence[Device]
) -> Device | None:
    """Return the card that an adapter is, by PCI's numbers; None if it is none of them.

    Equal cards have equal numbers: the first adapter counts as the card in the first slot.

    Args:
        adapter: the adapter.
        adapters: all of them.
        cards: of the PC.
    """
    if adapter.is_software:
        return None

    def kind(one: Adapter) -> tuple[str, int, int]:
        return one.interface, one.vendor_id, one.device_id

    place = [one.address for one in adapters if kind(one) == kind(adapter)].index(adapter.address)
    equal = sorted(
        (
            card
            for card in cards
            if (_VENDORS.get(card.maker), card.pci_device_id)
            == (adapter.vendor_id, adapter.device_id)
        ),
        key=lambda card: card.pci_bus_id or "",
    )
    return equal[place] if place < len(equal) else None


def adapter_lines(adapters: Sequence[Adapter], cards: Sequence[Device]) -> Iterator[str]:
    """Yield a line for each adapter: its address, what it is, its driver."""
    for one in adapters:
        card = card_of(one, adapters, cards)
        which = "software that computes on the CPU, no card" if one.is_software else ""
        if card is not None:
            which = f"the card in {card.pci_bus_id}" if card.pci_bus_id else card.name
        yield f"{one.address:<10}  {', '.join(filter(None, (one.title, which, one.driver)))}"
