"""The devices whose memory can be looked at: this PC's, and modelled cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.memory.modelled_cards import card_at, modelled_cards
from gpu_studio.core.pc.devices import short_name
from gpu_studio.model.pc.card_access import access_of, counted_cards

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Inventory
    from gpu_studio.core.protocol import EngineDescribed


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
