"""What this PC's CPU reaches at most: measured once an engine, outside of every timed part."""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import psutil
import torch

from gpu_studio.core.ceilings import MeasuredCeilings
from gpu_studio.engine.cold_cache import last_level_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST_COPY_BYTES = 64 << 20
_MOST_COPY_BYTES = 256 << 20
_REPEATS = 3
_SMALLEST_PRODUCT = 256
_LARGEST_PRODUCT = 2048
# A product this long is large enough to show the peak; in a slow dtype it is a small one.
_LONG_PRODUCT_S = 0.05
# Operations a byte below which no CPU waits for its arithmetic, and above which for nothing else.
_FEW_OPERATIONS, _MANY_OPERATIONS = 0.5, 1000.0


def measured_ceilings(dtype: torch.dtype, operations_per_byte: float) -> MeasuredCeilings:
    """Return the ceilings that work in a dtype may meet; takes under a second the first time.

    Args:
        dtype: of the work.
        operations_per_byte: of the work; what can be no limit for it is not measured.
    """
    copy_bytes_per_s, matmul_flops = None, {}
    if operations_per_byte <= _MANY_OPERATIONS:
        copy_bytes_per_s = copy_rate()
    if operations_per_byte >= _FEW_OPERATIONS:
        matmul_flops[str(dtype).removeprefix("torch.")] = product_rate(dtype)
    return MeasuredCeilings(copy_bytes_per_s=copy_bytes_per_s, matmul_flops=matmul_flops)


@lru_cache(maxsize=1)
def copy_rate() -> float | None:
    """Return the bytes read and written a second of a copy that fits no cache.

    Both buffers together are twice the last cache, or half a GiB where that is not enough; None
    where the PC has no memory for it. The fastest of a few copies counts, since it is a ceiling.
    """
    wanted_bytes = last_level_bytes() or _LEAST_COPY_BYTES
    size_bytes = min(max(wanted_bytes, _LEAST_COPY_BYTES), _MOST_COPY_BYTES)
    if 8 * size_bytes > psutil.virtual_memory().available:
        return None
    source = torch.zeros(size_bytes // 4, dtype=torch.float32)
    target = torch.zeros_like(source)
    return 2 * size_bytes / _fastest_s(partial(target.copy_, source))


@lru_cache
def product_rate(dtype: torch.dtype) -> float:
    """Return the operations a second of a large matrix product in a dtype."""
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
