"""NVIDIA's chips and cards, and disagreements between a driver and PyTorch about one.

The table is `resources/cards.json`, which names its sources.

A card without a driver reports only its device id, but the chip behind that id identifies it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from gpu_studio.core.devices.devices import CUDA_BUILD, without_maker
from gpu_studio.core.devices.gpu_chips import is_among
from gpu_studio.core.resources import read_resource

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import TorchCard


_TABLE = "cards.json"


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """One of NVIDIA's chips; ``device_ids`` are ranges of PCI device ids, both ends included."""

    name: str
    architecture: str
    compute_capability: str
    device_ids: tuple[str, ...]


class KnownCard(msgspec.Struct, frozen=True, kw_only=True):
    """The cards sold under one name; a name with several versions has several values.

    ``memory_gib`` is what is on the board, in GiB, ``base_clock_mhz`` the lowest of its versions.
    """

    name: str
    compute_capability: tuple[str, ...]
    multiprocessors: tuple[int, ...]
    bus_width_bits: tuple[int, ...]
    memory_gib: tuple[float, ...]
    base_clock_mhz: float | None = None


class DriverBranches(msgspec.Struct, frozen=True, kw_only=True):
    """The last driver branch that supports an architecture, and the first one without it.

    On Windows the numbers in between still belong to the last branch: 581.80 is branch 580.
    ``windows`` names those of its drivers that can still be downloaded there: ``581 or 582``.
    """

    last: int
    windows: str
    first_without: int


class FirstDrivers(msgspec.Struct, frozen=True, kw_only=True):
    """The first driver that supports a generation of cards, on each system."""

    linux: str
    windows: str


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    chips: tuple[Chip, ...] = ()
    cards: tuple[KnownCard, ...] = ()
    driver_branches: dict[str, DriverBranches] = msgspec.field(default_factory=dict)
    first_drivers: dict[str, FirstDrivers] = msgspec.field(default_factory=dict)


def chip_of(device_id: int | None) -> Chip | None:
    """Return the chip with a PCI device id; None if the table does not have it."""
    if device_id is None:
        return None
    return next((chip for chip in _table().chips if is_among(chip.device_ids, device_id)), None)


def chip_of_card(card: Device) -> Chip | None:
    """Return the chip of a card of NVIDIA's; other makers use the same numbers for other chips."""
    return chip_of(card.pci_device_id) if card.build_kind == CUDA_BUILD else None


def silicon_text(card: Device) -> str:
    """Return a card's chip with the PCI device id: ``GP108 (1d01)``; "" if unknown."""
    chip = chip_of_card(card)
    name = chip.name if chip is not None else card.chip
    return f"{name} ({card.pci_device_id or 0:04x})" if name else ""


def chip_named(name: str) -> Chip | None:
    """Return a chip by its name, ``GP108``; None if the table does not have it."""
    return next((chip for chip in _table().chips if chip.name == name), None)


def known_card(name: str) -> KnownCard | None:
    """Return the card sold under a name, with or without the maker's; None if unknown."""
    name = without_maker(name)
    return next((card for card in _table().cards if card.name.lower() == name.lower()), None)


def driver_branches(architecture: str | None) -> DriverBranches | None:
    """Return the driver branches of an architecture; None if the newest driver supports it."""
    return _table().driver_branches.get(architecture or "")


def first_drivers(compute_capability: str) -> FirstDrivers | None:
    """Return the first drivers for a compute capability, ``8.9``; None if they are not known."""
    return _table().first_drivers.get(compute_capability)


@cache
def _table() -> _Table:
    return read_resource(_TABLE, _Table, _Table())


# NVML counts the memory that the driver reserves, CUDA does not. It is never more than this share:
# on a 2 GB card it is 52 of 2048 MiB.
_MEMORY_TOLERANCE = 0.1


class Disagreement(NamedTuple):
    """One fact with two different values: ``nvidia-smi`` says 28, ``PyTorch`` says 24."""

    subject: str
    first: str
    first_says: object
    second: str
    second_says: object

    @property
    def sentence(self) -> str:
        """Both values, in words."""
        first = f"{self.first} says {self.first_says}"
        return f"{self.subject}: {first}, {self.second} says {self.second_says}"


def torch_card_of(card: Device, torch_cards: tuple[TorchCard, ...]) -> TorchCard | None:
    """Return PyTorch's properties of a card, matched by UUID, then by slot, never by number."""
    return next((torch_card for torch_card in torch_cards if _is_same(card, torch_card)), None)


_IN_BOTH = (
    "compute_capability", "multiprocessors", "memory_bus_width_bits", "memory_total_bytes",
    "sm_clock_max_mhz", "memory_clock_max_mhz",
)  # fmt: skip
_Card = TypeVar("_Card", bound="Device | TorchCard")


def completed(card: _Card, torch_card: TorchCard | None) -> _Card:
    """Return a card with PyTorch's values where its driver, an old one, reports none."""
    missing = [name for name in _IN_BOTH if torch_card and not getattr(card, name)]
    return msgspec.structs.replace(card, **{name: getattr(torch_card, name) for name in missing})


def disagreements(card: Device, torch_card: TorchCard | None) -> tuple[Disagreement, ...]:
    """Return the differences between the driver's and PyTorch's properties of a card.

    Args:
        card: the card according to NVML.
        torch_card: the card according to PyTorch; None if PyTorch does not report it.
    """
    if torch_card is None:
        return ()
    pairs: list[tuple[str, object, object]] = [
        ("name", card.name, torch_card.name),
        ("compute capability", card.compute_capability, torch_card.compute_capability),
        ("multiprocessors", card.multiprocessors, torch_card.multiprocessors),
        ("memory bus in bits", card.memory_bus_width_bits, torch_card.memory_bus_width_bits),
    ]
    found = [
        Disagreement(subject, "nvidia-smi", ours, "PyTorch", theirs)
        for subject, ours, theirs in pairs
        if ours is not None and theirs is not None and ours != theirs
    ]
    total, visible = card.memory_total_bytes, torch_card.memory_total_bytes
    if total and visible and abs(total - visible) > _MEMORY_TOLERANCE * total:
        found.append(
            Disagreement("memory in MiB", "nvidia-smi", total >> 20, "PyTorch", visible >> 20)
        )
    return tuple(found)


def _is_same(card: Device, torch_card: TorchCard) -> bool:
    if card.uuid is not None and torch_card.uuid is not None:
        return card.uuid == torch_card.uuid
    return card.pci_bus_id is not None and card.pci_bus_id == torch_card.pci_bus_id
