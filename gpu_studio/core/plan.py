"""A plan of runs: which in what order, and how long it will take."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.protocol import RunWorkload
from gpu_studio.core.runs import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.runs import Run

# Warm-up and the rest of a small run's set-up, until a run of this plan has told its own.
_USUAL_OVERHEAD_S = 0.5


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Every combination of sizes, dtypes and devices, each for the same time budget."""

    workload: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    budget_s: float

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the runs in order: devices alternate, so that a comparison comes early.

        Args:
            first_number: the number of the first run; ids are unique within a session.
        """
        combinations = itertools.product(self.sizes, self.dtypes, self.devices)
        return [
            RunWorkload(
                run_id=f"run-{number}",
                workload=self.workload,
                device=device,
                size=size,
                dtype=dtype,
                budget_s=self.budget_s,
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
