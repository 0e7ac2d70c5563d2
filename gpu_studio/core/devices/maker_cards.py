"""The AMD and Intel cards of a PC, as the choice of a build sees them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.devices.devices import without_maker
from gpu_studio.core.devices.gpu_chips import chip_for_target, gpu_chip
from gpu_studio.core.maker_builds import MakerCard, judge
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import own_platform_key

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.devices.gpu_chips import GpuChip
    from gpu_studio.core.maker_builds import JudgedCard

_MAKERS = ("AMD", "Intel")


def maker_cards(inventory: Inventory) -> list[tuple[Device, MakerCard]]:
    """Return the AMD and Intel cards of a PC, each with what decides its build."""
    cards = (*inventory.cards, *inventory.unread_cards)
    return [(card, _maker_card(card)) for card in cards if card.maker in _MAKERS]


def chip_of_maker(card: Device) -> GpuChip | None:
    """Return the chip of an AMD or Intel card; None if the table does not have it."""
    chip = gpu_chip(card.maker, card.pci_device_id)
    target = card.architecture or ""
    if target.startswith("gfx") and (chip is None or chip.target != target):
        return chip_for_target(target) or chip  # the driver knows it better
    return chip


def build_here(card: Device) -> JudgedCard | None:
    """Return the build for a card on this PC, or why it has none; None for other makers' cards."""
    if card.maker not in _MAKERS:
        return None
    try:
        table = load_table()
    except MissingResourceError:
        return None
    kernel = operating_system.release() if operating_system.system() == "Linux" else ""
    return judge(_maker_card(card), table, own_platform_key(), kernel, sys.version_info[:2])


def _maker_card(card: Device) -> MakerCard:
    chip, name = chip_of_maker(card), without_maker(card.name)
    if chip is None:  # perhaps newer than the table
        target = card.architecture or ""
        return MakerCard(name, card.maker, target if target.startswith("gfx") else "")
    return MakerCard(name, card.maker, chip.target, chip.is_integrated)
