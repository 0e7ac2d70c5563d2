"""What finished runs say: who is faster, from which size on, and what is doubtful.

`verdict_words` puts it into sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.comparison import compare
from gpu_studio.core.benchmark.crossover import Crossover, find_crossover, ratios_of, reference_of
from gpu_studio.core.benchmark.trust import timing_doubts
from gpu_studio.core.device_name import is_cpu

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpu_studio.core.benchmark.comparison import Comparison
    from gpu_studio.core.messages.run_messages import RunFinished


class CardComparison(msgspec.Struct, frozen=True):
    """A card compared with a CPU over the sizes that both have measured.

    ``result`` is the card's latest, ``reference`` the name of the CPU, ``crossover`` has at least
    one ratio, and ``with_transfers`` says whether the copies to and from the card count.
    """

    result: RunFinished
    reference: str
    crossover: Crossover
    with_transfers: bool


class WrongResults(msgspec.Struct, frozen=True):
    """A device's last wrong result, and the sizes of all of them, smallest first."""

    result: RunFinished
    sizes: tuple[int, ...]


class BenchmarkVerdict(msgspec.Struct, frozen=True):
    """What the runs of one kind of work say.

    Attributes:
        latest: the newest result.
        wrong: the devices with wrong results; they never win, and nothing wins against them.
        comparisons: each card's without and with copies; empty if only one device was measured.
        options: the options of the work that differ between the results of its workload.
        is_doubted: whether it relies on wrong results or doubtful times.
    """

    latest: RunFinished
    wrong: tuple[WrongResults, ...]
    comparisons: tuple[CardComparison, ...]
    options: dict[str, str]
    is_doubted: bool


def verdict_of(results: Sequence[RunFinished]) -> BenchmarkVerdict | None:
    """Return the verdict on the latest kind of work; None without a result.

    Args:
        results: in the order of the runs.
    """
    if not results:
        return None
    latest = results[-1]
    alike = [result for result in results if same_kind(result, latest)]
    wrong = tuple(_wrong_results(alike))
    comparisons = tuple(_comparisons(alike))
    return BenchmarkVerdict(
        latest=latest,
        wrong=wrong,
        comparisons=_trusted(comparisons, wrong),
        options=_differing_options(latest, results),
        is_doubted=bool(wrong) or _is_doubted(latest, comparisons),
    )


def _wrong_results(results: Sequence[RunFinished]) -> Iterator[WrongResults]:
    for device in dict.fromkeys(result.device for result in results):
        wrong = [one for one in results if one.device == device and one.verified is False]
        if wrong:
            yield WrongResults(wrong[-1], tuple(sorted({one.size for one in wrong})))


def _comparisons(results: Sequence[RunFinished]) -> Iterator[CardComparison]:
    for device in dict.fromkeys(one.device for one in results if not is_cpu(one.device)):
        latest = next(result for result in reversed(results) if result.device == device)
        reference = reference_of(device, (one.device for one in results))
        for with_transfers in (False, True):
            ratios = ratios_of(results, device, with_transfers=with_transfers, reference=reference)
            if ratios:
                yield CardComparison(latest, reference, find_crossover(ratios), with_transfers)


def _trusted(
    comparisons: tuple[CardComparison, ...], wrong: tuple[WrongResults, ...]
) -> tuple[CardComparison, ...]:
    """Return the comparisons of two devices without a wrong result."""
    devices = {one.result.device for one in wrong}
    if any(map(is_cpu, devices)):
        return ()
    return tuple(one for one in comparisons if one.result.device not in devices)


def _is_doubted(latest: RunFinished, comparisons: Sequence[CardComparison]) -> bool:
    if comparisons:
        return any(ratio.doubts for one in comparisons for ratio in one.crossover.ratios)
    return bool(timing_doubts(latest))


def _differing_options(latest: RunFinished, results: Iterable[RunFinished]) -> dict[str, str]:
    alike = [other for other in results if other.workload == latest.workload]
    return {
        name: value
        for name, value in latest.options.items()
        if any(other.options.get(name) != value for other in alike)
    }


def speed_up(result: RunFinished, results: Sequence[RunFinished]) -> Comparison | None:
    """Return a result's comparison with the CPU at the same work; None if there is none.

    The CPU of its own PC counts, or else that of another one; of several runs of it at the same
    work the latest, as in the verdict. A CPU run has no comparison, because it is the reference.
    The CPU's operands are in place, so its runs can be compared with a card's runs with or without
    transfers.
    """
    if is_cpu(result.device):
        return None
    cpus = [
        other
        for other in reversed(results)
        if is_cpu(other.device) and other.size == result.size and same_kind(other, result)
    ]
    reference = reference_of(result.device, (one.device for one in cpus))
    other = next((one for one in cpus if one.device == reference), None)
    return compare(other, result) if other is not None else None


def same_kind(result: RunFinished, other: RunFinished) -> bool:
    """Return whether two results belong on one curve: the same work except for size and device.

    Recorded results never share a curve with this PC's.
    """
    return _kind_of(result) == _kind_of(other)


def _kind_of(result: RunFinished) -> tuple[object, ...]:
    return (
        result.workload, result.dtype, sorted(result.options.items()), result.cache,
        result.sustained, result.race, result.recording,
    )  # fmt: skip
