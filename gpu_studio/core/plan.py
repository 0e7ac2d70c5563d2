"""A plan of runs: which in what order, and how long it will take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.protocol import RunWorkload
from gpu_studio.core.runs import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.runs import Run

# Warm-up and the rest of a small run's set-up, until a run of this plan has told its own.
_USUAL_OVERHEAD_S = 0.5


def plan_runs(
    workload: str,
    sizes: Sequence[int],
    dtypes: Sequence[str],
    devices: Sequence[str],
    budget_s: float,
    *,
    first_number: int = 1,
) -> list[RunWorkload]:
    """Return every combination; devices alternate, so that the first comparison comes early.

    Args:
        workload: what to run.
        sizes: in the order to run them.
        dtypes: all at each size.
        devices: all at each size and dtype.
        budget_s: the time budget of each run.
        first_number: the number of the first run; ids are unique within a session.
    """
    combinations = [
        (size, dtype, device) for size in sizes for dtype in dtypes for device in devices
    ]
    return [
        RunWorkload(
            run_id=f"run-{number}",
            workload=workload,
            device=device,
            size=size,
            dtype=dtype,
            budget_s=budget_s,
        )
        for number, (size, dtype, device) in enumerate(combinations, first_number)
    ]


def time_left_s(begun: Sequence[Run], waiting: Sequence[RunWorkload]) -> float:
    """Return about how many seconds a plan still needs.

    Args:
        begun: the plan's runs so far.
        waiting: its requests that have not begun.
    """
    overheads = [
        run.result.elapsed_s - run.spent_s
        for run in begun
        if run.result is not None and run.result.elapsed_s > run.spent_s
    ]
    overhead_s = sum(overheads) / len(overheads) if overheads else _USUAL_OVERHEAD_S
    left_s = sum(request.budget_s + overhead_s for request in waiting)
    for run in begun:
        if not run.state.is_over:
            left_s += max(run.request.budget_s - run.spent_s, 0.0)
            left_s += 0.0 if run.state is RunState.TIMING else overhead_s
    return left_s
