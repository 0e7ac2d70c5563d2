"""Bursts of products whose every sum is known, and copies beside them.

The columns of each product are summed on the device, as whole numbers, and all sums of a burst are
compared. So no product goes unseen, and only a few KiB are copied.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.detectors import mismatched_bits
from gpu_studio.engine.device import accelerator_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from gpu_studio.engine.check.stage import StageBench

_LARGEST_SIDE, _SMALLEST_SIDE, _CPU_STEP_SIDE = 1024, 128, 128
_LONGEST_CALL_S = 0.001
_MOST_CALLS = 20_000
_LONGEST_DELAY_S = 0.7  # more than planned; other programs may take the CPU
_MARK = 1_000_003  # times a burst's number: the sums of two bursts are never the same
_COPY_BYTES, _COPIES = 8 << 20, 4


class Products:
    """Two products in turns, on the device, and the sums of their columns.

    The first is of whole numbers, and the CPU knows its sums. The second is of real numbers, with
    functions after it, which heat a device more: its sums have to be those of the first time.

    Args:
        bench: has the device and the numbers.
        side: of the square matrices.

    Attributes:
        done: the products of the last burst; fewer than asked for if they took too long.
        call_s: the seconds of one of them.
    """

    def __init__(self, bench: StageBench, side: int) -> None:
        self.side = side
        # Every sum of the product is less than 2^24: exact in float32, and in TF32.
        largest = math.isqrt(((1 << 24) - 1) // side)
        left, right = (
            torch.randint(-largest, largest + 1, (side, side), generator=bench.generator).float()
            for _ in range(2)
        )
        self._whole = left.to(bench.device), right.to(bench.device)
        self._real = torch.randn(side, side, generator=bench.generator).to(bench.device)
        self._result = torch.empty_like(self._real)
        self._sums = torch.zeros(2, side, dtype=torch.int64, device=bench.device)
        self._bench = bench
        self._before: Tensor | None = None
        self._number = self.done = 0
        self.call_s = 0.0
        self._multiply(1)
        self._exact = self._sums.to("cpu", copy=True)
        self._exact[0] = _sums((left.double() @ right.double()).float())

    @classmethod
    def fitting(cls, bench: StageBench) -> Products:
        """Return products that are small enough for the shortest burst on this device."""
        side = _LARGEST_SIDE if bench.is_card else _CPU_STEP_SIDE
        while True:
            work = cls(bench, side)
            work.burst(4)
            if work.call_s <= _LONGEST_CALL_S or side <= _SMALLEST_SIDE:
                return work
            side //= 2

    def calls_in(self, seconds: float) -> int:
        """Return how many products take so long."""
        wanted = seconds / self.call_s if self.call_s > 0 else 1.0
        return max(1, min(round(wanted), _MOST_CALLS))

    def start(self, calls: int) -> None:
        """Launch so many products; `wrong_sums` waits for them and compares."""
        bench = self._bench
        end_s = bench.elapsed_s + calls * self.call_s + _LONGEST_DELAY_S
        self._number += 1
        self._sums.fill_(self._number * _MARK)
        self.done = 0
        while self.done < calls and (not self.done or bench.elapsed_s <= end_s):
            self._multiply(self.done % 2)
            self.done += 1

    def wrong_sums(self, *, after_rest: bool = False) -> int:
        """Return how many of the sums of all products since `start` are wrong."""
        seen = self._sums.to("cpu", copy=True)
        counts = torch.tensor([[(self.done + 1) // 2], [self.done // 2]])
        self._bench.plant.corrupt(seen, self._before)
        if after_rest:
            self._bench.plant.corrupt_after_rest(seen)
        self._before = seen
        found = mismatched_bits(seen, self._exact * counts + self._number * _MARK)
        return found.count if found else 0

    def burst(self, calls: int, *, after_rest: bool = False) -> int:
        """Do so many products at once, and return how many sums are wrong.

        Args:
            calls: fewer are done if other programs delay them.
            after_rest: whether the device has rested before, for a fault made on purpose.
        """
        begun_s = self._bench.elapsed_s
        self.start(calls)
        wrong = self.wrong_sums(after_rest=after_rest)
        self.call_s = (self._bench.elapsed_s - begun_s) / self.done
        return wrong

    def report(self, when: str, wrong: int) -> None:
        """Report wrong sums of a burst; none if there are none."""
        if wrong:
            self._bench.report(
                "wrong_result", "error",
                f"{when}, a burst of products was wrong: {format_count(wrong)} of "
                f"{format_count(2 * self.side)} sums of their columns.",
                count=wrong,
            )  # fmt: skip

    def _multiply(self, which: int) -> None:
        factors = (self._real, self._real) if which else self._whole
        torch.mm(*factors, out=self._result)
        self._sums[which].add_(_sums(self._result))
        if which:  # small enough that tanh does not make all of them 1
            self._result.mul_(self.side**-0.5).add_(self._real).tanh_()
            self._sums[which].add_(_sums(self._result))


def _sums(product: Tensor) -> Tensor:
    """Return the sums of a product's columns, of its bits as whole numbers: exact in any order."""
    return product.view(torch.int32).sum(0, dtype=torch.int64)


class CopiesBeside:
    """Copies to the device and back while it computes, on a stream of their own.

    Args:
        bench: has the device and the numbers.
    """

    def __init__(self, bench: StageBench) -> None:
        count = _COPY_BYTES // torch.int32.itemsize
        self._bench = bench
        is_pinned = not is_cpu(bench.device.type)
        self._source = torch.empty(count, dtype=torch.int32, pin_memory=is_pinned)
        self._source.random_(generator=bench.generator)
        self._back = torch.empty_like(self._source, pin_memory=is_pinned)
        self._there = torch.empty(count, dtype=torch.int32, device=bench.device)
        self._before: Tensor | None = None
        self.count = 0

    def beside(self, work: Callable[[], None]) -> None:
        """Do work, copy new numbers at the same time, and report numbers that arrived changed."""
        self._source.bitwise_xor_(0x5A5A5A5A + self.count)
        with ThreadPoolExecutor(1) as helper:
            copies = helper.submit(self._copy)
            work()
            copies.result()
        self.count += _COPIES
        bench = self._bench
        bench.plant.corrupt(self._back, self._before)
        if bench.plant.kind is not None:
            self._before = self._source.clone()
        found = mismatched_bits(self._back, self._source)
        if found is not None:
            bench.report(
                "wrong_copy", "error",
                f"{format_count(found.count)} of {format_count(found.total)} numbers arrived "
                "changed after a copy to the device and back while it computed.",
                count=found.count,
            )  # fmt: skip

    def _copy(self) -> None:
        with accelerator_of(self._bench.device).side_stream(self._bench.device) as wait:
            for _ in range(_COPIES):
                self._there.copy_(self._source, non_blocking=True)
                self._back.copy_(self._there, non_blocking=True)
            wait()
