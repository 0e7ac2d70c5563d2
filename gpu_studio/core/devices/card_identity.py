"""Whether a card is the one that its name claims: its chip, its units and its memory.

A card's name and device id come from its BIOS, which can be that of another card. What it computes
with cannot be changed. Names are compared by chip, because laptops, PC makers and later chips of
the same series share them; units and memory only where this program knows what was sold.
`resources/card_chips.json` and `resources/cards.json` name their sources.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.cards import (
    Disagreement,
    chip_named,
    chip_of_card,
    completed,
    known_card,
)
from gpu_studio.core.devices.devices import CUDA_BUILD, without_maker
from gpu_studio.core.resources import read_resource
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import TorchCard

_TABLE = "card_chips.json"
_GIB = 1 << 30
# What a driver keeps for itself, and ECC in ordinary memory, which takes a sixteenth.
_LEAST_MEMORY, _MOST_MEMORY = 0.88, 1.03
# What makers add to a model's name without selling another chip.
_ADDITIONS = re.compile(
    r"\(.*\)$|\bwith max-[pq]( design)?|\bmax-[pq]\b|\blaptop gpu\b|\bmobile\b|\boem\b|\brefresh\b"
    r"|\brev\. ?\w+|\blite( hash rate)?\b|\blhr\b|\bengineering sample\b|\bprerelease\b"
    r"|\b\d+ ?gb\b|\b(special|mac|collectors) edition\b|\bv2\b",
    re.IGNORECASE,
)


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    chips: dict[str, tuple[str, ...]]
    mining: dict[str, tuple[str, ...]]


class CardIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What of a card fits its name, and what does not.

    ``fitting`` has the parts that were compared and fit, in words; with neither these nor
    ``differing`` ones, nothing could be compared. ``is_whole``: units or memory were compared as
    well, not only the chip. ``is_for_mining``: the card was made for nothing else.
    """

    name: str
    fitting: tuple[str, ...] = ()
    differing: tuple[Disagreement, ...] = ()
    is_whole: bool = False
    is_for_mining: bool = False

    @property
    def contradiction(self) -> str:
        """What does not fit the name, as a sentence; empty if everything that is known does."""
        if not self.differing:
            return ""
        chip = next((one for one in self.differing if one.subject == _CHIP), None)
        others = "; ".join(one.sentence for one in self.differing if one is not chip)
        if chip is None:
            return f"This card says {self.name}, but: {others}."
        first = f"This card says {self.name}, but its chip is {chip.first_says}."
        return f"{first} Also: {others}." if others else first

    @property
    def agreement(self) -> str:
        """What fits the name, as sentences; empty if something does not, or nothing is known."""
        if self.differing or not self.fitting:
            return ""
        parts = [f"The {listed(('name', *self.fitting))} are those of the {self.name}."]
        if not self.is_whole:
            parts.append("This program does not know its units and its memory.")
        if self.is_for_mining:
            parts.append(_FOR_MINING)
        return " ".join(parts)


_CHIP = "chip"
_LONGEST_NAME = 80
_FOR_MINING = (
    "It was made for mining: most such cards have no display outputs and a slow PCIe link, and "
    "some compute slowly."
)


def model_of(name: str) -> str:
    """Return the model of a card's name, for comparing: ``geforce gtx 1060``.

    It lacks what does not change the choice of chips: the maker, the memory, and the words for
    laptops, PC makers and revisions.
    """
    name, before = without_maker(name), ""
    while name != before:
        before, name = name, _ADDITIONS.sub("", name).strip(" -/")
    return " ".join(name.lower().split())


def identity_of(card: Device, torch_card: TorchCard | None) -> CardIdentity:
    """Return whether a card is the one that its name claims.

    Args:
        card: the card according to the driver.
        torch_card: the card according to PyTorch, which knows what an old driver does not say.
    """
    shown = card.short_name[:_LONGEST_NAME]
    name = f"its name ({shown})"
    whole = completed(card, torch_card)
    capability = whole.compute_capability
    chip, chips = chip_of_card(card), chips_named(card.name)
    known = known_card(card.name)
    fitting: list[str] = []
    differing: list[Disagreement] = []

    def compare(subject: str, word: str, value: object, sold: tuple[object, ...]) -> None:
        if value is None or not sold:
            return
        if value in sold:
            fitting.append(word)
        else:
            expected = listed([str(one) for one in sold], "or")
            differing.append(Disagreement(subject, "the card", value, name, expected))

    mining = _mining_model(card.pci_device_id) if card.build_kind == CUDA_BUILD else None
    if mining is not None and model_of(card.name) != model_of(mining):
        told = f"{mining}, a mining card"
        differing.append(Disagreement("card", "its device id", told, name, shown))
    compare(_CHIP, _CHIP, chip.name if chip else None, chips)
    compare("compute capability", "compute capability", capability, _capabilities(card.name))
    if chip is not None and capability is not None and chip.compute_capability != capability:
        by_id = f"its device id ({chip.name})"
        differing.append(
            Disagreement(
                "compute capability", "the card", capability, by_id, chip.compute_capability
            )
        )
    before = len(fitting)
    # A part of a divided card has a part of its units and of its memory.
    if known is not None and not card.mig_enabled:
        bits, total = whole.memory_bus_width_bits, whole.memory_total_bytes
        compare("multiprocessors", "units", whole.multiprocessors, known.multiprocessors)
        compare("memory bus in bits", "memory bus", bits, known.bus_width_bits)
        sizes = tuple(f"{size:g}" for size in known.memory_gib)
        compare("memory in GiB", "memory", _sold_size(total, known.memory_gib), sizes)
    return CardIdentity(
        name=shown,
        fitting=tuple(fitting),
        differing=tuple(differing),
        is_whole=len(fitting) > before,
        is_for_mining=mining is not None or model_of(card.name) in _mining_models(),
    )


def chips_named(name: str) -> tuple[str, ...]:
    """Return the chips of the cards with a name; empty if the table does not have it."""
    return _table().chips.get(model_of(name), ())


def _capabilities(name: str) -> tuple[str, ...]:
    """Return the compute capabilities of the cards with a name; empty if one is unknown."""
    known = known_card(name)
    found = [chip_named(chip) for chip in chips_named(name)]
    of_chips = {chip.compute_capability for chip in found if chip is not None}
    if None in found or not found:
        of_chips = set()
    return tuple(sorted(of_chips | set(known.compute_capability if known else ())))


def _sold_size(total_bytes: int | None, sizes_gib: tuple[float, ...]) -> str | None:
    """Return the size in GiB that was sold and fits the reported bytes, or the bytes in GiB."""
    if not total_bytes:
        return None
    total = total_bytes / _GIB
    fits = (size for size in sizes_gib if _LEAST_MEMORY * size <= total <= _MOST_MEMORY * size)
    return f"{next(fits, round(total, 1)):g}"


def _mining_model(device_id: int | None) -> str | None:
    """Return the name of the mining card with a device id; None for any other card."""
    found = (name for name, ids in _table().mining.items() if f"{device_id or 0:04x}" in ids)
    return next(found, None)


@cache
def _mining_models() -> frozenset[str]:
    return frozenset(map(model_of, _table().mining))


@cache
def _table() -> _Table:
    return read_resource(_TABLE, _Table, _Table(chips={}, mining={}))
