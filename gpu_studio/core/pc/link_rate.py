"""The most bytes a second that a card's link can carry in one direction."""

from __future__ import annotations

# Transfers a second and lane, and the share of them that is payload: PCI Express Base
# Specification; 8b/10b up to generation 2, 128b/130b up to 5, 242 of 256 bytes of a flit in 6.
# Packet headers are not taken off.
_PCIE_LANES = {
    1: (2.5e9, 8 / 10), 2: (5e9, 8 / 10), 3: (8e9, 128 / 130),
    4: (16e9, 128 / 130), 5: (32e9, 128 / 130), 6: (64e9, 242 / 256),
}  # fmt: skip


def link_bytes_per_s(generation: int | None, width: int | None) -> float | None:
    """Return the most that a PCIe link carries one way, in bytes a second; None if not known."""
    if generation is None or not width or generation not in _PCIE_LANES:
        return None
    transfers_per_s, payload = _PCIE_LANES[generation]
    return width * transfers_per_s * payload / 8
