"""The theoretical peaks of a card, from its own facts: multiprocessors, clocks and memory bus.

The rates of each compute capability are in `resources/card_peaks.json`, with their sources.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from gpu_studio.core.json_resource import read_resource

_TABLE = "card_peaks.json"
_OPERATIONS = 2  # NVIDIA's peaks count a multiply-add as two operations, and so do ours
# Cards of compute capability 7.5 without tensor cores: GTX 16, MX, T400 to T2000 (T4 has them).
_NO_TENSOR_CORES = re.compile(r"\b(GTX \d+|MX\d+|T\d{3,4})\b")


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

        If a card is slower in a 16-bit dtype than in float32, or has no arithmetic for it,
        PyTorch may compute in float32 and only store the dtype. Then float32's peak applies.

        Args:
            dtype: PyTorch's name of the dtype.
            tf32: whether PyTorch may multiply float32 matrices in TF32.
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
    """Return the peaks of a card at these clocks; None for an unknown compute capability.

    Args:
        compute_capability: ``6.1``.
        sm_count: the number of multiprocessors.
        sm_clock_hz: the clock of the multiprocessors: the highest for the theoretical peak, the
            current one for the peak right now.
        bus_width_bits: the width of the memory bus, None if unknown.
        memory_clock_hz: as reported by NVML and CUDA, which is half the data rate; or None.
        name: the card's name; GeForce tensor cores are slower, and a GTX 16 has none.

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


def known_capabilities() -> list[tuple[int, int]]:
    """Return the compute capabilities of the table; raises like `card_peaks`."""
    found = (capability.partition(".") for capability in _table().arithmetic)
    return sorted((int(major), int(minor)) for major, _, minor in found)


def cores_per_multiprocessor(compute_capability: str) -> int | None:
    """Return the float32 results per clock and multiprocessor, sold as "CUDA cores".

    None for an unknown compute capability; raises like `card_peaks`.
    """
    return _table().arithmetic.get(compute_capability, {}).get("float32")


def _tensor_core_factor(table: _Table, compute_capability: str, name: str) -> float:
    if compute_capability == "7.5" and _NO_TENSOR_CORES.search(name):
        return 0.0
    is_halved = compute_capability in table.geforce_halves_tensor_cores and "GeForce" in name
    return 0.5 if is_halved else 1.0


@cache
def _table() -> _Table:
    return read_resource(_TABLE, _Table)
