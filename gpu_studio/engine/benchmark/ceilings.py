"""A device's theoretical or measured peak, to express a result as a share of it.

A card's ceilings follow from the driver's description of the card. The CPU's ceilings are measured
outside every timed part, once per engine, or as often as other programs disturb it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import psutil
import torch

from gpu_studio.core.benchmark.ceilings import ABOVE_FROM, Ceilings, card_ceilings, share_of_ceiling
from gpu_studio.core.devices.peaks import card_peaks, published_peaks
from gpu_studio.core.messages.run_messages import Limit
from gpu_studio.engine.benchmark.cold_cache import last_level_bytes
from gpu_studio.engine.device import accelerator_of, card_name
from gpu_studio.engine.sensor import CpuWatch
from gpu_studio.engine.workloads.case import TF32

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.run_messages import CeilingShare
    from gpu_studio.engine.workloads.case import Case, Work

_LEAST_COPY_BYTES = 64 << 20
_MOST_COPY_BYTES = 256 << 20
_REPEATS = 3
_SMALLEST_PRODUCT = 256
_LARGEST_PRODUCT = 2048
# A product that takes this long is large enough to show the peak; in a slow dtype, it is small.
_LONG_PRODUCT_S = 0.05
# Below the first number of operations per byte, arithmetic limits no CPU; above the second, it
# limits every CPU.
_FEW_OPERATIONS, _MANY_OPERATIONS = 0.5, 1000.0
# A call that moves so many times the last-level cache cannot find its operands in it.
_CACHES = 4


def measure_cpu(case: Case, work: Work, computed_in: str) -> Ceilings | None:
    """Measure the CPU's ceilings that can limit work in this dtype; None for a card.

    This takes up to a second the first time in an engine, so call it before a run's timing.
    """
    if case.is_on_card:
        return None
    if not work.operations and not work.bytes_moved:
        return {}
    intensity = work.operations / work.bytes_moved if work.bytes_moved else float("inf")
    return measured_ceilings(getattr(torch, computed_in), intensity)


def ceilings_of(case: Case, card: Device | None, computed_in: str) -> Ceilings | None:
    """Return a card's ceilings from NVML, from PyTorch (2.8 and newer), or as published.

    Args:
        case: the case.
        card: the card as its driver describes it, with its link under load; None if unknown.
        computed_in: the dtype of the arithmetic, or ``tf32``.
    """
    torch_card = accelerator_of(case.device).card(case.device.index)
    link = (card.telemetry.pcie_generation, card.telemetry.pcie_width) if card else (None, None)
    if torch_card.compute_capability is None:
        published = published_peaks(torch_card.name)
        return card_ceilings(published, computed_in, link=link) if published else None
    clock_mhz = (card and card.sm_clock_max_mhz) or torch_card.sm_clock_max_mhz
    if not clock_mhz or torch_card.multiprocessors is None:
        return None
    memory_mhz = (card and card.memory_clock_max_mhz) or torch_card.memory_clock_max_mhz
    bus_bits = (card and card.memory_bus_width_bits) or torch_card.memory_bus_width_bits
    peaks = card_peaks(
        torch_card.compute_capability,
        torch_card.multiprocessors,
        clock_mhz * 1e6,
        bus_bits,
        memory_mhz * 1e6 if memory_mhz else None,
        card_name(case.device),
    )
    if peaks is None:
        return None
    is_tf32 = computed_in == TF32
    return card_ceilings(peaks, "float32" if is_tf32 else computed_in, tf32=is_tf32, link=link)


def reached_share(
    case: Case, work: Work, median_s: float, ceilings: Ceilings | None
) -> CeilingShare | None:
    """Return the share of its ceiling that a call reaches; None if too little is known.

    Args:
        case: the call.
        work: its work.
        median_s: its seconds.
        ceilings: those of its device; None if unknown.
    """
    reached = share_of_ceiling(ceilings or {}, median_s, work.amounts)
    if reached is None or reached.limit is not Limit.MEMORY or reached.share <= ABOVE_FROM:
        return reached
    # Only a cache is faster than the memory. What fits in none disproves the ceiling.
    cache_bytes = None if case.is_on_card else last_level_bytes()
    return None if cache_bytes and work.bytes_moved > _CACHES * cache_bytes else reached


def measured_ceilings(dtype: torch.dtype, operations_per_byte: float) -> Ceilings:
    """Return the ceilings that can limit work in a dtype; takes under a second the first time.

    Args:
        dtype: the dtype of the work.
        operations_per_byte: of the work; a ceiling that cannot limit it is not measured.
    """
    found: dict[Limit, float | None] = {}
    if operations_per_byte <= _MANY_OPERATIONS:
        found[Limit.MEMORY] = _COPY.get(_measure_copy)
    if operations_per_byte >= _FEW_OPERATIONS:
        product = _PRODUCTS.setdefault(str(dtype), UndisturbedRate())
        found[Limit.ARITHMETIC] = product.get(partial(_measure_product, dtype))
    return {limit: rate for limit, rate in found.items() if rate is not None}


class UndisturbedRate:
    """A rate, measured until no other program disturbs it; what is disturbed is no ceiling."""

    def __init__(self) -> None:
        self._rate: float | None = None

    def get(self, measure: Callable[[], float | None]) -> float | None:
        """Return the rate, measured now if it is not known; None if that was disturbed."""
        if self._rate is None:
            watch = CpuWatch()
            watch.begin()
            rate = measure()
            watch.end()
            self._rate = None if watch.other_processes else rate
        return self._rate


_COPY = UndisturbedRate()
_PRODUCTS: dict[str, UndisturbedRate] = {}


def _measure_copy() -> float | None:
    """Return the bytes per second, read and written, of a copy that fits no cache.

    Both buffers together are twice the last-level cache, or half a GiB if that is larger; None if
    the PC has too little memory. The fastest of a few copies counts, because this is a ceiling.
    """
    wanted_bytes = last_level_bytes() or _LEAST_COPY_BYTES
    size_bytes = min(max(wanted_bytes, _LEAST_COPY_BYTES), _MOST_COPY_BYTES)
    if 8 * size_bytes > psutil.virtual_memory().available:
        return None
    source = torch.zeros(size_bytes // 4, dtype=torch.float32)
    target = torch.zeros_like(source)
    return 2 * size_bytes / _fastest_s(partial(target.copy_, source))


def _measure_product(dtype: torch.dtype) -> float:
    """Return the operations per second of a large matrix product in a dtype."""
    size, best = _SMALLEST_PRODUCT, 0.0
    while True:
        a, b = torch.rand(size, size).to(dtype), torch.rand(size, size).to(dtype)
        elapsed_s = _fastest_s(partial(torch.matmul, a, b))
        best = max(best, 2.0 * size**3 / elapsed_s)
        size *= 2
        if elapsed_s >= _LONG_PRODUCT_S or size > _LARGEST_PRODUCT:
            return best


def _fastest_s(call: Callable[[], object]) -> float:
    times_s = []
    for _ in range(_REPEATS):
        start_ns = time.perf_counter_ns()
        call()
        times_s.append(time.perf_counter_ns() - start_ns)
    return max(min(times_s), 1) * 1e-9
