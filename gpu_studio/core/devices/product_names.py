"""The names under which graphics cards are sold, by their PCI ids.

The table is `resources/product_names.json`, which names its sources. The chips are in `gpu_chips`.
"""

from __future__ import annotations

from functools import cache

import msgspec

from gpu_studio.core.json_resource import read_resource
from gpu_studio.core.resources import MissingResourceError

_TABLE = "product_names.json"
_WITH_REVISIONS = 0x1002  # AMD sells several products with one device id


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    names: dict[str, dict[str, str]]
    revisions: dict[str, dict[str, str]]


def product_name(vendor_id: int, device_id: int, revision: int | None = None) -> str:
    """Return a card's name without its maker's: ``Radeon RX 6600``; empty if it is unknown.

    Args:
        vendor_id: of the maker on the PCI bus.
        device_id: of the chip.
        revision: of the chip; without it, the name may be that of several products.
    """
    table, key = _table(), f"{device_id:04x}"
    if vendor_id == _WITH_REVISIONS:
        by_revision = table.revisions.get(key, {})
        if revision is not None and (name := by_revision.get(f"{revision:02x}")):
            return name
        if len(names := set(by_revision.values())) == 1:
            return names.pop()
    return table.names.get(f"{vendor_id:04x}", {}).get(key, "")


@cache
def _table() -> _Table:
    """Return the table; an empty one if the file is missing, as "unknown" is a valid answer."""
    try:
        return read_resource(_TABLE, _Table)
    except MissingResourceError:
        return _Table(names={}, revisions={})
