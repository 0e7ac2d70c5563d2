"""Whether the current engine can address a card, and if not, why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import EngineDescribed


class CardAccess(msgspec.Struct, frozen=True, kw_only=True):
    """A card as an engine sees it.

    Attributes:
        address: ``cuda:0``, or None if this engine cannot address it.
        reason: why it has no address; empty if it has one.
        is_hidden: CUDA_VISIBLE_DEVICES hides it, so another engine could use it.
    """

    address: str | None
    reason: str = ""
    is_hidden: bool = False


def access_of(card: Device, description: EngineDescribed | None) -> CardAccess:
    """Return how an engine addresses a card; ``description`` is None before the engine starts."""
    if description is None:
        return CardAccess(address=None, reason="Not known until the engine has started.")
    if card.cuda_index is None:
        return CardAccess(
            address=None,
            reason="CUDA_VISIBLE_DEVICES hides this card from PyTorch.",
            is_hidden=description.visible_devices is not None,
        )
    if description.cards_asleep:
        reason = "This card is asleep to save power. Wake it on the Devices tab."
        return CardAccess(address=None, reason=reason)
    if not description.cuda_available:
        reason = description.cuda_reason or "This PyTorch cannot use CUDA."
        return CardAccess(address=None, reason=reason)
    if card.cuda_index >= description.device_count:
        return CardAccess(address=None, reason="CUDA does not list this card.")
    return CardAccess(address=card.address)


def counted_cards(description: EngineDescribed | None) -> list[str]:
    """Return the addresses of an engine's cards, for use if the sensor reader finds none."""
    if description is None or not description.cuda_available:
        return []
    return description.card_addresses
