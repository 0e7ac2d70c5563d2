"""The makers whose cards this program reads. A new one is a folder and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.hardware.card_reader import Maker  # noqa: TC001  # the type of the table
from gpu_studio.hardware.nvidia.nvidia import NVIDIA
from gpu_studio.hardware.pci import SYSFS, adapters_in_sysfs

if TYPE_CHECKING:
    from pathlib import Path

MAKERS: tuple[Maker, ...] = (NVIDIA,)


def are_all_cards_asleep(root: Path = SYSFS) -> bool:
    """Return whether Linux has switched off every card that could be read; this wakes no card."""
    vendors = {maker.vendor_id for maker in MAKERS}
    own = [adapter for adapter in adapters_in_sysfs(root, ()) if adapter.vendor_id in vendors]
    return bool(own) and all(adapter.is_asleep for adapter in own)
