"""How fast the allocator's model is, beside the least that a best-fit allocator in Python must do.

    python -m tests.bench.allocator [--steps N]

The bare loop keeps free blocks in one sorted list of integers, takes the best fit by ``bisect``,
splits, merges with both neighbours, and counts nothing. Both run the same random traces in turns,
several times; the best rate of each counts, in processor time. The model must reach 0.35 of it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from bisect import bisect_left, insort
from typing import Any

from gpu_studio.core.memory.allocator.model import AllocatorModel

LEAST_RATIO = 0.35
MIB = 1 << 20
LIVING = (200, 2_000, 20_000, 100_000)
ROUNDS = 5
_CARD_BYTES = 1 << 42  # so that no trace fills it
_ADDRESS_BITS = 44
_ADDRESS_MASK = (1 << _ADDRESS_BITS) - 1


class BareBestFit:
    """A best-fit allocator over a sorted list, and nothing else: addresses in and out."""

    def __init__(self) -> None:
        self._order: list[int] = []
        self._free_from: dict[int, int] = {}  # first address → bytes
        self._free_to: dict[int, int] = {}  # address behind → first address
        self._used: dict[int, int] = {}
        self._top = MIB

    def allocate(self, nbytes: int) -> int:
        size = -(-nbytes // 512) * 512
        order = self._order
        place = bisect_left(order, size << _ADDRESS_BITS)
        if place < len(order):
            entry = order.pop(place)
            address, have = entry & _ADDRESS_MASK, entry >> _ADDRESS_BITS
            del self._free_from[address], self._free_to[address + have]
        else:
            have = max(20 * MIB, -(-size // (2 * MIB)) * 2 * MIB)
            address = self._top
            self._top += have + 512  # a gap, so that segments do not merge
        if have > size:
            rest = address + size
            insort(order, have - size << _ADDRESS_BITS | rest)
            self._free_from[rest] = have - size
            self._free_to[address + have] = rest
        self._used[address] = size
        return address

    def free(self, address: int) -> None:
        size = self._used.pop(address)
        order = self._order
        behind = address + size
        after = self._free_from.pop(behind, 0)
        if after:
            del order[bisect_left(order, after << _ADDRESS_BITS | behind)]
            del self._free_to[behind + after]
            size += after
        before = self._free_to.pop(address, 0)
        if before:
            length = self._free_from.pop(before)
            del order[bisect_left(order, length << _ADDRESS_BITS | before)]
            address, size = before, size + length
        insort(order, size << _ADDRESS_BITS | address)
        self._free_from[address] = size
        self._free_to[address + size] = address


def trace(living: int, steps: int, seed: int = 1) -> list[int]:
    """Return calls: a size to allocate, or −1 − i to free the i-th living block.

    It begins with as many allocations as shall be living; then half of the calls free.
    """
    chance = random.Random(seed)
    calls: list[int] = []
    now = 0
    for step in range(living + steps):
        if step < living or now == 0 or (now < living + 100 and chance.random() < 0.5):
            calls.append(int(2 ** chance.uniform(0, 24)))
            now += 1
        else:
            calls.append(-1 - chance.randrange(now))
            now -= 1
    return calls


def calls_per_second(allocator: Any, calls: list[int]) -> float:
    living: list[Any] = []
    start = time.process_time()
    for call in calls:
        if call > 0:
            living.append(allocator.allocate(call))
        else:
            place = -1 - call
            block = living[place]
            living[place] = living[-1]
            living.pop()
            allocator.free(block)
    return len(calls) / (time.process_time() - start)


def main() -> int:
    """Print a line for each number of living blocks; 1 if the model is too slow in any."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.allocator")
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps
    lowest = float("inf")
    for living in LIVING:
        calls = trace(living, steps)
        bare = model = 0.0
        for _ in range(ROUNDS):
            bare = max(bare, calls_per_second(BareBestFit(), calls))
            model = max(model, calls_per_second(AllocatorModel(_CARD_BYTES), calls))
        lowest = min(lowest, model / bare)
        print(
            f"{living:7,} living: bare {bare / 1e6:.2f}, model {model / 1e6:.2f} million calls/s,"
            f" ratio {model / bare:.2f}"
        )
    print(f"lowest ratio {lowest:.2f}, at least {LEAST_RATIO} wanted")
    return 0 if lowest >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
