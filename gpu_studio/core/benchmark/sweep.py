"""A sweep: a coarse grid of sizes first, then finer ones where the curves of two devices cross."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.crossover import next_size, ratios_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.plan import Plan
    from gpu_studio.core.protocol import RunFinished, RunWorkload

_TOLERANCE = 0.05
# Halving an octave down to a twentieth takes four; a tie in it may cost as many on both its sides.
_MOST_REFINEMENTS = 10


class Sweep:
    """Satisfies `plan.RunPlan`: the runs of a plan, then those that narrow the crossovers down.

    Each round measures one size more for every pair of the CPU and a card, dtype and mode whose
    crossover is not yet known within the tolerance. Where there is no CPU or no card in the plan,
    or the curves do not cross, the grid is all.

    Args:
        plan: the grid; see `sizes.powers_of_two` for a range.
        tolerance: how closely a crossing is enclosed, as a share of its size.
    """

    def __init__(self, plan: Plan, tolerance: float = _TOLERANCE) -> None:
        self.plan = plan
        self._tolerance = tolerance
        self._asked: dict[str, RunWorkload] = {}
        self._rounds: dict[tuple[str, str, bool], int] = {}

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the runs of the grid, by ascending size; see `plan.Plan.requests`."""
        return self._remembered(self.plan.requests(first_number))

    def next_requests(
        self, results: Sequence[RunFinished], first_number: int = 1
    ) -> list[RunWorkload]:
        """Return the runs of the next finer sizes; see `plan.RunPlan.next_requests`."""
        ours = [result for result in results if result.run_id in self._asked]
        runs: dict[tuple[int, str, str, bool], None] = {}
        for dtype in self.plan.dtypes:
            for device in self.plan.devices:
                for transfers in self.plan.modes_of(device):
                    size = self._finer(ours, dtype, device, transfers)
                    if size is not None:
                        runs[size, dtype, "cpu", False] = None
                        runs[size, dtype, device, transfers] = None
        wanted = [run for run in runs if not self._was_asked(*run)]
        return self._remembered(
            [self.plan.request(number, *run) for number, run in enumerate(wanted, first_number)]
        )

    def _finer(
        self, results: Sequence[RunFinished], dtype: str, device: str, transfers: bool
    ) -> int | None:
        """Return the size that narrows one crossover down, until there were enough of them."""
        pair = (dtype, device, transfers)
        if device == "cpu" or self._rounds.get(pair, 0) >= _MOST_REFINEMENTS:
            return None
        tried = {
            request.size
            for request in self._asked.values()
            if (request.dtype, request.device, request.transfers) == pair
        }
        ratios = ratios_of(
            [result for result in results if result.dtype == dtype],
            device,
            with_transfers=transfers,
        )
        size = next_size(ratios, tolerance=self._tolerance, tried=tried)
        if size is not None:
            self._rounds[pair] = self._rounds.get(pair, 0) + 1
        return size

    def _was_asked(self, size: int, dtype: str, device: str, transfers: bool) -> bool:
        return any(
            (asked.size, asked.dtype, asked.device, asked.transfers)
            == (size, dtype, device, transfers)
            for asked in self._asked.values()
        )

    def _remembered(self, requests: list[RunWorkload]) -> list[RunWorkload]:
        self._asked |= {request.run_id: request for request in requests}
        return requests
