"""A plan of runs: their order, the runs that follow from results, and about how long it takes."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from gpu_studio.core.benchmark.verdict import claim_histories, crossings_of, reference_of
from gpu_studio.core.device_name import is_cpu, pc_of
from gpu_studio.core.messages.run_messages import OwnCode, RunWorkload

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription


# The warm-ups, the checks and the set-ups of a small run's rounds, and its share of measuring the
# peak: 1.4 to 4.9 s on a busy PC of two cores.
_OVERHEAD_S = 2.0


class RunPlan(Protocol):
    """Runs to make: some immediately, and some after those."""

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the first runs in order; ids count from ``first_number``."""

    def next_requests(
        self, results: Sequence[RunFinished], first_number: int = 1
    ) -> list[RunWorkload]:
        """Return the runs that follow when all runs so far are over; empty if the plan is done.

        Args:
            results: this plan's finished runs; other runs do no harm.
            first_number: the number of the next run.
        """


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Every combination of sizes, dtypes and devices, each with the same settings.

    ``settings`` are fields of `RunSettings` by name. With ``transfers`` among them, each run on a
    card is repeated with the copies in each call.
    """

    workload: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    options: dict[str, str] = msgspec.field(default_factory=dict)
    settings: dict[str, Any] = msgspec.field(default_factory=dict)
    code: OwnCode | None = None

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the runs in order: devices alternate, so that a first comparison comes early.

        Args:
            first_number: the number of the first run; ids are unique within a session.
        """
        combinations = [
            (size, dtype, device, transfers)
            for size, dtype, device in itertools.product(self.sizes, self.dtypes, self.devices)
            for transfers in self.modes_of(device)
        ]
        return [
            self.request(number, *combination)
            for number, combination in enumerate(combinations, first_number)
        ]

    def next_requests(
        self, results: Sequence[RunFinished], first_number: int = 1
    ) -> list[RunWorkload]:
        """Return nothing, because all runs are known from the start."""
        return []

    def modes_of(self, device: str) -> tuple[bool, ...]:
        """Return whether a device's runs are made without transfers, with them, or both."""
        has_both = self.settings.get("transfers") and not is_cpu(device)
        return (False, True) if has_both else (False,)

    def request(
        self, number: int, size: int, dtype: str, device: str, transfers: bool = False
    ) -> RunWorkload:
        """Return one run of this plan's workload, options and settings."""
        return RunWorkload(
            run_id=f"run-{number}",
            workload=self.workload,
            device=device,
            size=size,
            dtype=dtype,
            options=self.options,
            code=self.code,
            **{**self.settings, "transfers": transfers},
        )


def in_turns(
    requests: Iterable[RunWorkload], workload: WorkloadDescription | None
) -> list[tuple[RunWorkload, ...]]:
    """Return requests in groups: the runs of a group will be compared, so they take turns.

    Turns need one engine, so the runs of two PCs are two groups.

    Args:
        requests: in their order, of one workload.
        workload: its description; None if it is unknown.
    """
    waiting = tuple(requests)
    is_own = bool(waiting) and waiting[0].code is not None
    if not is_own and (workload is None or not workload.takes_turns):
        return [(request,) for request in waiting]
    # A sustained run has its device to itself.
    work = itertools.groupby(
        waiting,
        key=lambda one: one.run_id if one.sustained else (one.size, one.dtype, pc_of(one.device)),
    )
    return [tuple(group) for _, group in work]


def planned_s(requests: Iterable[RunWorkload]) -> float:
    """Return about how many seconds runs take; longer if calls are slow."""
    return sum(one.timed_s + one.load_s + _OVERHEAD_S for one in requests)


# Halving an octave down to a twentieth takes four; a tie in it may take as many on both sides.
_MOST_REFINEMENTS = 14
# How often the end of a crossing is measured: until two in a row have the same winner.
_MOST_TRIES = 4
_STEPS_PER_DOUBLING = 32
_TOLERANCE = 0.05  # the width of a gap, as a share of its smaller size


class Sweep:
    """Implements `plan.RunPlan`: the runs of a plan, then runs that narrow the crossovers down.

    Each round measures one more size for every combination of card, dtype and mode whose crossover
    with the CPU is not yet within the tolerance. Then both ends of a crossing are measured again: a
    run that was disturbed as a whole would move it. Without a CPU or a card in the plan, or if the
    curves do not cross, only the grid runs.

    Args:
        plan: the grid; see `sizes.powers_of_two` for a range.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._asked: dict[str, RunWorkload] = {}
        self._rounds: dict[tuple[str, str, bool], int] = {}

    def requests(self, first_number: int = 1) -> list[RunWorkload]:
        """Return the runs of the grid, by ascending size; see `plan.Plan.requests`."""
        return self._remembered(self.plan.requests(first_number))

    def next_requests(
        self, results: Sequence[RunFinished], first_number: int = 1
    ) -> list[RunWorkload]:
        """Return the runs at the next finer sizes; see `plan.RunPlan.next_requests`."""
        ours = [result for result in results if result.run_id in self._asked]
        runs: dict[tuple[int, str, str, bool], None] = {}
        for dtype in self.plan.dtypes:
            for device in self.plan.devices:
                for transfers in self.plan.modes_of(device):
                    reference = reference_of(device, self.plan.devices)
                    for size in self._next_sizes(ours, dtype, device, transfers):
                        runs[size, dtype, reference, False] = None
                        runs[size, dtype, device, transfers] = None
        return self._remembered(
            [self.plan.request(number, *run) for number, run in enumerate(runs, first_number)]
        )

    def _next_sizes(
        self, results: Sequence[RunFinished], dtype: str, device: str, transfers: bool
    ) -> list[int]:
        """Return the size that narrows one crossover down, or the ends that are not sure yet."""
        pair = (dtype, device, transfers)
        if is_cpu(device) or self._rounds.get(pair, 0) >= _MOST_REFINEMENTS:
            return []
        tried = {
            request.size
            for request in self._asked.values()
            if (request.dtype, request.device, request.transfers) == pair
        }
        histories = claim_histories(
            [result for result in results if result.dtype == dtype],
            device,
            with_transfers=transfers,
        )
        claims = {size: each[-1] for size, each in histories.items()}
        size = next_size(claims, tried)
        sizes = [size] if size is not None else self._unsure_ends(histories)
        if sizes:
            self._rounds[pair] = self._rounds.get(pair, 0) + 1
        return sizes

    def _unsure_ends(self, histories: Mapping[int, Sequence[Claim]]) -> list[int]:
        """Return the ends of crossings whose last two measurements have not the same winner."""
        crossings = crossings_of({size: each[-1] for size, each in histories.items()})
        ends = {end for one in crossings for end in (one.low, one.high)}
        return [
            size
            for size, each in histories.items()
            if size in ends
            and len(each) < _MOST_TRIES
            and (len(each) < 2 or each[-1].sign != each[-2].sign)
        ]

    def _remembered(self, requests: list[RunWorkload]) -> list[RunWorkload]:
        self._asked |= {request.run_id: request for request in requests}
        return requests


def next_size(claims: Mapping[int, Claim], tried: Collection[int] = ()) -> int | None:
    """Return the size to measure next to narrow a crossing down, or None if that is done.

    It halves, on a logarithmic axis, the wider gap between a decided size and its neighbor inside a
    crossing, until each gap is within the tolerance or no whole step is left.

    Args:
        claims: see `claims_by_size`.
        tried: the requested sizes, even if they could not run.
    """
    gaps = []
    for crossing in crossings_of(claims):
        inside = [size for size in claims if crossing.low <= size <= crossing.high]
        gaps += [
            (below, above)
            for below, above in itertools.pairwise(inside)
            if (claims[below].sign or claims[above].sign) and above > below * (1 + _TOLERANCE)
        ]
    for below, above in sorted(gaps, key=lambda gap: gap[0] / gap[1]):
        size = _between(below, above)
        if size is not None and size not in tried:
            return size
    return None


def _between(below: int, above: int) -> int | None:
    """Return the step nearest to the middle on a logarithmic axis; None if there is none between.

    Steps are a 32nd of the power of two below, so that sizes stay multiples that suit the caches
    and tensor cores of a card: between 512 and 1024 they are multiples of 16.
    """
    step = max(1, (1 << below.bit_length() - 1) // _STEPS_PER_DOUBLING)
    size = round(math.sqrt(below * above) / step) * step
    return size if below < size < above else None
