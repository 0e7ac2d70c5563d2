"""What a device can do at most, and a result as a share of it.

Of a card the ceilings follow from its processors, clocks and bus (`peaks`); of a CPU they are what
an engine measured: how fast it copies memory, and how fast it multiplies large matrices.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.pc.link_rate import link_bytes_per_s
from gpu_studio.core.units import format_rate

if TYPE_CHECKING:
    from gpu_studio.core.pc.peaks import CardPeaks

CALLS_PER_S = "calls/s"
"""The throughput's unit of a workload that does as good as nothing but ask."""


class Limit(str, Enum):
    """What holds a call back at the very best."""

    ARITHMETIC = "arithmetic"
    MEMORY = "memory"
    LINK = "link"


_WORDS = {
    Limit.ARITHMETIC: "peak arithmetic",
    Limit.MEMORY: "memory bandwidth",
    Limit.LINK: "PCIe link",
}


class MeasuredCeilings(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine found its CPU to reach; None or missing where it has not measured it.

    ``copy_bytes_per_s`` counts the bytes read and those written of a copy that fits no cache,
    ``matmul_flops`` the operations a second of a large matrix product by dtype.
    """

    copy_bytes_per_s: float | None = None
    matmul_flops: dict[str, float] = msgspec.field(default_factory=dict)


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """What a device can do at most in one dtype; None where it is not known.

    ``arithmetic_flops`` are operations a second, ``memory_bytes_per_s`` bytes read and written,
    ``link_bytes_per_s`` bytes one way between a card and the PC.
    """

    arithmetic_flops: float | None = None
    memory_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None

    def peak(self, limit: Limit) -> float | None:
        """Return one of the three."""
        return {
            Limit.ARITHMETIC: self.arithmetic_flops,
            Limit.MEMORY: self.memory_bytes_per_s,
            Limit.LINK: self.link_bytes_per_s,
        }[limit]


class CeilingShare(msgspec.Struct, frozen=True):
    """How near a call came to what its device can do.

    ``share`` is the shortest time that the ceilings allow over the time it took; ``limit`` is the
    ceiling that allows no shorter one, ``ceiling`` names it: ``memory bandwidth, 48.1 GB/s``.
    """

    share: float
    limit: Limit
    ceiling: str


def cpu_ceilings(measured: MeasuredCeilings, dtype: str) -> Ceilings:
    """Return the ceilings of a CPU in a dtype."""
    return Ceilings(
        arithmetic_flops=measured.matmul_flops.get(dtype),
        memory_bytes_per_s=measured.copy_bytes_per_s,
    )


def card_ceilings(
    peaks: CardPeaks,
    dtype: str,
    *,
    tf32: bool = False,
    link: tuple[int | None, int | None] = (None, None),
) -> Ceilings:
    """Return the ceilings of a card in a dtype.

    Args:
        peaks: what it can do at its highest clocks.
        dtype: PyTorch's name.
        tf32: whether float32 matrices may be multiplied in TF32.
        link: generation and width of its PCIe link under load.
    """
    return Ceilings(
        arithmetic_flops=peaks.best_flops(dtype, tf32=tf32),
        memory_bytes_per_s=peaks.memory_bytes_per_s,
        link_bytes_per_s=link_bytes_per_s(*link),
    )


def share_of_ceiling(
    ceilings: Ceilings,
    median_s: float,
    *,
    operations: float = 0.0,
    bytes_moved: float = 0.0,
    link_bytes: float = 0.0,
) -> CeilingShare | None:
    """Return how near a call came to its ceiling; None where none that it needs is known.

    Args:
        ceilings: of the device, in the dtype of the work.
        median_s: what the call took.
        operations: what it computed.
        bytes_moved: what it read and wrote in the device's memory.
        link_bytes: what it sent over PCIe, the busier way.
    """
    amounts = {
        Limit.ARITHMETIC: operations,
        Limit.MEMORY: bytes_moved,
        Limit.LINK: link_bytes,
    }
    shortest_s = {
        limit: amount / peak
        for limit, amount in amounts.items()
        if amount and (peak := ceilings.peak(limit))
    }
    if not shortest_s or median_s <= 0:
        return None
    limit = max(shortest_s, key=lambda one: shortest_s[one])
    unit = "FLOP/s" if limit is Limit.ARITHMETIC else "B/s"
    peak_text = format_rate(ceilings.peak(limit) or 0.0, unit)
    return CeilingShare(shortest_s[limit] / median_s, limit, f"{_WORDS[limit]}, {peak_text}")


def limit_of(ceiling: str) -> Limit | None:
    """Return which limit a result's ``ceiling`` names; None for another text."""
    return next((limit for limit, words in _WORDS.items() if ceiling.startswith(words)), None)
