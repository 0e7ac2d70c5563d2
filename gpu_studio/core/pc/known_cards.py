"""What NVIDIA's chips and cards are, from the table `resources/cards.json`, which has its sources.

A card that no driver serves tells nothing but its device id; the chip behind that id tells what it
is all the same. And a card that was given another's name is told from it by its silicon.
"""

from __future__ import annotations

from functools import cache

import msgspec

from gpu_studio.core.json_resource import read_resource
from gpu_studio.core.resources import MissingResourceError

_TABLE = "cards.json"


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """One of NVIDIA's chips; ``device_ids`` are ranges of PCI device ids, both ends included."""

    name: str
    architecture: str
    compute_capability: str
    device_ids: tuple[str, ...]

    def has(self, device_id: int) -> bool:
        """Return whether a PCI device id is this chip's."""
        ranges = (text.split("-") for text in self.device_ids)
        return any(int(first, 16) <= device_id <= int(last, 16) for first, last in ranges)


class KnownCard(msgspec.Struct, frozen=True, kw_only=True):
    """What is sold under one name; more than one value where the name has several versions."""

    name: str
    compute_capability: tuple[str, ...]
    multiprocessors: tuple[int, ...]
    bus_width_bits: tuple[int, ...]


class DriverBranches(msgspec.Struct, frozen=True, kw_only=True):
    """The last driver branch that serves an architecture, and the first after it.

    On Windows the numbers between the two are of the last branch still: 581.80 is of 580.
    """

    last: int
    first_without: int


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    chips: tuple[Chip, ...]
    cards: tuple[KnownCard, ...]
    driver_branches: dict[str, DriverBranches]


def chip_of(device_id: int | None) -> Chip | None:
    """Return the chip with a PCI device id; None for one that the table does not have."""
    if device_id is None:
        return None
    return next((chip for chip in _table().chips if chip.has(device_id)), None)


def known_card(name: str) -> KnownCard | None:
    """Return what is sold under a name, with the maker's or without it; None where not known."""
    name = name.removeprefix("NVIDIA ")
    return next((card for card in _table().cards if card.name.lower() == name.lower()), None)


def driver_branches(architecture: str | None) -> DriverBranches | None:
    """Return how far drivers serve an architecture; None where the newest does."""
    return _table().driver_branches.get(architecture or "")


@cache
def _table() -> _Table:
    """Return the table; an empty one where it is missing, since every answer may be "not known"."""
    try:
        return read_resource(_TABLE, _Table)
    except MissingResourceError:
        return _Table(chips=(), cards=(), driver_branches={})
