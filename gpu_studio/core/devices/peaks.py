"""The theoretical peaks of a card.

NVIDIA's follow from the card's own facts: multiprocessors, clocks and memory bus, with the rates of
each compute capability in `resources/card_peaks.json`. AMD's and Intel's cards do not report all of
these: theirs are in `resources/published_peaks.json`. Both files name their sources.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from gpu_studio.core.resources import read_resource

_TABLE = "card_peaks.json"
_PUBLISHED = "published_peaks.json"
_OPERATIONS = 2  # NVIDIA's peaks count a multiply-add as two operations, and so do ours


class CardPeaks(msgspec.Struct, frozen=True, kw_only=True):
    """The peaks of one card at given clocks; unknown peaks are missing or None.

    ``arithmetic_flops`` is the peak of the ordinary cores by dtype, ``tensor_core_flops`` that of
    the tensor cores (``tf32`` is float32 in TF32), both in operations per second. Dtypes without
    native arithmetic (bfloat16 before 8.0) are missing.
    """

    arithmetic_flops: dict[str, float]
    tensor_core_flops: dict[str, float]
    memory_bytes_per_s: float | None

    def best_flops(self, dtype: str, *, tf32: bool = False) -> float | None:
        """Return the highest rate that PyTorch can reach in a dtype, in operations per second.

        In a 16-bit dtype, PyTorch uses tensor cores wherever a card has them. If a card is slower
        in it than in float32, or has no arithmetic for it, PyTorch may compute in float32 and only
        store the dtype. Then float32's peak applies.

        Args:
            dtype: PyTorch's name of the dtype.
            tf32: whether PyTorch may multiply float32 matrices in TF32.
        """
        found = [self.tensor_core_flops.get(dtype)]
        is_half = dtype in ("float16", "bfloat16")
        if is_half:
            found.append(self.arithmetic_flops.get("float32"))
        if not is_half or found[0] is None:
            found.append(self.arithmetic_flops.get(dtype))
        if dtype == "float32" and tf32:
            found.append(self.tensor_core_flops.get("tf32"))
        return max((peak for peak in found if peak is not None), default=None)


class _LimitedCards(msgspec.Struct, frozen=True, kw_only=True):
    """Cards that compute slower than others of their compute capability, by a pattern of names.

    ``arithmetic`` and ``tensor_cores`` have the share that is left in each dtype: 0 for none.
    """

    name: str
    compute_capabilities: tuple[str, ...]
    arithmetic: dict[str, float] = {}
    tensor_cores: dict[str, float] = {}


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    arithmetic: dict[str, dict[str, int]]
    tensor_cores: dict[str, dict[str, int]]
    limited: tuple[_LimitedCards, ...]


def card_peaks(
    compute_capability: str,
    sm_count: int,
    sm_clock_hz: float,
    bus_width_bits: int | None,
    memory_clock_hz: float | None,
    name: str = "",
) -> CardPeaks | None:
    """Return the peaks of a card at these clocks; None for an unknown compute capability.

    Args:
        compute_capability: ``6.1``.
        sm_count: the number of multiprocessors.
        sm_clock_hz: the clock of the multiprocessors: the highest for the theoretical peak, the
            current one for the peak right now.
        bus_width_bits: the width of the memory bus, None if unknown.
        memory_clock_hz: as reported by NVML and CUDA, which is half the data rate; or None.
        name: the card's name; GeForce tensor cores are slower, a GTX 16 has none, and mining
            cards are limited.
    """
    table = _table()
    rates = table.arithmetic.get(compute_capability)
    if rates is None:
        return None
    clocks = sm_count * sm_clock_hz * _OPERATIONS
    arithmetic = {dtype: clocks * rate for dtype, rate in rates.items()}
    tensor_cores = {
        dtype: clocks * rate
        for dtype, rate in table.tensor_cores.get(compute_capability, {}).items()
    }
    for limited in table.limited:
        if compute_capability in limited.compute_capabilities and re.search(limited.name, name):
            arithmetic = _limited(arithmetic, limited.arithmetic)
            tensor_cores = _limited(tensor_cores, limited.tensor_cores)
    memory = None
    if bus_width_bits and memory_clock_hz:
        memory = 2 * memory_clock_hz * bus_width_bits / 8
    return CardPeaks(
        arithmetic_flops=arithmetic,
        tensor_core_flops=tensor_cores,
        memory_bytes_per_s=memory,
    )


def published_peaks(name: str) -> CardPeaks | None:
    """Return the peaks of an AMD or Intel card from its maker's figures; None for other cards.

    Args:
        name: as PyTorch or the system has it: ``AMD Radeon RX 6600``. A card of a laptop has other
            units and clocks under almost the same name: ``RX 6600M``.
    """
    plain = " ".join(re.sub(r"\((?:R|TM)\)", "", name).split())
    if re.search(r"\bLaptop\b|\bMobile\b", plain):
        return None
    table = _published()
    fitting = [
        card
        for card in table.cards
        if re.search(rf"\b{re.escape(card.name)}(?![0-9A-Za-z]|\s+(?:XTX?|GRE|S)\b)", plain)
    ]
    if not fitting:
        return None
    card = fitting[0]
    rates = table.generations[card.generation]
    clocks = card.units * (card.clock_mhz or 0) * 1e6
    return CardPeaks(
        arithmetic_flops={name: clocks * rate for name, rate in rates.arithmetic.items() if clocks},
        tensor_core_flops={name: clocks * rate for name, rate in rates.matrix.items() if clocks},
        memory_bytes_per_s=card.memory_gb_per_s * 1e9,
    )


def cores_per_multiprocessor(compute_capability: str) -> int | None:
    """Return the float32 results per clock and multiprocessor, sold as "CUDA cores".

    None for an unknown compute capability.
    """
    return _table().arithmetic.get(compute_capability, {}).get("float32")


def _limited(flops: dict[str, float], shares: dict[str, float]) -> dict[str, float]:
    """Return the rates that are left, without those that are gone."""
    left = {dtype: rate * shares.get(dtype, 1.0) for dtype, rate in flops.items()}
    return {dtype: rate for dtype, rate in left.items() if rate}


class _Generation(msgspec.Struct, frozen=True, kw_only=True):
    arithmetic: dict[str, int]
    matrix: dict[str, int] = {}


class _PublishedCard(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    generation: str
    units: int
    clock_mhz: float | None
    memory_gb_per_s: float


class _PublishedTable(msgspec.Struct, frozen=True, kw_only=True):
    generations: dict[str, _Generation]
    cards: tuple[_PublishedCard, ...]


@cache
def _published() -> _PublishedTable:
    return read_resource(_PUBLISHED, _PublishedTable, _PublishedTable(generations={}, cards=()))


@cache
def _table() -> _Table:
    return read_resource(_TABLE, _Table, _Table(arithmetic={}, tensor_cores={}, limited=()))
