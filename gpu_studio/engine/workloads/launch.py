"""Launch overhead: the cost of an operation that does almost nothing."""

from __future__ import annotations

import time
from itertools import repeat
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.ceilings import CALLS_PER_S
from gpu_studio.core.device_name import wait_line
from gpu_studio.core.messages.run_messages import WorkloadDescription
from gpu_studio.core.tensors import DTYPES
from gpu_studio.core.units import format_duration
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.proof import Verification, misplaced, seeded
from gpu_studio.engine.workloads.workload import TensorWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

# Fewer calls than a card's queue holds: beyond that, the CPU would have to wait.
_ASKED_AT_ONCE = 100
_ROUNDS, _WAITS = 5, 30


class Launch(TensorWorkload):
    """Changes the sign of a number in place; see `workload.TensorWorkload`."""

    description = WorkloadDescription(
        name="launch",
        title="Launch overhead",
        sentence=(
            "Changes the sign of a single number. The time is almost only the cost of launching an "
            "operation, which is part of every other time here."
        ),
        dtypes=DTYPES,
        sizes=(1,),
        throughput_unit=CALLS_PER_S,
        size_title="Numbers in the tensor",
        size_text="tensor of {size}",
    )

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

    def operands(self, case: Case) -> tuple[torch.Tensor, ...]:
        """Make the numbers, shape (size,)."""
        return (torch.ones(case.size, device=case.device, dtype=case.dtype),)

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        """Return the in-place change of sign, which allocates nothing."""
        return torch.Tensor.neg_

    def findings(self, case: Case, function: Callable[[], object]) -> tuple[str, ...]:
        """Return the cost of a launch, and of a launch with the wait, on a card."""
        if not case.is_on_card:
            return ()
        asking_s, waiting_s = _asking_s(case, function), _waiting_s(case, function)
        return (
            f"Launching takes {format_duration(asking_s)} of the CPU's time; launching and waiting "
            f"for the card takes {format_duration(waiting_s)}. If the CPU needs less time for an "
            "operation, the card cannot be faster.",
        )

    def verify(self, case: Case) -> Verification:
        """Compare with the negated numbers, which are exact.

        The numbers use every bit of the dtype, and none is its own negative.
        """
        numbers = (torch.rand(case.size, generator=seeded(), dtype=torch.float64) + 1).to(
            case.dtype
        )
        turned = self.compute(case)(numbers.to(case.device, copy=True))
        noun = "number" if case.size == 1 else "numbers"
        compared = (f"all of {case.size} {noun}",)
        if wrong_place := misplaced(turned, case.device):
            return Verification(False, wrong_place, compared)
        wrong = int((turned.cpu().double() != -numbers.double()).sum())
        finding = f"{wrong} of {case.size} signs are wrong" if wrong else "exact in every bit"
        return Verification(not wrong, finding, compared)

    def snippet(self, case: Case) -> str:
        """Return a runnable PyTorch script that does and times this work."""
        return _SNIPPET.format(
            device=case.address,
            size=case.size,
            dtype=case.dtype_name,
            wait=wait_line(case.address),
        )


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


def _waiting_s(case: Case, function: Callable[[], object]) -> float:
    """Return the seconds until the card has finished a call and the CPU knows it."""
    times_s = []
    device, wait = case.device, accelerator_of(case.device).synchronize
    for _ in range(_WAITS):
        start_s = time.perf_counter()
        function()
        wait(device)
        times_s.append(time.perf_counter() - start_s)
    return median(times_s)


_SNIPPET = """\
import time
import torch

x = torch.ones({size}, device="{device}", dtype=torch.{dtype})

x.neg_()  # the first call is slower
{wait}start = time.perf_counter()
for _ in range(1000):
    x.neg_()
{wait}print(f"{{(time.perf_counter() - start) / 1000:.9f}} s a call")
"""
