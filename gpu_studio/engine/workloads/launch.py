"""Launch overhead: the cost of an operation that does almost nothing."""

from __future__ import annotations

import time
from itertools import repeat
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import LAUNCH
from gpu_studio.core.units import format_duration
from gpu_studio.engine.device import accelerator_of, time_once
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.workload import TensorWorkload, timed_script

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

# Fewer calls than a card's queue holds: beyond that, the CPU would have to wait.
_ASKED_AT_ONCE = 100
_ROUNDS, _WAITS = 5, 30


class Launch(TensorWorkload):
    """Changes the sign of a number in place; see `workload.TensorWorkload`."""

    description = LAUNCH

    def work(self, case: Case) -> Work:
        """Count a change of sign as one operation; each number is read and written."""
        size_bytes = case.size * case.item_bytes
        return Work(
            operations=float(case.size),
            bytes_moved=2.0 * size_bytes,
            throughput_work=1.0,
            memory_bytes=size_bytes,
            host_bytes=case.crossing(2 * size_bytes),
            link_bytes=case.crossing(size_bytes),
        )

    def shapes(self, case: Case) -> tuple[tuple[int, ...], ...]:
        return ((case.size,),)

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        return torch.Tensor.neg_

    def findings(self, case: Case, function: Callable[[], object]) -> tuple[str, ...]:
        if not case.is_on_card:
            return ()
        asking_s = _asking_s(case, function)
        waiting_s = median(time_once(function, case.device) for _ in range(_WAITS))
        return (
            f"Launching takes {format_duration(asking_s)} of the CPU's time; launching and waiting "
            f"for the card takes {format_duration(waiting_s)}. If the CPU needs less time for an "
            "operation, the card cannot be faster.",
        )

    def reference(self, *rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return -rows[0]

    def lines(self, case: Case) -> tuple[str, str]:
        return "x = torch.rand(size, device=device, dtype=dtype)", "x.neg_()"

    def snippet(self, case: Case) -> str:
        """Return the script with more calls: one takes a few microseconds."""
        return timed_script(case, *self.lines(case), calls=1000)


def _asking_s(case: Case, function: Callable[[], object]) -> float:
    """Return the seconds until a call returns, without waiting for the card."""
    times_s = []
    device, wait = case.device, accelerator_of(case.device).synchronize
    for _ in range(_ROUNDS):
        wait(device)
        start_s = time.perf_counter()
        for _ in repeat(None, _ASKED_AT_ONCE):
            function()
        times_s.append((time.perf_counter() - start_s) / _ASKED_AT_ONCE)
    wait(device)
    return median(times_s)
