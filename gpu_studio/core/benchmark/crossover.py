"""The size from which one device beats another, and how certain it is.

Every size has its `Comparison`, which decides the winner there. A crossing lies between two sizes
with different winners.
"""

from __future__ import annotations

import itertools
import math
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.comparison import Claim, Comparison, compare
from gpu_studio.core.device_name import CPU, is_cpu, pc_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

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


class CrossoverKind(Enum):
    """The result for the ratios of a range of sizes."""

    CROSSES = "crosses"
    ALWAYS = "always"
    NEVER = "never"
    EQUAL = "equal"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"


class Crossover(msgspec.Struct, frozen=True):
    """The result for one device compared with the reference, over the sizes of ``ratios``.

    ``ALWAYS`` and ``NEVER`` mean that the device, or the reference, wins at every size except
    ``ties``; ``EQUAL`` that both are equally fast at every size; ``UNDECIDED`` that no size has a
    winner; ``NOT_MEASURED`` that no size was measured on both.
    """

    kind: CrossoverKind
    ratios: tuple[Comparison, ...]
    crossings: tuple[Crossing, ...] = ()
    ties: tuple[int, ...] = ()


def reference_of(device: str, devices: Iterable[str]) -> str:
    """Return the CPU that a card is compared with: its own PC's, or else the first one.

    Args:
        device: the card.
        devices: all devices that were measured, or will be.
    """
    cpus = [one for one in devices if is_cpu(one)]
    own = (one for one in cpus if pc_of(one) == pc_of(device))
    return next(own, cpus[0] if cpus else CPU)


def ratios_of(
    results: Sequence[RunFinished],
    device: str,
    *,
    with_transfers: bool = False,
    reference: str | None = None,
) -> tuple[Comparison, ...]:
    """Return the ratios reference / device by ascending size, for sizes measured on both.

    Args:
        results: of one workload, dtype and set of options; the last result of a size counts.
        device: the device to compare with the reference.
        with_transfers: use the device's runs with transfers, or those without. The reference has
            its operands in place, so all its runs count.
        reference: the device to compare with; `reference_of` the results if None.
    """
    histories = ratio_histories(results, device, with_transfers=with_transfers, reference=reference)
    return tuple(each[-1] for each in histories)


def ratio_histories(
    results: Sequence[RunFinished],
    device: str,
    *,
    with_transfers: bool = False,
    reference: str | None = None,
) -> list[list[Comparison]]:
    """Return all ratios of each size, oldest first, by ascending size; see `ratios_of`."""
    reference = reference or reference_of(device, (result.device for result in results))
    theirs = _by_size(results, reference, False)
    histories = []
    for size, ours in sorted(_by_size(results, device, with_transfers).items()):
        by_turns = {result.turns: result for result in theirs.get(size, ())}
        last = next(reversed(by_turns.values()), None)
        partners = [(by_turns.get(one.turns, last), one) for one in ours]
        measured = [compare(other, one) for other, one in partners if other is not None]
        ratios = [each for each in measured if each is not None]
        if ratios:
            histories.append(ratios)
    return histories


def _by_size(
    results: Sequence[RunFinished], device: str, transfers: bool
) -> dict[int, list[RunFinished]]:
    by_size: dict[int, list[RunFinished]] = {}
    for result in results:
        if result.device == device and result.transfers == transfers:
            by_size.setdefault(result.size, []).append(result)
    return by_size


def find_crossover(ratios: Sequence[Comparison]) -> Crossover:
    """Return where a device overtakes the reference or falls behind it.

    Args:
        ratios: by ascending size; see `ratios_of`.
    """
    if not ratios:
        return Crossover(CrossoverKind.NOT_MEASURED, ())
    decided = [ratio for ratio in ratios if ratio.sign]
    ties = tuple(ratio.size for ratio in ratios if not ratio.sign)
    crossings = tuple(
        _crossing(below, above, ratios)
        for below, above in itertools.pairwise(decided)
        if below.sign != above.sign
    )
    if crossings:
        kind = CrossoverKind.CROSSES
    elif not decided:
        is_equal = all(ratio.outcome is Claim.EQUAL for ratio in ratios)
        kind = CrossoverKind.EQUAL if is_equal else CrossoverKind.UNDECIDED
    else:
        kind = CrossoverKind.ALWAYS if decided[0].sign > 0 else CrossoverKind.NEVER
    return Crossover(kind, tuple(ratios), crossings, ties)


def next_size(
    ratios: Sequence[Comparison], *, tolerance: float = 0.05, tried: Collection[int] = ()
) -> int | None:
    """Return the size to measure next to narrow a crossing down, or None if that is done.

    It halves, on a logarithmic axis, the wider gap between a decided size and its neighbor inside a
    crossing, until each gap is within the tolerance or no whole step is left.

    Args:
        ratios: by ascending size; see `ratios_of`.
        tolerance: the largest gap between two neighbors, as a share of the smaller one.
        tried: the requested sizes, even if they could not run.
    """
    by_size = {ratio.size: ratio for ratio in ratios}
    gaps = []
    for crossing in find_crossover(ratios).crossings:
        inside = [size for size in by_size if crossing.low <= size <= crossing.high]
        gaps += [
            (below, above)
            for below, above in itertools.pairwise(sorted(inside))
            if (by_size[below].sign or by_size[above].sign) and above > below * (1 + tolerance)
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


def _crossing(below: Comparison, above: Comparison, ratios: Sequence[Comparison]) -> Crossing:
    inside = [
        ratio for ratio in ratios if below.size <= ratio.size <= above.size and not ratio.is_wrong
    ]
    return Crossing(
        size=min(max(_zero_of_line(inside), below.size), above.size),
        low=below.size,
        high=above.size,
        device_wins_above=above.sign > 0,
    )


def _zero_of_line(ratios: Sequence[Comparison]) -> float:
    """Return where the least-squares line of log ratio over log size is zero."""
    xs = [math.log(ratio.size) for ratio in ratios]
    ys = [math.log(ratio.ratio) for ratio in ratios]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mean_x) ** 2 for x in xs
    )
    # Ties between two decided sizes can level the line; then the middle is as good.
    return math.exp(mean_x - mean_y / slope) if slope else math.exp(mean_x)
