"""The most bytes a second that a card's link can carry in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.pc.link import Link

# PCI Express base specifications, bytes a second and lane: in 8b/10b up to generation 2, in
# 128b/130b up to 5, and in units of 242 of 256 bytes in 6. Packet headers are not taken off.
_LANE_BYTES_PER_S = {1: 250e6, 2: 500e6, 3: 984.6e6, 4: 1969.2e6, 5: 3938.5e6, 6: 7562.5e6}


def link_bytes_per_s(link: Link) -> float | None:
    """Return a link's rate; None for a generation that this program does not know."""
    lane = _LANE_BYTES_PER_S.get(link.generation)
    return None if lane is None else lane * link.width
