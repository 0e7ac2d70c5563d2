"""The sentence on top of the results, written from the numbers in the table and nothing else."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.units import format_duration, format_ratio, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.protocol import RunFinished

_OPENING = "On this PC "
_SAME_WITHIN = 1.05  # below this ratio two devices are called equally fast


def speed_up(result: RunFinished, results: Sequence[RunFinished]) -> float | None:
    """Return the ratio of medians CPU / device for the same work; None where there is no CPU run.

    Of several CPU runs of the same work the latest counts, as in the verdict. For a CPU run it is
    None as well: it is the reference.
    """
    if result.device == "cpu":
        return None
    for other in reversed(results):
        if other.device == "cpu" and _work(other) == _work(result):
            return other.median_s / result.median_s if result.median_s else None
    return None


def verdict(results: Sequence[RunFinished]) -> str:
    """Return one sentence or two about finished runs; empty without any."""
    if not results:
        return ""
    latest = results[-1]
    same_kind = [
        result
        for result in results
        if (result.workload, result.dtype) == (latest.workload, latest.dtype)
    ]
    devices = list(dict.fromkeys(r.device for r in same_kind if r.device != "cpu"))
    pairs = {device: _ratios(same_kind, device) for device in devices}
    pairs = {device: ratios for device, ratios in pairs.items() if ratios}
    sentences = [_compare(device, ratios, same_kind) for device, ratios in pairs.items()]
    if sentences:
        # The work is the same for each: the first sentence says it for all.
        work = f" ({_kind(latest)})"
        others = (text.replace(work, "").removeprefix(_OPENING) for text in sentences[1:])
        sentences[1:] = [text[:1].upper() + text[1:] for text in others]
    else:
        sentences = [_alone(same_kind)]
    return " ".join([*sentences, *_warning(same_kind)])


def _warning(results: Sequence[RunFinished]) -> list[str]:
    """Return what has to be said before anybody relies on the rest: speed is nothing if wrong."""
    wrong = dict.fromkeys(_short(result) for result in results if result.verified is False)
    return [f"But {' and '.join(wrong)} gave wrong results: do not rely on this."] if wrong else []


def _short(result: RunFinished) -> str:
    return "the CPU" if result.device == "cpu" else f"the {_card_name(result)}"


def _card_name(result: RunFinished) -> str:
    return result.device_name.removeprefix("NVIDIA ")


class Crossover(msgspec.Struct, frozen=True):
    """Two neighbouring sizes that were measured, between which the faster device changes.

    ``crosses_at`` is where straight lines between the two cross on logarithmic axes; only the two
    sizes were measured, so it is a place for a mark and not a result.
    """

    device: str
    below: int
    above: int
    crosses_at: float


def crossovers(results: Sequence[RunFinished], device: str) -> list[Crossover]:
    """Return where a device and the CPU change places, by ascending size.

    Args:
        results: of one workload and dtype; of several for one size the last counts.
        device: the device beside the CPU.
    """
    ratios = [(size, ratio) for size, ratio in _ratios(results, device).items() if ratio != 1]
    found = []
    for (below, low), (above, high) in itertools.pairwise(ratios):
        if (low > 1) != (high > 1):
            share = -math.log(low) / (math.log(high) - math.log(low))
            crosses_at = math.exp(math.log(below) + share * math.log(above / below))
            found.append(Crossover(device, below, above, crosses_at))
    return found


def _work(result: RunFinished) -> tuple[str, int, str]:
    return result.workload, result.size, result.dtype


def _kind(result: RunFinished) -> str:
    return f"{result.workload}, {result.dtype}"


def _ratios(results: Sequence[RunFinished], device: str) -> dict[int, float]:
    """Return size → how many times faster the device is than the CPU, by ascending size."""
    medians: dict[int, dict[str, float]] = defaultdict(dict)
    for result in results:
        medians[result.size][result.device] = result.median_s
    return {
        size: by_device["cpu"] / by_device[device]
        for size, by_device in sorted(medians.items())
        if "cpu" in by_device and by_device.get(device)
    }


def _compare(device: str, ratios: dict[int, float], results: Sequence[RunFinished]) -> str:
    latest = next(result for result in reversed(results) if result.device == device)
    name = f"the {_card_name(latest)}"
    label = f" (recording: {latest.recording})" if latest.recording else ""
    work = _kind(latest)
    wins = [size for size, ratio in ratios.items() if ratio >= _SAME_WITHIN]
    loses = [size for size, ratio in ratios.items() if ratio <= 1 / _SAME_WITHIN]
    best = max(ratios, key=lambda size: ratios[size])
    worst = min(ratios, key=lambda size: ratios[size])
    if wins and not loses:
        return (
            f"{_OPENING}{name} wins at every size measured ({work}): up to "
            f"{format_ratio(ratios[best])} faster, at {format_size(best)}{label}."
        )
    if loses and not wins:
        return (
            f"{_OPENING}the CPU wins at every size measured ({work}): at {format_size(worst)} "
            f"it is {format_ratio(1 / ratios[worst])} faster than {name}{label}."
        )
    if not wins:
        return f"{_OPENING}the CPU and {name} are equally fast ({work}){label}."
    first_win = next((size for size in wins if _never_loses_from(ratios, size)), None)
    if first_win is None:
        return (
            f"{_OPENING}it depends on the size ({work}): {name} is "
            f"{format_ratio(ratios[best])} faster at {format_size(best)}, the CPU "
            f"{format_ratio(1 / ratios[worst])} at {format_size(worst)}{label}."
        )
    return (
        f"{_OPENING}{name} wins from {format_size(first_win)} on, of the sizes measured ({work}); "
        f"at {format_size(worst)} the CPU is {format_ratio(1 / ratios[worst])} faster{label}."
    )


def _never_loses_from(ratios: dict[int, float], size: int) -> bool:
    return all(ratio > 1 / _SAME_WITHIN for other, ratio in ratios.items() if other >= size)


def _alone(results: Sequence[RunFinished]) -> str:
    latest = results[-1]
    text = (
        f"{latest.device_name} needs {format_duration(latest.median_s)} for one call of "
        f"{latest.workload} at {format_size(latest.size)}, {latest.dtype}."
    )
    if latest.device == "cpu":
        return text + " With a GPU measured as well, this line compares the two."
    return text + " With the CPU measured as well, this line compares the two."
