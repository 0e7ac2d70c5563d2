"""How long a run will take beyond its time budget, learned from the runs measured so far.

Beyond the budget a run has a fixed part (set-up, warm-up) and a part that grows with its calls:
the first call, the warm-up of a slow call, and the check of its result. The growth of a call comes
from the two measured sizes that are nearest, and so does the number of calls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.messages.run_messages import SQUARE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunWorkload

# Until two sizes are known: a call of a square matrix grows with a square or a cube of its size, a
# call of other work not at all or with its size. Beyond its budget, a run makes six of them.
_GROWTH_OF_SQUARES, _GROWTH_OF_OTHERS, _USUAL_CALLS = 2.5, 0.5, 6.0
_MOST_GROWTH, _MOST_CALLS = 3.5, 1000.0


class _Cost(NamedTuple):
    """One measured run."""

    size: int
    call_s: float
    beyond_s: float
    is_square: bool


class RunCosts:
    """The costs of measured runs, by device and mode; the last run of a size counts.

    Args:
        runs: in their order; those without a result teach nothing.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self._costs: dict[tuple[object, ...], dict[int, _Cost]] = {}
        for run in runs:
            result, request = run.result, run.request
            if result is None or result.recording or result.elapsed_s <= run.spent_s:
                continue
            beyond_s = result.elapsed_s - request.budget_s
            cost = _Cost(request.size, result.median_s, beyond_s, run.size_text == SQUARE)
            self._costs.setdefault(_key(request), {})[request.size] = cost

    def beyond_s(self, request: RunWorkload) -> float | None:
        """Return the expected seconds beyond a run's budget; None if nothing is known.

        A run that stops early may take less than its budget: the number is negative then.
        """
        known = self._costs.get(_key(request))
        if known is not None:
            return _extrapolated(known.values(), request.size)
        # A call on another device says little: only the fixed part is likely to be the same.
        others = [
            _fixed_s(_nearest_first(costs.values(), request.size)[0])
            for key, costs in self._costs.items()
            if key[0] == request.workload and key[-1] == request.sustained
        ]
        return sum(others) / len(others) if others else None


def _key(request: RunWorkload) -> tuple[object, ...]:
    return (
        request.workload, request.device, request.dtype, request.transfers, request.cache,
        request.naive, tuple(sorted(request.options.items())), request.sustained,
    )  # fmt: skip


def _fixed_s(cost: _Cost) -> float:
    return max(cost.beyond_s - _USUAL_CALLS * cost.call_s, min(cost.beyond_s, 0.0))


def _nearest_first(costs: Iterable[_Cost], size: int) -> list[_Cost]:
    return sorted(costs, key=lambda cost: abs(math.log(cost.size / size)))


def _extrapolated(costs: Iterable[_Cost], size: int) -> float:
    """Return the cost at a size from the nearest measured one."""
    nearest, *further = _nearest_first(costs, size)
    if nearest.size == size:
        return nearest.beyond_s
    growth = _GROWTH_OF_SQUARES if nearest.is_square else _GROWTH_OF_OTHERS
    calls = _USUAL_CALLS
    if further:
        low, high = sorted((nearest, further[0]))
        longer_s = high.call_s - low.call_s
        if low.call_s > 0 and longer_s > 0:
            growth = math.log(high.call_s / low.call_s) / math.log(high.size / low.size)
            calls = (high.beyond_s - low.beyond_s) / longer_s
        else:
            growth = 0.0
    growth, calls = min(max(growth, 0.0), _MOST_GROWTH), min(max(calls, 0.0), _MOST_CALLS)
    call_s = nearest.call_s * math.pow(size / nearest.size, growth)
    return nearest.beyond_s + calls * (call_s - nearest.call_s)
