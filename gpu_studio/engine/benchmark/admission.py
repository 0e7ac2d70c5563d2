"""What a run has to pass before it is timed: its numbers, its memory, its kernels and its answers.

Windows ends a display driver whose kernel takes longer than 2 s (TdrDelay), and every
program on the card with it. Linux ends a process whose memory does not fit.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.ceilings import shortest_s
from gpu_studio.core.benchmark.refusal import dtype_refusal, mode_refusal
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import Limit
from gpu_studio.core.parameter import refusal_of
from gpu_studio.core.tensors import check_dtype, check_size
from gpu_studio.core.units import format_bytes, format_duration, format_size
from gpu_studio.engine.benchmark.ceilings import ceilings_of
from gpu_studio.engine.benchmark.cold_cache import buffer_bytes
from gpu_studio.engine.device import (
    card_name,
    free_bytes,
    refuse_bfloat16_products,
    refuse_dtype,
    resolve,
    time_once,
)
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.case import make_case, refuse_threads
from gpu_studio.engine.workloads.workload import CPU

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadDescription
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

_LONGEST_REST_S = 1.0
_MOST_CALLS = 1_000_000
# A large result is checked only if that takes about as long as the rest of the setup.
_LONGEST_CHECK_S = 1.0
# Repeat a suspiciously slow trial call for this long.
_LONGEST_LOOK_S = 0.5
# Half of what Windows allows: a card does not always reach its peak.
LONGEST_KERNEL_S = 1.0


def admit(request: RunWorkload, workload: Workload) -> Case:
    """Return the case of a request if, before running it, this PC seems able to run it.

    Raises:
        StudioError: with one sentence that says what is possible.
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
        race=request.race,
        photo=request.showing.photo if request.showing else None,
    )
    refuse_threads(case)
    if request.race is not None and request.sustained:
        raise StudioError(
            FailureKind.BAD_REQUEST, "A race ends at its finish line, so it cannot be sustained."
        )
    if refusal := mode_refusal(description, request):
        raise StudioError(FailureKind.BAD_REQUEST, refusal)
    workload.check(case)
    refuse_unsupported_dtype(workload, case)
    return case


def _check_numbers(request: RunWorkload, description: WorkloadDescription) -> None:
    check_dtype(request.dtype)
    if refusal := dtype_refusal(description, request.dtype):
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, refusal)
    check_size(request.size)
    if refusal := refusal_of(request):
        raise StudioError(FailureKind.BAD_REQUEST, refusal)
    if not 0 <= request.rest_s <= _LONGEST_REST_S:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"A rest of {request.rest_s:g} s is out of range: choose 0 to {_LONGEST_REST_S:g} s.",
        )
    if request.calls is not None and not 1 <= request.calls <= _MOST_CALLS:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{request.calls} calls are out of range: choose 1 to {_MOST_CALLS}.",
        )


def refuse_too_large(workload: Workload, case: Case) -> None:
    """Raise `StudioError` if the case cannot fit: Linux would kill the whole process later."""
    work = workload.work(case)
    # A run with a cold cache also holds the buffer that overwrites the cache.
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


def check_answers(
    workload: Workload,
    case: Case,
    check_stop: Callable[[], None],
    longest_call_s: float | None = None,
) -> tuple[Verification, float | None]:
    """Return the verification and the expected seconds of a call; None for a small call.

    Args:
        workload: the workload to check.
        case: the call to be timed.
        check_stop: called between the steps; raises to end them.
        longest_call_s: the longest call that the request allows; None for any.

    Raises:
        StudioError: a call would take longer than the request or a display driver allows.
    """
    small = case.at(min(case.size, workload.small_up_to))
    check = workload.verify(small)
    check_stop()
    if case.size == small.size:
        return check, None
    expected_call_s = _expected_call_s(workload, case, small, longest_call_s)
    refuse_long_kernel(workload, case, None, expected_call_s)
    _refuse_long_call(expected_call_s, longest_call_s)
    check_stop()
    if not check.verified:
        return check, expected_call_s
    if expected_call_s > _LONGEST_CHECK_S:
        # Another size may run other code: a correct small result proves nothing about it.
        finding = f"too long to check at this size; {check.finding}"
        return Verification(None, finding, check.compared), expected_call_s
    large = workload.verify(case)
    if large.verified:
        large = Verification(True, large.finding, check.compared + large.compared)
    return large, expected_call_s


def _expected_call_s(workload: Workload, case: Case, small: Case, longest_s: float | None) -> float:
    """Return the seconds of a call, by a small one; of several where one seems to be too long."""
    large_work, small_work = workload.work(case), workload.work(small)
    scale = large_work.throughput_work / small_work.throughput_work
    with contextlib.closing(workload.prepare(small)) as call:
        time_once(call, small.device)
        small_call_s = time_once(call, small.device)
        # Beside other programs, a small call may take as long as their slices of time.
        until_s = time.perf_counter() + _LONGEST_LOOK_S
        while longest_s is not None and small_call_s * scale > longest_s:
            small_call_s = min(small_call_s, time_once(call, small.device))
            if time.perf_counter() > until_s:
                break
    return small_call_s * scale


def refuse_unsupported_dtype(workload: Workload, case: Case) -> None:
    """Raise `StudioError` for a type that the case's card cannot compute or multiply in."""
    refuse_dtype(case.device, case.dtype)
    if workload.has_products and workload.computes_in(case) == "bfloat16":
        refuse_bfloat16_products(case.device)


def refuse_long_kernel(
    workload: Workload, case: Case, card: Device | None, expected_call_s: float | None = None
) -> None:
    """Raise `StudioError` if one kernel of a call takes a card longer than a display driver waits.

    The shortest time that the card's peaks allow decides. If they are unknown, the time that a
    small call took does, scaled to this size.

    Args:
        workload: the workload.
        case: the call.
        card: as its driver describes it; None if unknown.
        expected_call_s: the seconds of this call, estimated from a small call; None before that.
    """
    kernel_s = kernel_time_s(workload, case, card)
    if kernel_s is None and expected_call_s is not None and case.is_on_card:
        kernel_s = expected_call_s * workload.work(case).longest_kernel
    if kernel_s is None or kernel_s <= LONGEST_KERNEL_S:
        return
    description = workload.description
    shorter = [
        size
        for size in description.sizes
        if size < case.size
        and (kernel_time_s(workload, case.at(size), card) or 0.0) <= LONGEST_KERNEL_S
    ]
    upto = f" Choose {format_size(max(shorter), description.size_text)} or less" if shorter else ""
    raise StudioError(
        FailureKind.TOO_LARGE,
        f"{description.name} at {format_size(case.size, description.size_text)} in "
        f"{case.dtype_name} runs a kernel of about {format_duration(kernel_s)} on the "
        f"{card_name(case.device)}. Windows restarts a display driver after 2\u202fs, so GPU "
        f"Studio runs no kernel over {format_duration(LONGEST_KERNEL_S)}."
        f"{upto or ' Choose a smaller size'}, or another precision.",
    )


def _refuse_long_call(expected_call_s: float, longest_s: float | None) -> None:
    if longest_s is not None and expected_call_s > longest_s:
        raise StudioError(
            FailureKind.TOO_SLOW,
            f"A call takes longer here than the {format_duration(longest_s)} that this "
            "measurement has room for.",
        )


def kernel_time_s(workload: Workload, case: Case, card: Device | None) -> float | None:
    """Return the shortest time that a card's peaks allow for the longest kernel of a call.

    None on the CPU, and for a card whose peaks are unknown.
    """
    if not case.is_on_card:
        return None
    ceilings = ceilings_of(case, card, workload.computes_in(case))
    if ceilings is None:
        return None
    work = workload.work(case)
    if not work.longest_kernel:
        return 0.0
    amounts = {**work.amounts, Limit.LINK: 0.0}
    least_s = shortest_s(ceilings, amounts)
    return max(least_s.values()) * work.longest_kernel if least_s else None
