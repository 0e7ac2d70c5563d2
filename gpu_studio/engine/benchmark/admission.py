"""Which runs are refused before anything is allocated, each with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.tensors import check_dtype, check_size
from gpu_studio.core.units import format_bytes, format_size
from gpu_studio.engine.benchmark.cold_cache import buffer_bytes
from gpu_studio.engine.device import free_bytes, resolve
from gpu_studio.engine.workloads.case import make_case, refuse_mode
from gpu_studio.engine.workloads.workload import CPU

if TYPE_CHECKING:
    from gpu_studio.core.protocol import RunWorkload, WorkloadDescription
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

_LONGEST_BUDGET_S = 86400.0
_LONGEST_REST_S = 1.0
_MOST_CALLS = 1_000_000


def admit(request: RunWorkload, workload: Workload) -> Case:
    """Return the case of a request that this PC can run, as far as can be told beforehand.

    Raises:
        StudioError: with one sentence that says what would be possible.
    """
    description = workload.description
    _check_numbers(request, description)
    reason = workload.skipped()
    if reason:
        raise StudioError(FailureKind.BAD_REQUEST, reason)
    case = make_case(
        description,
        resolve(request.device),
        request.size,
        request.dtype,
        options=request.options,
        cache=request.cache,
        transfers=request.transfers,
    )
    refuse_mode(description, "naive", request.naive)
    workload.check(case)
    return case


def _check_numbers(request: RunWorkload, description: WorkloadDescription) -> None:
    check_dtype(request.dtype)
    if request.dtype not in description.dtypes:
        raise StudioError(
            FailureKind.DTYPE_UNSUPPORTED,
            f"{request.workload} does not run in {request.dtype}: choose "
            f"{', '.join(description.dtypes)}.",
        )
    check_size(request.size)
    if not 0 < request.budget_s <= _LONGEST_BUDGET_S:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The time budget {request.budget_s:g} s is out of range: give more than 0 s and at "
            f"most {_LONGEST_BUDGET_S:.0f} s.",
        )
    if not 0 <= request.rest_s <= _LONGEST_REST_S:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"A rest of {request.rest_s:g} s is out of range: ask for 0 to {_LONGEST_REST_S:g} s.",
        )
    if request.calls is not None and not 1 <= request.calls <= _MOST_CALLS:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{request.calls} calls are out of range: ask for 1 to {_MOST_CALLS}.",
        )


def refuse_too_large(workload: Workload, case: Case) -> None:
    """Raise `StudioError` for what cannot fit: Linux would end the whole process later."""
    work = workload.work(case)
    # A run with a cold cache keeps what it writes over the cache.
    cold_bytes = buffer_bytes(case.device) if case.cache == "cold" else 0
    needs = [(case.device, work.memory_bytes + cold_bytes)]
    if case.is_on_card:
        needs.append((CPU, work.host_bytes))
    size = format_size(case.size, workload.description.size_text)
    for device, needed_bytes in needs:
        available_bytes = free_bytes(device)
        if needed_bytes > available_bytes:
            raise StudioError(
                FailureKind.TOO_LARGE,
                f"{workload.description.name} at {size} in {case.dtype_name} needs "
                f"{format_bytes(needed_bytes)}, {format_bytes(available_bytes)} are free on "
                f"{device}.",
            )
