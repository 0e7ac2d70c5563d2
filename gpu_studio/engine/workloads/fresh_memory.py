"""The time of a CPU call whose results get new memory from the system.

The engine keeps freed memory (`process/steady_memory.py`), so that its times are those of the
processor. By default, glibc keeps it or not, by the layout of the heap. This measures the other
case in the same process: before each call, all free memory is given back to the system.
"""

from __future__ import annotations

import ctypes
import time
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.process.steady_memory import glibc_version

if TYPE_CHECKING:
    from collections.abc import Callable

WORTH_TELLING = 1.2
# glibc's defaults always keep smaller results (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD).
_SMALLEST_BYTES = 128 << 10
_MOST_ROUNDS = 9
_FEWEST_ROUNDS = 3
_BUDGET_S = 0.2
_LONGEST_S = 1.0


def fresh_memory_s(function: Callable[[], object]) -> float | None:
    """Return the seconds of a call with new memory, the median of a few; None if it is no slower.

    Also None if the result is small, if the call is too long to repeat it, or without glibc. Calls
    with new memory and with kept memory take turns; a difference below a fifth does not count.

    Args:
        function: the warm call; returns its result on the CPU.
    """
    started_s = time.perf_counter()
    result = function()
    call_s = time.perf_counter() - started_s
    is_small = not isinstance(result, torch.Tensor) or result.nbytes < _SMALLEST_BYTES
    del result
    if is_small or glibc_version() is None or 2 * _FEWEST_ROUNDS * call_s > _LONGEST_S:
        return None
    give_back = ctypes.CDLL(None).malloc_trim
    kept_s: list[float] = []
    fresh_s: list[float] = []
    while len(fresh_s) < _MOST_ROUNDS and time.perf_counter() - started_s < _LONGEST_S:
        if len(fresh_s) >= _FEWEST_ROUNDS and time.perf_counter() - started_s > _BUDGET_S:
            break
        function()  # the memory that the call needs is back
        kept_s.append(_seconds(function))
        give_back(0)
        fresh_s.append(_seconds(function))
    if len(fresh_s) < _FEWEST_ROUNDS or median(fresh_s) <= WORTH_TELLING * median(kept_s):
        return None
    return median(fresh_s)


def _seconds(function: Callable[[], object]) -> float:
    start_s = time.perf_counter()
    result = function()
    end_s = time.perf_counter()
    del result  # freeing it is not timed
    return end_s - start_s
