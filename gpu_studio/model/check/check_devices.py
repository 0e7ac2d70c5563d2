"""The devices that can be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.device_name import is_cpu
from gpu_studio.model.devices.card_access import access_of, counted_cards

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed


class CheckDevice(NamedTuple):
    """A device to check. ``address`` is None if PyTorch cannot use it, for the ``reason``."""

    identity: str
    label: str
    address: str | None
    reason: str = ""

    @property
    def is_card(self) -> bool:
        """Whether it is a card."""
        return not is_cpu(self.identity)


def check_devices(
    inventory: Inventory | None, description: EngineDescribed | None
) -> tuple[CheckDevice, ...]:
    """Return every card, then the processor with its RAM.

    Without an inventory, the cards are those that the engine counts.
    """
    devices = [
        CheckDevice(address, address, address)
        for address in (counted_cards(description) if inventory is None else ())
    ]
    cards = inventory.cards if inventory is not None else ()
    for card in cards:
        access = access_of(card, description)
        is_twin = sum(other.name == card.name for other in cards) > 1
        label = f"{card.short_name} ({card.address})" if is_twin else card.short_name
        devices.append(CheckDevice(card.identity, label, access.address, access.reason))
    name = inventory.cpu.short_name if inventory is not None else ""
    devices.append(CheckDevice("cpu", f"CPU and RAM: {name}" if name else "CPU and RAM", "cpu"))
    return tuple(devices)
