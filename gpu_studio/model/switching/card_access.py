"""Whether the present engine can address a card, and if not, why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.memory.modelled_cards import card_at, modelled_cards

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Device, Inventory
    from gpu_studio.core.protocol import EngineDescribed


class CardAccess(msgspec.Struct, frozen=True, kw_only=True):
    """A card as an engine sees it.

    Attributes:
        address: ``cuda:0``, or None where this engine cannot address it.
        reason: why it has no address; empty where it has one.
        is_hidden: CUDA_VISIBLE_DEVICES hides it, so another engine could use it.
    """

    address: str | None
    reason: str = ""
    is_hidden: bool = False


def access_of(card: Device, description: EngineDescribed | None) -> CardAccess:
    """Return how an engine reaches a card; ``description`` is None until the engine is there."""
    if description is None:
        return CardAccess(address=None, reason="The engine is starting.")
    if card.cuda_index is None:
        return CardAccess(
            address=None,
            reason="CUDA_VISIBLE_DEVICES hides this card from PyTorch.",
            is_hidden=description.visible_devices is not None,
        )
    if description.cards_asleep:
        reason = "This card is asleep to save power: wake it on the Devices tab."
        return CardAccess(address=None, reason=reason)
    if not description.cuda_available:
        reason = description.cuda_reason or "This PyTorch cannot use CUDA."
        return CardAccess(address=None, reason=reason)
    if card.cuda_index >= description.device_count:
        return CardAccess(address=None, reason="CUDA does not list this card.")
    return CardAccess(address=card.address)


def counted_cards(description: EngineDescribed | None) -> list[str]:
    """Return the addresses of an engine's cards, for when the sensor reader tells nothing."""
    if description is None or not description.cuda_available:
        return []
    return [f"cuda:{index}" for index in range(description.device_count)]


class MemoryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A device whose memory can be looked at. ``address`` is None where PyTorch cannot use it."""

    identity: str
    title: str
    address: str | None
    reason: str = ""
    is_modelled: bool = False

    @property
    def is_card(self) -> bool:
        """Whether it is a card, be it a modelled one, and not the PC itself."""
        return self.identity != "cpu"

    @property
    def is_real_card(self) -> bool:
        """Whether it is a card of this PC."""
        return self.is_card and not self.is_modelled


def memory_choices(
    inventory: Inventory | None, description: EngineDescribed | None
) -> list[MemoryChoice]:
    """Return the PC itself and then every card; without an inventory those the engine counts."""
    choices = [MemoryChoice(identity="cpu", title="This PC's RAM", address="cpu")]
    for address in counted_cards(description) if inventory is None else ():
        choices.append(MemoryChoice(identity=address, title=address, address=address))
    for card in inventory.cards if inventory else ():
        access = access_of(card, description)
        title = f"{access.address} {card.short_name}" if access.address else card.short_name
        choices.append(
            MemoryChoice(
                identity=card.identity, title=title, address=access.address, reason=access.reason
            )
        )
    return choices


def modelled_choices(own_mib: int | None) -> list[MemoryChoice]:
    """Return the cards that can be modelled, the smallest first, and one of one's own size."""
    cards = list(modelled_cards())
    if own_mib is not None:
        cards.append(card_at(f"model:{own_mib}"))
    choices = {
        card.address: MemoryChoice(
            identity=card.address,
            title=f"Modelled: {short_name(card.name)}",
            address=card.address,
            is_modelled=True,
        )
        for card in cards
    }
    return list(choices.values())


def short_name(name: str) -> str:
    """Return a card's name without what every card of the maker carries."""
    return name.replace("NVIDIA ", "").replace("GeForce ", "")
