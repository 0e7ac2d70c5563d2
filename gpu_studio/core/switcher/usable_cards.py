"""The cards of an engine that its PyTorch can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.wheels import serves, version_numbers

if TYPE_CHECKING:
    from gpu_studio.core.messages.engine_messages import EngineDescribed


def usable_cards(description: EngineDescribed) -> list[str]:
    """Return the addresses of the cards that this PyTorch has code for, in its order.

    A card without a known compute capability counts as usable: only a kernel can decide.
    """
    unserved = {
        card.cuda_index
        for card in description.cards
        if not _is_served(description.arch_list, card.compute_capability)
    }
    indices = (index for index in range(description.device_count) if index not in unserved)
    return [description.address(index) for index in indices]


def _is_served(arch_list: tuple[str, ...], compute_capability: str | None) -> bool:
    numbers = version_numbers(compute_capability)[:2]
    if len(numbers) != 2 or not arch_list:
        return True
    major, minor = numbers
    return serves(arch_list, (major, minor))
