"""What a card can do at most, from its own facts: processors, clocks and bus.

The rates of each compute capability are in `resources/card_peaks.json`, with their sources.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from gpu_studio.core.json_resource import read_resource

_TABLE = "card_peaks.json"
_OPERATIONS = 2  # a multiply-add counts as two, in NVIDIA's peaks as in ours
# Cards of compute capability 7.5 without tensor cores: GTX 16, MX, T400 to T2000 (T4 has them).
_NO_TENSOR_CORES = re.compile(r"\b(GTX \d+|MX\d+|T\d{3,4})\b")


class CardPeaks(msgspec.Struct, frozen=True, kw_only=True):
    """The peaks of one card at given clocks; what is not known is missing or None.

    ``arithmetic_flops`` is what the ordinary cores do by dtype, ``tensor_core_flops`` what the
    tensor cores do (``tf32`` is float32 in TF32), both in operations a second; a dtype without
    native arithmetic (bfloat16 before 8.0) is not in them.
    """

    arithmetic_flops: dict[str, float]
    tensor_core_flops: dict[str, float]
    memory_bytes_per_s: float | None

    def best_flops(self, dtype: str, *, tf32: bool = False) -> float | None:
        """Return the most that PyTorch can reach in a dtype, operations a second.

        Where a card is slower in a 16-bit dtype than in float32, or has no arithmetic for it,
        PyTorch may compute in float32 and only store the dtype, so float32's peak holds.

        Args:
            dtype: PyTorch's name for it.
            tf32: whether float32 matrices may be multiplied in TF32.
        """
        found = [self.arithmetic_flops.get(dtype), self.tensor_core_flops.get(dtype)]
        if dtype in ("float16", "bfloat16"):
            found.append(self.arithmetic_flops.get("float32"))
        if dtype == "float32" and tf32:
            found.append(self.tensor_core_flops.get("tf32"))
        return max((peak for peak in found if peak is not None), default=None)


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    arithmetic: dict[str, dict[str, int]]
    tensor_cores: dict[str, dict[str, int]]
    geforce_halves_tensor_cores: tuple[str, ...]


def card_peaks(
    compute_capability: str,
    sm_count: int,
    sm_clock_hz: float,
    bus_width_bits: int | None,
    memory_clock_hz: float | None,
    name: str = "",
) -> CardPeaks | None:
    """Return what a card can do at these clocks; None for an unknown compute capability.

    Args:
        compute_capability: ``6.1``.
        sm_count: its multiprocessors.
        sm_clock_hz: the clock of the multiprocessors: the highest for what the card promises, the
            current one for what it can do now.
        bus_width_bits: of the memory, or None where it is not told.
        memory_clock_hz: as NVML and CUDA tell it, which is half the data rate; or None.
        name: the card's; a GeForce's tensor cores are slower, and a GTX 16 has none.

    Raises:
        MissingResourceError: the program's own table is missing or damaged.
    """
    table = _table()
    rates = table.arithmetic.get(compute_capability)
    if rates is None:
        return None
    clocks = sm_count * sm_clock_hz * _OPERATIONS
    factor = _tensor_core_factor(table, compute_capability, name)
    tensor_rates = table.tensor_cores.get(compute_capability, {}) if factor else {}
    memory = None
    if bus_width_bits and memory_clock_hz:
        memory = 2 * memory_clock_hz * bus_width_bits / 8
    return CardPeaks(
        arithmetic_flops={dtype: clocks * rate for dtype, rate in rates.items()},
        tensor_core_flops={dtype: clocks * rate * factor for dtype, rate in tensor_rates.items()},
        memory_bytes_per_s=memory,
    )


def _tensor_core_factor(table: _Table, compute_capability: str, name: str) -> float:
    if compute_capability == "7.5" and _NO_TENSOR_CORES.search(name):
        return 0.0
    is_halved = compute_capability in table.geforce_halves_tensor_cores and "GeForce" in name
    return 0.5 if is_halved else 1.0


@cache
def _table() -> _Table:
    return read_resource(_TABLE, _Table)
