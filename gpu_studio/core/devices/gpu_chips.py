"""AMD's and Intel's chips, by PCI device id and by the names that PyTorch's builds use.

The table is `resources/gpu_chips.json`, which names its sources. NVIDIA's are in `cards.py`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.resources import read_resource

if TYPE_CHECKING:
    from collections.abc import Iterable


_TABLE = "gpu_chips.json"


class GpuChip(msgspec.Struct, frozen=True, kw_only=True):
    """One chip, or several that programs are compiled for in the same way.

    ``target`` is what code is compiled for: LLVM's name of an AMD chip, ``gfx1032``, or the short
    name of an Intel platform, ``bmg``. ``products`` says in words which cards have it.
    ``device_ids`` are PCI device ids and ranges of them, both ends included.
    """

    maker: str
    name: str
    target: str
    generation: str
    is_integrated: bool
    products: str
    device_ids: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    chips: tuple[GpuChip, ...]


def gpu_chip(maker: str, device_id: int | None) -> GpuChip | None:
    """Return the chip with a PCI device id; None if the table does not have it.

    Args:
        maker: "AMD" or "Intel".
        device_id: the PCI device id, without the vendor's.
    """
    if device_id is None:
        return None
    return next(
        (c for c in _table().chips if c.maker == maker and is_among(c.device_ids, device_id)), None
    )


def chip_for_target(target: str) -> GpuChip | None:
    """Return the newest chip with a target, ``gfx1032``; None if the table has none."""
    return next((c for c in reversed(_table().chips) if c.target == target), None)


def gfx_target(version: int) -> str:
    """Return LLVM's name of an AMD chip from Linux' ``gfx_target_version``: 100302 → "gfx1032".

    Two decimal digits each for the minor version and the stepping; LLVM writes the stepping as one
    hexadecimal digit: 90010 is gfx90a. Linux, drivers/gpu/drm/amd/amdkfd/kfd_device.c.
    """
    major, rest = divmod(version, 10_000)
    minor, stepping = divmod(rest, 100)
    return f"gfx{major}{minor}{stepping:x}"


def is_among(ids: Iterable[str], device_id: int) -> bool:
    """Return whether a PCI device id is one of those, or in a range of them: ``1d01-1d12``."""
    ends = ((first, last or first) for first, _, last in (text.partition("-") for text in ids))
    return any(int(first, 16) <= device_id <= int(last, 16) for first, last in ends)


@cache
def _table() -> _Table:
    return read_resource(_TABLE, _Table, _Table(chips=()))


_GENERIC = {
    "gfx9-generic": r"gfx90[02469c]",
    "gfx9-4-generic": r"gfx94[0-2]|gfx950",
    "gfx10-1-generic": r"gfx101[0-3]",
    "gfx10-3-generic": r"gfx103[0-6]",
    "gfx11-generic": r"gfx110[0-3]|gfx115[0-3]",
    "gfx12-generic": r"gfx120[01]",
}


def gfx_name(text: str) -> str:
    """Return the architecture without its features: ``gfx906`` for ``gfx906:sramecc+:xnack-``."""
    return text.partition(":")[0].strip()


def lists_gfx(listed: Iterable[str], chip: str) -> bool:
    """Return whether a build with code for some architectures has code for a chip."""
    names = {gfx_name(name) for name in listed}
    if chip in names:
        return True
    return any(name in names and re.fullmatch(form, chip) for name, form in _GENERIC.items())


_NAMES_FILE = "product_names.json"
# NVIDIA's drivers call the laptop's cards since the RTX 30 and A series so; the list has “Mobile”.
_MOBILE = re.compile(r"^(GeForce RTX [3-9]0\d0(?: Ti)?|RTX A\d{4}) (?:Max-Q|Mobile)\b.*")
_WITH_REVISIONS = 0x1002  # AMD sells several products with one device id


class _NameTable(msgspec.Struct, frozen=True, kw_only=True):
    names: dict[str, dict[str, str]]
    revisions: dict[str, dict[str, str]]


def product_name(vendor_id: int, device_id: int, revision: int | None = None) -> str:
    """Return a card's name without its maker's: ``Radeon RX 6600``; empty if it is unknown.

    Args:
        vendor_id: of the maker on the PCI bus.
        device_id: of the chip.
        revision: of the chip; without it, the name may be that of several products.
    """
    table, key = _name_table(), f"{device_id:04x}"
    if vendor_id == _WITH_REVISIONS:
        by_revision = table.revisions.get(key, {})
        if revision is not None and (name := by_revision.get(f"{revision:02x}")):
            return name
        if len(names := set(by_revision.values())) == 1:
            return names.pop()
    name = table.names.get(f"{vendor_id:04x}", {}).get(key, "")
    return _MOBILE.sub(r"\1 Laptop GPU", name)


@cache
def _name_table() -> _NameTable:
    return read_resource(_NAMES_FILE, _NameTable, _NameTable(names={}, revisions={}))
