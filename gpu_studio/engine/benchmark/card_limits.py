"""Refuse work that a card cannot do, before anything runs: bfloat16 products, kernels of seconds.

Windows ends a display driver whose kernel takes longer than 2 s (TdrDelay), and every
program on the card with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.ceilings import shortest_s
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.engine.benchmark.ceilings import ceilings_of
from gpu_studio.engine.device import card_name, refuse_bfloat16_products, refuse_dtype

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import CardState
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

# Half of what Windows allows: a card does not always reach its peak.
LONGEST_KERNEL_S = 1.0


def refuse_unsupported_dtype(workload: Workload, case: Case) -> None:
    """Raise `StudioError` for a type that the case's card cannot compute or multiply in."""
    refuse_dtype(case.device, case.dtype)
    if workload.has_products and workload.computes_in(case) == "bfloat16":
        refuse_bfloat16_products(case.device)


def refuse_long_kernel(
    workload: Workload, case: Case, state: CardState | None, expected_call_s: float | None = None
) -> None:
    """Raise `StudioError` if one kernel of a call takes a card longer than a display driver waits.

    The shortest time that the card's peaks allow decides. If they are unknown, the time that a
    small call took does, scaled to this size.

    Args:
        workload: the workload.
        case: the call.
        state: the driver's readings of the card; None if unknown.
        expected_call_s: the seconds of this call, estimated from a small call; None before that.
    """
    kernel_s = kernel_time_s(workload, case, state)
    if kernel_s is None and expected_call_s is not None and case.is_on_card:
        kernel_s = expected_call_s * workload.work(case).longest_kernel
    if kernel_s is None or kernel_s <= LONGEST_KERNEL_S:
        return
    description = workload.description
    shorter = [
        size
        for size in description.sizes
        if size < case.size
        and (kernel_time_s(workload, case.at(size), state) or 0.0) <= LONGEST_KERNEL_S
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


def kernel_time_s(workload: Workload, case: Case, state: CardState | None) -> float | None:
    """Return the shortest time that a card's peaks allow for the longest kernel of a call.

    None on the CPU, and for a card whose peaks are unknown.
    """
    if not case.is_on_card:
        return None
    ceilings = ceilings_of(case, None, state, workload.computes_in(case))
    if ceilings is None:
        return None
    work = workload.work(case)
    if not work.longest_kernel:
        return 0.0
    least_s = shortest_s(ceilings, operations=work.operations, bytes_moved=work.bytes_moved)
    return max(least_s.values()) * work.longest_kernel if least_s else None
