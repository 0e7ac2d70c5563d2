"""The mode with a cold cache: before each call something larger than the cache is written.

A call in a loop finds its operands where the last one left them, a program that does other things
between two calls does not. A buffer of twice the last cache's size is read and written, so nothing
of the operands is left in it.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gpu_studio.engine.stopwatch import idle

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.engine.stopwatch import Stopwatch

_CPUS = Path("/sys/devices/system/cpu")
# Where nobody tells: more than the last cache of any card or desktop CPU (128 MiB).
_LARGEST_CACHE_BYTES = 128 << 20
_LEAST_ON_CARD_BYTES = 64 << 20
# A call that is asked for longer than this waits for the card itself, which no head start hides.
_LONGEST_LAUNCH_S = 20e-3
_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class ColdStopwatch:
    """A stopwatch that overwrites the device's cache before each call, outside the timed part.

    Args:
        stopwatch: times the call.
        device: whose cache.
    """

    def __init__(self, stopwatch: Stopwatch, device: torch.device) -> None:
        self._stopwatch = stopwatch
        self._device, self._is_on_card = device, device.type == "cuda"
        self._launch_s = _LONGEST_LAUNCH_S
        self._buffer = torch.zeros(buffer_bytes(device) // 4, dtype=torch.float32, device=device)

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of one call, and on the wall those of the overwriting as well.

        A card is not waited for in between: it idles for a moment after the writing, so that all
        kernels of the call have been launched when the first of them begins.
        """
        assert calls == 1  # the second would find what the first one left
        start_ns = time.perf_counter_ns()
        # Not fill_: large fills may go around the CPU's cache.
        self._buffer.add_(1.0)
        if self._is_on_card:
            idle(self._device, 2 * self._launch_s)
        call_s, _ = self._stopwatch.time(self._launched(call), 1)
        return call_s, (time.perf_counter_ns() - start_ns) * 1e-9

    def _launched(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return the call with an eye on how long asking for it takes; on the CPU as it is."""
        if not self._is_on_card:
            return call

        def launch() -> object:
            start_ns = time.perf_counter_ns()
            result = call()
            launch_s = (time.perf_counter_ns() - start_ns) * 1e-9
            # The shortest counts: a full queue waits for the card, the idling included.
            self._launch_s = min(self._launch_s, launch_s)
            return result

        return launch


def buffer_bytes(device: torch.device) -> int:
    """Return the size of what is written: twice the device's last cache.

    On a card it is at least 64 MiB.
    """
    size_bytes = 2 * (cache_bytes(device) or _LARGEST_CACHE_BYTES)
    return size_bytes if device.type == "cpu" else max(size_bytes, _LEAST_ON_CARD_BYTES)


def cache_bytes(device: torch.device) -> int | None:
    """Return the size of a device's last cache; None where it is not told."""
    if device.type == "cpu":
        return last_level_bytes()
    # PyTorch tells it from 2.6 on.
    size_bytes = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)
    return int(size_bytes) or None


@lru_cache(maxsize=1)
def last_level_bytes(cpus: Path = _CPUS) -> int | None:
    """Return the size of the CPU's last caches together; None where the system does not tell.

    Linux lists the caches of each core in sysfs; those that cores share are counted once.
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
