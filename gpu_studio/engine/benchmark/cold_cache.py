"""The mode with a cold cache: before each call, a buffer larger than the cache is written.

In a loop, a call finds its operands in the cache; in a program that does other work between two
calls, it does not. Reading and writing a buffer of twice the last-level cache removes the operands
from the cache.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.engine.device import accelerator_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.engine.stopwatch import Stopwatch

_CPUS = Path("/sys/devices/system/cpu")
# If the size is unknown: more than the last-level cache of any card or desktop CPU (128 MiB).
_LARGEST_CACHE_BYTES = 128 << 20
_LEAST_ON_CARD_BYTES = 64 << 20
# If a launch takes longer than this, it waits for the card itself, which no head start hides.
_LONGEST_LAUNCH_S = 20e-3
_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class ColdStopwatch:
    """A stopwatch that overwrites the device's cache before each call, outside the timed part.

    Args:
        stopwatch: times the call.
        device: the device with the cache.
    """

    def __init__(self, stopwatch: Stopwatch, device: torch.device) -> None:
        self._stopwatch = stopwatch
        self._device, self._is_on_card = device, not is_cpu(device.type)
        self._idle = accelerator_of(device).idle
        self._launch_s = _LONGEST_LAUNCH_S
        self._buffer = torch.zeros(buffer_bytes(device) // 4, dtype=torch.float32, device=device)

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of one call; the wall-clock time includes overwriting the cache.

        There is no wait for a card in between. After the writing, the card idles for a moment, so
        that all kernels of the call are launched before the first one starts.
        """
        assert calls == 1  # a second call would find the operands in the cache
        start_ns = time.perf_counter_ns()
        # Not fill_: large fills may bypass the CPU's cache.
        self._buffer.add_(1.0)
        if self._is_on_card:
            self._idle(self._device, 2 * self._launch_s)
        call_s, _ = self._stopwatch.time(self._launched(call), 1)
        return call_s, (time.perf_counter_ns() - start_ns) * 1e-9

    def _launched(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return the call with a timer for its launch; on the CPU, the call itself."""
        if not self._is_on_card:
            return call

        def launch() -> object:
            start_ns = time.perf_counter_ns()
            result = call()
            launch_s = (time.perf_counter_ns() - start_ns) * 1e-9
            # The shortest counts: with a full queue, a launch waits for the card, even while it
            # idles.
            self._launch_s = min(self._launch_s, launch_s)
            return result

        return launch


def buffer_bytes(device: torch.device) -> int:
    """Return the size of the buffer: twice the device's last-level cache.

    On a card, it is at least 64 MiB.
    """
    size_bytes = 2 * (cache_bytes(device) or _LARGEST_CACHE_BYTES)
    return size_bytes if is_cpu(device.type) else max(size_bytes, _LEAST_ON_CARD_BYTES)


def cache_bytes(device: torch.device) -> int | None:
    """Return the size of a device's last-level cache; None if unknown."""
    if is_cpu(device.type):
        return last_level_bytes()
    return accelerator_of(device).card(device.index).l2_cache_bytes


@lru_cache(maxsize=1)
def last_level_bytes(cpus: Path = _CPUS) -> int | None:
    """Return the total size of the CPU's last-level caches; None if unknown.

    Linux lists the caches of each core in sysfs; shared caches are counted once.
    """
    levels: dict[int, dict[str, int]] = {}
    for cache in cpus.glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level = int((cache / "level").read_text())
            text = (cache / "size").read_text().strip()
            shared = (cache / "shared_cpu_list").read_text().strip()
            size_bytes = int(text[:-1]) * _SIZE_UNITS[text[-1:]]
        except (OSError, ValueError, KeyError):
            continue
        levels.setdefault(level, {})[shared] = size_bytes
    return sum(levels[max(levels)].values()) if levels else None
