"""Whether PyTorch can use a card, and if not, why: the one answer for every tab and command."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gpu_studio.core.compute_capability import serves, version_numbers
from gpu_studio.core.devices.cards import chip_of, torch_card_of
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.engine_messages import TorchCard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.torch_facts import CardProbed, PcProbed
    from gpu_studio.core.messages.engine_messages import EngineDescribed


class Obstacle(Enum):
    """Why PyTorch cannot use a card now."""

    NO_ENGINE = "no_engine"  # the engine has not described itself yet
    UNREADABLE = "unreadable"  # its driver does not serve it; the card may be lost
    HIDDEN = "hidden"  # CUDA_VISIBLE_DEVICES leaves it out, so another engine could use it
    ASLEEP = "asleep"
    NO_CUDA = "no_cuda"  # not in this build, or CUDA does not start
    NOT_LISTED = "not_listed"  # CUDA starts, but does not count the card
    NO_CODE = "no_code"  # the build has no code for the card's architecture


def obstacle_of(
    card: Device, engine: EngineDescribed | None, probe: PcProbed | None = None
) -> Obstacle | None:
    """Return what keeps an engine from using a card; None if it can use the card.

    A card without a known compute capability counts as usable: only a kernel can decide.

    Args:
        card: the card with its number in this engine.
        engine: the engine's description of itself; None before it starts.
        probe: the results of a real kernel on each card, if the cards were tested.
    """
    if engine is None:
        return Obstacle.NO_ENGINE
    if card.unreadable is not None and card.unreadable_code != "asleep":
        return Obstacle.UNREADABLE
    if card.torch_index is None:
        return Obstacle.HIDDEN
    if engine.cards_asleep:
        return Obstacle.ASLEEP
    if not engine.cuda_available:
        return Obstacle.NO_CUDA
    if card.torch_index >= engine.device_count:
        return Obstacle.NOT_LISTED
    is_served = has_code(card, engine.arch_list, probe_of(card, probe))
    return Obstacle.NO_CODE if is_served is False else None


def obstacle_words(obstacle: Obstacle, card: Device, engine: EngineDescribed | None) -> str:
    """Return an obstacle as a sentence."""
    match obstacle:
        case Obstacle.NO_ENGINE:
            return "Not known until the engine has started."
        case Obstacle.UNREADABLE:
            return card.unreadable or ""
        case Obstacle.HIDDEN:
            return "CUDA_VISIBLE_DEVICES hides this card from PyTorch."
        case Obstacle.ASLEEP:
            return "This card is asleep to save power. Wake it on the Devices tab."
        case Obstacle.NO_CUDA:
            return (engine.cuda_reason if engine else "") or "This PyTorch cannot use CUDA."
        case Obstacle.NOT_LISTED:
            return "CUDA does not list this card."
        case Obstacle.NO_CODE:
            return f"{no_code_words(card)}."


def no_code_words(card: Device) -> str:
    """Return that the build has no code for a card, as the beginning of a sentence."""
    return f"This PyTorch has no code for your {label_of(card)}"


def has_code(card: Device, arch_list: Sequence[str], probed: CardProbed | None) -> bool | None:
    """Return whether PyTorch has code for a card; None if unknown.

    Args:
        card: the card.
        arch_list: the architectures that PyTorch has code for; empty if unknown.
        probed: the result of a real kernel, which overrules the list.
    """
    if probed is not None and probed.outcome in ("ran", "no_code"):
        return probed.outcome == "ran"
    return lists_code(card, arch_list)


def lists_code(card: Device, arch_list: Sequence[str]) -> bool | None:
    """Return whether a list of architectures has one for a card; None if unknown."""
    capability = capability_of(card)
    if capability is None or not arch_list:
        return None
    return serves(arch_list, capability)


def probe_of(card: Device, probe: PcProbed | None) -> CardProbed | None:
    """Return the result of a kernel on a card; None if the card was not tested."""
    tried = probe.cards if probe is not None else ()
    return next((one for one in tried if torch_card_of(card, (one.card,))), None)


def capability_of(card: Device) -> tuple[int, int] | None:
    """Return a card's compute capability; its chip's if the card does not report it."""
    text = card.compute_capability
    if not text:
        chip = chip_of(card.pci_device_id)
        text = chip.compute_capability if chip else ""
    numbers = version_numbers(text)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def label_of(card: Device) -> str:
    """Return a card's name with its compute capability: ``GT 1030 (6.1)``."""
    capability = capability_of(card)
    return f"{card.short_name} ({capability[0]}.{capability[1]})" if capability else card.short_name


def engine_cards(engine: EngineDescribed | None) -> list[Device]:
    """Return the cards that an engine counts, with PyTorch's properties as far as it reports them.

    A card without them has an empty name.
    """
    if engine is None or not engine.cuda_available or engine.cards_asleep:
        return []
    reported = {card.torch_index: card for card in engine.cards}
    unknown = (
        TorchCard(torch_index=index, name="", kind=engine.accelerator)
        for index in range(engine.device_count)
    )
    return [
        Device(
            kind=card.kind,
            name=card.name,
            uuid=card.uuid,
            pci_bus_id=card.pci_bus_id,
            compute_capability=card.compute_capability,
            torch_index=card.torch_index,
        )
        for card in (reported.get(one.torch_index, one) for one in unknown)
    ]


def usable_cards(engine: EngineDescribed) -> list[str]:
    """Return the addresses of the cards that an engine can use, in its order."""
    usable = (card.address for card in engine_cards(engine) if obstacle_of(card, engine) is None)
    return [address for address in usable if address is not None]
