"""The standard runs that people added to the program: other PCs with your card.

They are JSON files in ``resources/reference/runs``; docs/public-runs.md says how to add one.
`doubts_about` says what a run has to be before it is taken: it cannot know whether a file is true,
but it finds what no measurement gives.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.comparison import APART_BY
from gpu_studio.core.benchmark.standard import LOAD_ITEM, STANDARD_1
from gpu_studio.core.benchmark.standard_record import decode_standard
from gpu_studio.core.failure import StudioError
from gpu_studio.core.moments import moment_order
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.resources import resource_files
from gpu_studio.core.statistics import FEWEST_ROUNDS
from gpu_studio.core.units import format_percent
from gpu_studio.core.user_file import UnusableFileError, read_own_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from gpu_studio.core.benchmark.standard_record import StandardDevice, StandardRun
    from gpu_studio.core.messages.run_messages import RunFinished

FOLDER = "reference/runs"
FEWEST_OF_A_HALF = 7
"""With seven others, half of all runs of the same kind fall between the second and the sixth.

The middle half of three would be the range from the lowest to the highest, which one bad run sets.
"""
# Published clocks are rounded. The ceiling of a CPU is measured, as uncertain as its results.
_CEILING_WITHIN = 1.05
_WIDEST_INTERVAL = 0.1  # half of it, as a share of the median
_LOAD_BESIDE_RESULT = (0.3, 1.2)  # the steady speed of a load, over the result of the same work
_SHORTEST_LOAD_S = 15.0
_SAME_MEMORY = 0.05
# What every device can do; a ceiling is known for the first two.
_NEEDED = ("bandwidth", "product_float32", "launch")
_WITH_CEILING = ("bandwidth", "product_float32")
# Winograd's algorithm needs fewer operations than the convolution is counted as.
_BELOW_ITS_WORK = ("convolution",)


def public_runs() -> tuple[StandardRun, ...]:
    """Return the runs that came with the program; one that cannot be read is left out."""
    runs = []
    for path in resource_files(FOLDER, ".json"):
        try:
            runs.append(decode_standard(read_own_file(path, LARGEST_RECORD_BYTES), path.name))
        except (StudioError, UnusableFileError):
            continue
    return tuple(runs)


# ── is it plausible? ─────────────────────────────────────────────────────────────────────────────


def doubts_about(run: StandardRun, now: datetime) -> list[str]:
    """Return why a run is not taken into the folder, a sentence each; empty if it is.

    Args:
        run: a run that `decode_standard` accepted.
        now: no run is from later.
    """
    doubts = [] if not run.pc_name else ["It has the name of a PC: remove it."]
    if not run.program.startswith("GPU Studio"):
        doubts.append("It does not say which version of GPU Studio made it.")
    if moment_order(run.made_at)[0] > now.timestamp():
        doubts.append("It is from the future.")
    if all(device.is_cpu for device in run.devices):
        doubts.append("It has no card.")
    for device in run.devices:
        doubts += [f"{device.name}: {doubt}." for doubt in _doubts_of(device)]
    return doubts


def _doubts_of(device: StandardDevice) -> Iterator[str]:
    if not device.build:
        yield "PyTorch's version is missing"
    if not device.is_cpu and not device.driver:
        yield "the driver's version is missing"
    if device.check is not None and device.check.verdict == "failed":
        yield "its last check found errors"
    for item in STANDARD_1:
        result = device.result(item.key)
        if result is not None:
            for doubt in _doubts_of_result(result):
                yield f"{item.key}: {doubt}"
            share, most = result.share_of_ceiling, APART_BY if device.is_cpu else _CEILING_WITHIN
            if item.key in _WITH_CEILING and share is None:
                yield f"{item.key}: there is no ceiling to hold it against"
            if item.key not in _BELOW_ITS_WORK and (share or 0.0) > most:
                yield f"{item.key}: it is over its ceiling, {format_percent(share or 0.0)} of it"
        elif item.key in _NEEDED:
            yield f"{item.key}: it was not measured"
    yield from _doubts_of_load(device)


def _doubts_of_result(result: RunFinished) -> Iterator[str]:
    low, high = result.ci95_s
    if result.verified is False:
        yield "its result is wrong"
    if len(result.rounds_s) < FEWEST_ROUNDS:
        yield f"it has fewer than {FEWEST_ROUNDS} rounds"
    if high - low > 2 * _WIDEST_INTERVAL * result.median_s:
        yield f"its interval is wider than ± {format_percent(_WIDEST_INTERVAL)}"
    if result.rounds_s and not min(result.rounds_s) <= result.median_s <= max(result.rounds_s):
        yield "its median is not one of its rounds"
    if result.throttled:
        yield "the card slowed itself down"
    if result.other_processes:
        yield "other programs used the device"
    if result.recording:
        yield "it is a recording"


def _doubts_of_load(device: StandardDevice) -> Iterator[str]:
    load, result = device.load, device.result(LOAD_ITEM.key)
    if load is None or load.seconds < _SHORTEST_LOAD_S:
        yield f"it has no load of {_SHORTEST_LOAD_S:.0f} s"
        return
    if not device.is_cpu and not load.steady_clock_mhz:
        yield "the clock under load is missing"
    if load.was_throttled:
        yield "the card slowed itself down under load"
    least, most = _LOAD_BESIDE_RESULT
    if result is not None and not least <= load.steady_rate / result.throughput <= most:
        yield "its speed under load contradicts its result of the same work"


# ── your card among them ─────────────────────────────────────────────────────────────────────────


def standing_among(device: StandardDevice, runs: Sequence[StandardRun]) -> str:
    """Return how a card stands among others of its kind, as a sentence; empty without any.

    Its speed is the geometric mean of its rates, each over the median of the others'.

    Args:
        device: this PC's.
        runs: of other PCs.
    """
    others = [
        one
        for run in runs
        for one in run.devices
        if one != device and are_one_kind(one, device) and not one.is_cpu
    ]
    keys = [
        item.key
        for item in STANDARD_1
        if all(one.result(item.key) is not None for one in (device, *others))
    ]
    if not others or not keys:
        return ""
    count = f"PCs with your card: {len(others)}"
    if len(others) < FEWEST_OF_A_HALF:
        return f"{count}. From {FEWEST_OF_A_HALF} on, this line says how yours compares."
    rates = {key: sorted(_rate(one, key) for one in others) for key in keys}
    middles = {key: _quantile(rates[key], 0.5) for key in keys}

    def speed(one: StandardDevice) -> float:
        return math.exp(
            math.fsum(math.log(_rate(one, key) / middles[key]) for key in keys) / len(keys)
        )

    speeds, own = sorted(map(speed, others)), speed(device)
    if _quantile(speeds, 0.25) <= own <= _quantile(speeds, 0.75):
        return f"{count}, yours is in the middle half."
    change = own / _quantile(speeds, 0.5) - 1
    side = "below" if change < 0 else "above"
    return f"{count}, yours is {format_percent(abs(change))} {side} their middle."


def are_one_kind(one: StandardDevice, other: StandardDevice) -> bool:
    """Return whether two devices are the same kind of card: name, chip and size of its memory."""
    sizes = one.memory_total_bytes, other.memory_total_bytes
    if one.is_cpu != other.is_cpu or one.name.casefold() != other.name.casefold():
        return False
    if one.silicon and other.silicon and one.silicon != other.silicon:
        return False
    return None in sizes or math.isclose(sizes[0] or 0, sizes[1] or 0, rel_tol=_SAME_MEMORY)


def _rate(device: StandardDevice, key: str) -> float:
    result = device.result(key)
    assert result is not None
    return result.throughput


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile below which a new value falls with this chance (Hyndman-Fan 6)."""
    position = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])
