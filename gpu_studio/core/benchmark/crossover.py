"""The size from which one device beats another, and how certain it is.

Every size has its `Claim`, which decides the winner there. A crossing lies between two sizes
with different winners.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import Claim, Outcome, claim_of
from gpu_studio.core.device_name import CPU, is_cpu, pc_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

_STEPS_PER_DOUBLING = 32


class Crossing(msgspec.Struct, frozen=True):
    """A point at which the faster device changes.

    It lies between ``low`` and ``high``, two measured sizes with different winners. ``size`` is
    the zero of the straight line through the ratios on logarithmic axes, within those two.
    ``device_wins_above`` says which device wins above it.
    """

    size: float
    low: int
    high: int
    device_wins_above: bool


def reference_of(device: str, devices: Iterable[str]) -> str:
    """Return the CPU that a card is compared with: its own PC's, or else the first one.

    Args:
        device: the card.
        devices: all devices that were measured, or will be.
    """
    cpus = [one for one in devices if is_cpu(one)]
    own = (one for one in cpus if pc_of(one) == pc_of(device))
    return next(own, cpus[0] if cpus else CPU)


def claims_by_size(
    results: Sequence[RunFinished],
    device: str,
    *,
    with_transfers: bool = False,
    reference: str | None = None,
) -> dict[int, Claim]:
    """Return the claims on a device by ascending size, for sizes measured on both.

    Args:
        results: of one workload, dtype and set of options; the last result of a size counts. One in
            turns is compared with the one that it took turns with.
        device: the device to compare with the reference.
        with_transfers: use the device's runs with transfers, or those without. The reference has
            its operands in place, so all its runs count.
        reference: the device to compare with; `reference_of` the results if None.
    """
    histories = claim_histories(results, device, with_transfers=with_transfers, reference=reference)
    return {size: history[-1] for size, history in histories.items()}


def claim_histories(
    results: Sequence[RunFinished],
    device: str,
    *,
    with_transfers: bool = False,
    reference: str | None = None,
) -> dict[int, list[Claim]]:
    """Return all claims of each size, oldest first, by ascending size; see `claims_by_size`."""
    reference = reference or reference_of(device, (result.device for result in results))
    in_turns: dict[tuple[int, str], RunFinished] = {}
    latest: dict[int, RunFinished] = {}
    for one in results:
        if one.device == reference and not one.transfers:
            in_turns[one.size, one.turns] = latest[one.size] = one
    histories: dict[int, list[Claim]] = {}
    for one in results:
        is_ours = one.device == device and one.transfers == with_transfers
        if is_ours and one.size in latest:
            claim = claim_of(in_turns.get((one.size, one.turns), latest[one.size]), one)
            histories.setdefault(one.size, []).extend([claim] if claim is not None else [])
    return {size: histories[size] for size in sorted(histories) if histories[size]}


def crossings_of(claims: Mapping[int, Claim]) -> tuple[Crossing, ...]:
    """Return where a device overtakes the reference or falls behind it, by ascending size.

    Args:
        claims: see `claims_by_size`.
    """
    decided = [size for size, claim in claims.items() if claim.sign]
    return tuple(
        _crossing(below, above, claims)
        for below, above in itertools.pairwise(decided)
        if claims[below].sign != claims[above].sign
    )


def next_size(
    claims: Mapping[int, Claim], *, tolerance: float = 0.05, tried: Collection[int] = ()
) -> int | None:
    """Return the size to measure next to narrow a crossing down, or None if that is done.

    It halves, on a logarithmic axis, the wider gap between a decided size and its neighbor inside a
    crossing, until each gap is within the tolerance or no whole step is left.

    Args:
        claims: see `claims_by_size`.
        tolerance: the largest gap between two neighbors, as a share of the smaller one.
        tried: the requested sizes, even if they could not run.
    """
    gaps = []
    for crossing in crossings_of(claims):
        inside = [size for size in claims if crossing.low <= size <= crossing.high]
        gaps += [
            (below, above)
            for below, above in itertools.pairwise(inside)
            if (claims[below].sign or claims[above].sign) and above > below * (1 + tolerance)
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


def _crossing(below: int, above: int, claims: Mapping[int, Claim]) -> Crossing:
    inside = {
        size: claim.ratio
        for size, claim in claims.items()
        if below <= size <= above and claim.outcome is not Outcome.WRONG
    }
    return Crossing(
        size=min(max(_zero_of_line(inside), below), above),
        low=below,
        high=above,
        device_wins_above=claims[above].sign > 0,
    )


def _zero_of_line(ratios: Mapping[int, float]) -> float:
    """Return where the least-squares line of log ratio over log size is zero."""
    xs, ys = [*map(math.log, ratios)], [*map(math.log, ratios.values())]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mean_x) ** 2 for x in xs
    )
    # Ties between two decided sizes can level the line; then the middle is as good.
    return math.exp(mean_x - mean_y / slope) if slope else math.exp(mean_x)
