"""A card's PCIe link. An idle card drops to generation 1, so only a busy card shows its speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.devices.devices import Device, Reading
    from gpu_studio.core.telemetry import Telemetry


# Cards work in P0 to P3 and save power from P5 on (nvmlPstates_t).
_WORKING_PSTATE = 3
_BUSY_PERCENT = 20


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A PCIe link under load."""

    generation: int
    width: int

    @property
    def text(self) -> str:
        """``gen 3 × 4``."""
        return f"gen {self.generation} × {self.width}"


def is_busy(now: Telemetry) -> bool:
    """Return whether a card is busy; False if it reports neither its P-state nor its load."""
    pstate, load = now.pstate, now.utilization_percent
    if pstate is None and load is None:
        return False
    return (pstate is None or pstate <= _WORKING_PSTATE) and (load is None or load >= _BUSY_PERCENT)


def link_at_work(now: Telemetry) -> Link | None:
    """Return a card's link if it is busy; None if it is idle or reports no link."""
    if not is_busy(now) or not now.pcie_generation or not now.pcie_width:
        return None
    return Link(generation=now.pcie_generation, width=now.pcie_width)


def faster(first: Link | None, second: Link | None) -> Link | None:
    """Return the faster of two links, either of which may be unknown."""
    if first is None or second is None:
        return first or second
    return max(first, second, key=lambda link: (link.generation, link.width))


def widest_link(card: Device) -> Link | None:
    """Return the fastest link of a card in its slot; None if the card does not report it."""
    if not card.pcie_generation_max or not card.pcie_width_max:
        return None
    return Link(generation=card.pcie_generation_max, width=card.pcie_width_max)


def links_under_load(cards: Iterable[Device], readings: Sequence[Reading]) -> dict[str, Link]:
    """Return the fastest link of every card that was seen busy, by its identity."""
    best: dict[str, Link] = {}
    for card in cards:
        for now in (card.telemetry, *(reading.telemetry(card) for reading in readings)):
            link = faster(best.get(card.identity), link_at_work(now) if now else None)
            if link is not None:
                best[card.identity] = link
    return best


# Transfers per second and lane, and the share of payload in them: PCI Express Base Specification;
# 8b/10b up to generation 2, 128b/130b up to 5, 242 of 256 bytes of a flit in 6. Packet headers are
# not subtracted.
_PCIE_LANES = {
    1: (2.5e9, 8 / 10), 2: (5e9, 8 / 10), 3: (8e9, 128 / 130),
    4: (16e9, 128 / 130), 5: (32e9, 128 / 130), 6: (64e9, 242 / 256),
}  # fmt: skip


def transfers(generation: int | None, width: int | None, seconds: float) -> float | None:
    """Return the bits that a link moves in one direction in a time; None for an unknown link.

    A link that is awake moves bits all the time, with or without data in them.
    """
    if generation is None or not width or generation not in _PCIE_LANES:
        return None
    return width * _PCIE_LANES[generation][0] * seconds


def link_bytes_per_s(generation: int | None, width: int | None) -> float | None:
    """Return the maximum of a PCIe link in one direction, in bytes per second; None if unknown."""
    if generation is None or not width or generation not in _PCIE_LANES:
        return None
    transfers_per_s, payload = _PCIE_LANES[generation]
    return width * transfers_per_s * payload / 8
