"""Whether PyTorch can use a card, and if not, why: the one answer for every tab and command.

Also the result of one real kernel on each card, which knows best.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal

import msgspec

from gpu_studio.core.devices.cards import chip_of_card, torch_card_of
from gpu_studio.core.devices.devices import CUDA_BUILD, Device, number_cards, short_name
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.maker_builds import serves, version_numbers
from gpu_studio.core.messages.engine_messages import (
    BUILD_WORDS,
    StartError,
    TorchCard,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.messages.engine_messages import BuildKind, EngineDescribed


class Obstacle(Enum):
    """Why PyTorch cannot use a card now."""

    NO_ENGINE = "no_engine"  # the engine has not described itself yet
    UNREADABLE = "unreadable"  # its driver does not serve it; the card may be lost
    HIDDEN = "hidden"  # CUDA_VISIBLE_DEVICES leaves it out, so another engine could use it
    ASLEEP = "asleep"
    NO_CUDA = "no_cuda"  # not in this build, or its part for the cards does not start
    NOT_LISTED = "not_listed"  # PyTorch's part for such cards starts, but does not count it
    NO_CODE = "no_code"  # the build has no code for the card's architecture
    OTHER_BUILD = "other_build"  # another build of PyTorch is for such cards, or none is
    OTHER_DRIVER = "other_driver"  # a driver that PyTorch cannot use holds the card
    NO_LINE = "no_line"  # its PC is another one, which is not connected


ABOUT_THE_CARD = (Obstacle.OTHER_BUILD, Obstacle.OTHER_DRIVER)
"""What keeps PyTorch from a card whatever else is found about the PC."""


def numbered_cards(
    cards: Sequence[Device],
    visible_devices: str | None,
    build_kind: BuildKind = CUDA_BUILD,
    torch_cards: Sequence[TorchCard] = (),
) -> list[Device]:
    """Return the cards with the numbers that an engine gives them; None for those of other builds.

    CUDA's order is known before it is asked; that of the other makers only from the engine.

    Args:
        cards: all cards of the PC.
        visible_devices: as for `number_cards`.
        build_kind: what the engine's PyTorch is built for.
        torch_cards: the cards that the engine counts.
    """
    if build_kind in ("rocm", "xpu"):
        found = _paired([card for card in cards if card.build_kind == build_kind], torch_cards)
        return [
            msgspec.structs.replace(card, torch_index=found.get(card.identity)) for card in cards
        ]
    counted = [card.is_cudas and card.answers_or_sleeps for card in cards]
    usable = [card for card, is_counted in zip(cards, counted, strict=True) if is_counted]
    numbered = iter(number_cards(usable, visible_devices))
    return [
        next(numbered) if is_counted else card
        for card, is_counted in zip(cards, counted, strict=True)
    ]


def _paired(cards: Sequence[Device], torch_cards: Sequence[TorchCard]) -> dict[str, int]:
    """Return PyTorch's numbers of cards by their identities, each number once.

    The slot decides. Older PyTorch, and newer drivers of Intel's, do not report it: then the chip's
    number does, then the name; of several that fit, the first by slot is PyTorch's first.
    """
    numbers: dict[str, int] = {}
    left = sorted(torch_cards, key=lambda one: one.torch_index)
    for fits in (_is_in_slot, _has_chip, _has_name):
        for card in sorted(cards, key=lambda card: card.pci_bus_id or ""):
            one = next((one for one in left if fits(card, one)), None)
            if one is not None and card.identity not in numbers:
                numbers[card.identity] = one.torch_index
                left.remove(one)
    return numbers


def _is_in_slot(card: Device, torch_card: TorchCard) -> bool:
    return torch_card_of(card, (torch_card,)) is not None


def _has_chip(card: Device, torch_card: TorchCard) -> bool:
    chip = torch_card.pci_device_id
    return torch_card.pci_bus_id is None and chip is not None and chip == card.pci_device_id


def _has_name(card: Device, torch_card: TorchCard) -> bool:
    """Return whether a card has PyTorch's name, or PyTorch knows only as much as its chip."""
    if torch_card.pci_bus_id is not None:
        return False
    if torch_card.architecture is not None and card.architecture is not None:
        return torch_card.architecture == card.architecture
    return short_name(torch_card.name) == card.short_name


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
    if card.has_open_driver:
        return Obstacle.OTHER_DRIVER
    if card.torch_index is None:
        return _why_without_number(card, engine)
    if engine.cards_asleep:
        return Obstacle.ASLEEP
    if not engine.cuda_available:
        return Obstacle.NO_CUDA
    if card.torch_index >= engine.device_count:
        return Obstacle.NOT_LISTED
    is_served = has_code(_as_seen_by(engine, card), engine.arch_list, probe_of(card, probe))
    return Obstacle.NO_CODE if is_served is False else None


def _why_without_number(card: Device, engine: EngineDescribed) -> Obstacle:
    """Return why an engine gives a readable card no number."""
    kind = engine.build_kind
    if card.build_kind == CUDA_BUILD and kind not in ("rocm", "xpu"):
        return Obstacle.HIDDEN
    chip, listed = card.architecture or "", engine.arch_list
    if card.build_kind != kind or (kind == "rocm" and listed and not lists_gfx(listed, chip)):
        return Obstacle.OTHER_BUILD
    return Obstacle.NOT_LISTED if engine.cuda_available else Obstacle.NO_CUDA


def obstacle_words(obstacle: Obstacle, card: Device, engine: EngineDescribed | None) -> str:
    """Return an obstacle as a sentence."""
    match obstacle:
        case Obstacle.NO_ENGINE | Obstacle.NO_LINE:
            return "Not known until PyTorch has started."
        case Obstacle.UNREADABLE:
            return card.unreadable or ""
        case Obstacle.HIDDEN:
            return "CUDA_VISIBLE_DEVICES hides this card from PyTorch."
        case Obstacle.ASLEEP:
            return "This card is asleep to save power. Wake it on the Devices tab."
        case Obstacle.NO_CUDA:
            return (engine.cuda_reason if engine else "") or "This PyTorch cannot use this card."
        case Obstacle.NOT_LISTED:
            return "PyTorch does not list this card."
        case Obstacle.NO_CODE:
            return f"{no_code_words(card)}."
        case Obstacle.OTHER_DRIVER:
            return (
                f"The driver {card.kernel_driver} holds this card. PyTorch needs NVIDIA's own "
                "driver."
            )
        case Obstacle.OTHER_BUILD:
            return _other_build_words(card, engine)


def _other_build_words(card: Device, engine: EngineDescribed | None) -> str:
    from gpu_studio.core.devices.maker_cards import build_here  # 10 ms

    this = f"This PyTorch is {engine.build_words}. " if engine else ""
    judged = build_here(card)
    if judged is not None:
        is_there = f"{this}This card needs PyTorch {judged.tag}."
        return is_there if judged.tag else f"{judged.sentence}."
    needed = BUILD_WORDS.get(card.build_kind or "")
    if needed is None:
        return "PyTorch has no build for such graphics."
    return f"{this}This card needs a build for {needed}."


def _as_seen_by(engine: EngineDescribed, card: Device) -> Device:
    """Return a card with the architecture that PyTorch takes it for.

    HSA_OVERRIDE_GFX_VERSION lets an AMD card pass for another one.
    """
    seen = next((one for one in engine.cards if one.torch_index == card.torch_index), None)
    if seen is None or seen.architecture is None:
        return card
    return msgspec.structs.replace(card, architecture=seen.architecture)


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
    if not arch_list:
        return None
    if capability is None:
        is_amds = card.build_kind == "rocm" and card.architecture
        return lists_gfx(arch_list, card.architecture or "") if is_amds else None
    return serves(arch_list, capability)


def probe_of(card: Device, probe: PcProbed | None) -> CardProbed | None:
    """Return the result of a kernel on a card; None if the card was not tested."""
    tried = probe.cards if probe is not None else ()
    return next((one for one in tried if torch_card_of(card, (one.card,))), None)


def capability_of(card: Device) -> tuple[int, int] | None:
    """Return a card's compute capability; its chip's if the card does not report it."""
    text = card.compute_capability
    if not text:
        chip = chip_of_card(card)
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
            maker=card.maker,
            pci_device_id=card.pci_device_id,
            compute_capability=card.compute_capability,
            architecture=card.architecture,
            is_integrated=card.is_integrated,
            torch_index=card.torch_index,
        )
        for card in (reported.get(one.torch_index, one) for one in unknown)
    ]


def uncounted_cards(known: Sequence[Device], engine: EngineDescribed | None) -> list[Device]:
    """Return the cards that an engine counts and the system does not know.

    For NVIDIA's cards, the driver is the one that knows them; without any, PyTorch's are all.
    """
    if known and engine is not None and engine.build_kind not in ("rocm", "xpu"):
        return []
    numbers = {card.torch_index for card in known}
    return [card for card in engine_cards(engine) if card.torch_index not in numbers]


def discrete_first(cards: Iterable[Device]) -> list[Device]:
    """Return cards with those inside a processor last."""
    return sorted(cards, key=lambda card: bool(card.is_integrated))


def usable_cards(engine: EngineDescribed) -> list[str]:
    """Return the addresses of the cards that an engine can use, the one that it begins with first.

    The others are in its order.
    """
    usable = (card.address for card in engine_cards(engine) if obstacle_of(card, engine) is None)
    addresses = [address for address in usable if address is not None]
    return sorted(addresses, key=lambda address: address != engine.first_address)


Outcome = Literal["ran", "no_code", "busy", "lost", "out_of_memory", "failed", "died", "silent"]


class CardProbed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one real kernel on one card.

    Attributes:
        outcome: "ran": launched and synchronized, whatever the result. "died": the driver ended
            the process. "silent": the driver never returned from a call.
        message: the first line of the error.
        error_code: CUDA's error code, if PyTorch reports it.
        total: the sum that the kernels computed; None if they did not run.
        expected_total: the correct sum.
    """

    card: TorchCard
    outcome: Outcome
    message: str = ""
    error_code: int | None = None
    total: float | None = None
    expected_total: float | None = None

    @property
    def is_sum_wrong(self) -> bool:
        """Whether the kernels ran, but computed a wrong sum."""
        return self.total != self.expected_total


class PcProbed(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a separate process with your own environment that used CUDA.

    ``cards`` are in the order of that process, which is the order of your own scripts. ``error``
    says why CUDA did not start at all, ``start_error`` with which error.
    """

    cards: tuple[CardProbed, ...] = ()
    error: str | None = None
    start_error: StartError | None = None
    visible_devices: str | None = None


class ProbeStep(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the probe: CUDA's state, the card that comes next, or a card's result."""

    pc: PcProbed | None = None
    cards: tuple[TorchCard, ...] = ()
    begun: TorchCard | None = None
    probed: CardProbed | None = None
