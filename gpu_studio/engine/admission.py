"""Which runs are refused before anything is allocated, each with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.sizes import DTYPES, LARGEST_SIZE
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import free_bytes
from gpu_studio.engine.workloads.workload import bytes_needed

if TYPE_CHECKING:
    import torch

    from gpu_studio.core.protocol import RunWorkload
    from gpu_studio.engine.workloads.workload import Workload

_LONGEST_BUDGET_S = 86400.0


def check_dtype(dtype: str) -> None:
    """Raise `StudioError` for what is no dtype of this program."""
    if dtype not in DTYPES:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"“{dtype[:20]}” is not a dtype of this program: choose {', '.join(DTYPES)}.",
        )


def check_numbers(request: RunWorkload, workload: Workload) -> None:
    """Raise `StudioError` for parameters that no PC could run."""
    check_dtype(request.dtype)
    if request.dtype not in workload.description.dtypes:
        raise StudioError(
            FailureKind.DTYPE_UNSUPPORTED,
            f"{request.workload} does not run in {request.dtype}: choose "
            f"{', '.join(workload.description.dtypes)}.",
        )
    if not 1 <= request.size <= LARGEST_SIZE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The size {request.size} is out of range: give 1 to {LARGEST_SIZE}.",
        )
    if not 0 < request.budget_s <= _LONGEST_BUDGET_S:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The time budget {request.budget_s:g} s is out of range: give more than 0 s and at "
            f"most {_LONGEST_BUDGET_S:.0f} s.",
        )


def refuse_too_large(workload: Workload, request: RunWorkload, device: torch.device) -> None:
    """Raise `StudioError` for what cannot fit: Linux would end the whole process later."""
    needed_bytes = bytes_needed(workload, request.size, request.dtype)
    available_bytes = free_bytes(device)
    if needed_bytes <= available_bytes:
        return
    raise StudioError(
        FailureKind.TOO_LARGE,
        f"{request.workload} at {request.size} × {request.size} in {request.dtype} needs "
        f"{format_bytes(needed_bytes)}, {format_bytes(available_bytes)} are free on "
        f"{request.device}.",
    )
