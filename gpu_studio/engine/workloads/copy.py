"""Copies between CPU memory and a card's memory, or within one of them."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import torch

from gpu_studio.core.benchmark.workloads import COPY
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import synchronize, time_once
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.call import Call, FunctionCall
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.workload import CPU, Workload, timed_script

_MIB = 1 << 20
_PARTS = {"h2d": "copy in", "d2h": "copy out", "d2d": "copy"}
_LOOKS = 5


class Copy(Workload):
    """One copy of a number of MiB; see `workload.Workload`."""

    description = COPY
    small_up_to = 16

    def check(self, case: Case) -> None:
        if not case.is_on_card and _direction(case) != "d2d":
            raise _bad(
                "The CPU has no second memory to copy to: choose the direction d2d, or a card."
            )
        if _is_pinned(case) and _direction(case) == "d2d":
            raise _bad(
                "d2d stays in the device's memory and would not use pinned memory: choose "
                "pageable, or the direction h2d or d2h."
            )

    def work(self, case: Case) -> Work:
        """Count the bytes read and written within a memory, or the bytes sent over PCIe."""
        size_bytes = case.size * _MIB
        if _direction(case) == "d2d":
            moved, host_bytes, link_bytes = 2 * size_bytes, 0, 0
        else:
            moved = host_bytes = link_bytes = size_bytes
        return Work(
            operations=0.0,
            bytes_moved=float(moved),
            throughput_work=float(moved),
            memory_bytes=moved,
            host_bytes=host_bytes,
            link_bytes=float(link_bytes),
            longest_kernel=0.0,
        )

    def prepare(self, case: Case) -> Call:
        source = torch.zeros(case.size * _MIB // 4, **_place(case, is_source=True))
        target = torch.zeros(case.size * _MIB // 4, **_place(case, is_source=False))
        return CopyCall(case, source, target)

    def verify(self, case: Case) -> Verification:
        """Copy numbers that are all different, and check that they arrived."""
        count = case.size * _MIB // 4
        numbers = torch.arange(count, dtype=torch.int32).view(torch.float32)
        source = torch.empty(count, **_place(case, is_source=True)).copy_(numbers)
        target = torch.zeros(count, **_place(case, is_source=False))
        CopyCall(case, source, target)()
        synchronize(case.device)
        # As whole numbers, because some of these bits would be NaN as a float.
        wrong = int((target.cpu().view(torch.int32) != numbers.view(torch.int32)).sum())
        finding = f"{wrong} of {count} numbers did not arrive" if wrong else "every bit arrived"
        return Verification(not wrong, finding, (f"all of {format_bytes(4 * count)}",))

    def snippet(self, case: Case) -> str:
        source, target = (_arguments(_place(case, is_source=one)) for one in (True, False))
        setup = _SETUP.format(source=source, target=target)
        return timed_script(case, setup, f"target.copy_(source, non_blocking={_is_pinned(case)})")


class CopyCall(FunctionCall):
    """One copy between two existing tensors.

    Args:
        case: the direction and the memory.
        source: the tensor to read.
        target: the tensor to write, of the same size.
    """

    def __init__(self, case: Case, source: torch.Tensor, target: torch.Tensor) -> None:
        # With pageable memory, PyTorch waits in any case.
        super().__init__(partial(target.copy_, source, non_blocking=_is_pinned(case)))
        self._case = case

    def parts_s(self) -> dict[str, float]:
        seconds = median(time_once(self, self._case.device) for _ in range(_LOOKS))
        return {_PARTS[_direction(self._case)]: seconds}


def _direction(case: Case) -> str:
    return case.options["direction"]


def _is_pinned(case: Case) -> bool:
    return case.options["memory"] == "pinned"


def _place(case: Case, *, is_source: bool) -> dict[str, Any]:
    """Return PyTorch's arguments for one of the two tensors."""
    is_host = _direction(case) == ("h2d" if is_source else "d2h")
    if not is_host:
        return {"device": case.device}
    return {"device": CPU, "pin_memory": True} if _is_pinned(case) else {"device": CPU}


def _arguments(place: dict[str, Any]) -> str:
    pinned = ", pin_memory=True" if "pin_memory" in place else ""
    return f'device="{place["device"]}"{pinned}'


def _bad(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)


_SETUP = """
count = size * 2**20 // 4
source = torch.zeros(count, {source})
target = torch.zeros(count, {target})
"""
