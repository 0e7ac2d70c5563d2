"""The theoretical or measured peak of a device, and a result as a share of it.

For a card, the ceilings follow from its multiprocessors, clocks and bus (`peaks`). For a CPU, an
engine measures them: how fast it copies memory, and how fast it multiplies large matrices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.devices.facts import peaks_of
from gpu_studio.core.devices.link import link_bytes_per_s
from gpu_studio.core.maker_builds import version_numbers
from gpu_studio.core.messages.run_messages import CeilingShare, Limit
from gpu_studio.core.units import format_duration, format_percent, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpu_studio.core.devices.peaks import CardPeaks
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.core.messages.run_messages import RunFinished


CALLS_PER_S = "calls/s"
"""The throughput unit of a workload that does hardly anything besides calling."""


_WORDS = {
    Limit.ARITHMETIC: "peak arithmetic",
    Limit.MEMORY: "memory bandwidth",
    Limit.LINK: "PCIe link",
}


Ceilings = dict[Limit, float]
"""The known peaks of a device in one dtype: operations per second, bytes read and written per
second, and bytes per second in one direction between a card and the PC.
"""


def card_ceilings(
    peaks: CardPeaks,
    dtype: str,
    *,
    tf32: bool = False,
    link: tuple[int | None, int | None] = (None, None),
) -> Ceilings:
    """Return the ceilings of a card in a dtype.

    Args:
        peaks: the card's peaks at its highest clocks.
        dtype: PyTorch's name.
        tf32: whether PyTorch may multiply float32 matrices in TF32.
        link: generation and width of its PCIe link under load.
    """
    found = {
        Limit.ARITHMETIC: peaks.best_flops(dtype, tf32=tf32),
        Limit.MEMORY: peaks.memory_bytes_per_s,
        Limit.LINK: link_bytes_per_s(*link),
    }
    return {limit: peak for limit, peak in found.items() if peak}


def shortest_s(ceilings: Ceilings, amounts: Mapping[Limit, float]) -> dict[Limit, float]:
    """Return the shortest time that each known ceiling allows for some work, in seconds.

    Args:
        ceilings: of the device, in the dtype of the work.
        amounts: what is computed, read and written, and sent over PCIe in the busier direction.
    """
    return {
        limit: amount / ceilings[limit]
        for limit, amount in amounts.items()
        if amount and limit in ceilings
    }


def share_of_ceiling(
    ceilings: Ceilings, median_s: float, amounts: Mapping[Limit, float]
) -> CeilingShare | None:
    """Return how close a call came to its ceiling; None if no ceiling that it needs is known.

    Args:
        ceilings: as for `shortest_s`.
        median_s: the time of the call.
        amounts: as for `shortest_s`.
    """
    least_s = shortest_s(ceilings, amounts)
    if not least_s or median_s <= 0:
        return None
    limit = max(least_s, key=least_s.__getitem__)
    unit = "FLOP/s" if limit is Limit.ARITHMETIC else "B/s"
    ceiling = f"{_WORDS[limit]}, {format_rate(ceilings[limit], unit)}"
    return CeilingShare(share=least_s[limit] / median_s, ceiling=ceiling, limit=limit)


# A call this short is mostly overhead: a launch takes some microseconds (`launch` measures it).
_SHORT_ON_CPU_S, _SHORT_ON_CARD_S = 20e-6, 60e-6
_FEW_LANES = 8
_SLOW_ON_CPUS = frozenset({"float16", "bfloat16"})
# glibc keeps freed memory in pieces of up to 32 MiB and gives larger ones back: mallopt(3),
# M_MMAP_THRESHOLD. A call that reads and writes this much has such pieces.
_LARGE_BYTES = 256 << 20


def likely_causes(result: RunFinished, device: Device | TorchCard | None) -> Iterator[str]:
    """Yield the likely causes of a low share, the most likely first."""
    limit = _limit(result)
    if limit is not Limit.LINK:
        # Neither heat nor other programs explain a call with next to no work.
        yield from _asking(result)
    if result.conditions.throttled:
        yield "The card slowed itself down: it was too hot, or its power supply is too weak."
    elif result.conditions.power_capped:
        yield "The card was at its power limit, as most cards are under load."
    if is_cpu(result.device) and result.dtype in _SLOW_ON_CPUS and limit is not Limit.LINK:
        yield (
            f"Many CPUs have no instructions for {result.dtype}, and compute it slowly: compare it "
            "with float32."
        )
    if result.conditions.other_processes:
        yield "Other programs used the same device."
    yield from _other_parts(result)
    if limit is Limit.LINK or result.transfers:
        yield from _narrow_link(device)
    if limit is Limit.LINK:
        if result.options.get("memory") != "pinned":
            yield (
                "Ordinary (pageable) memory is copied twice on its way to or from a card; pinned "
                "memory is not."
            )
        yield from _asking(result)
    if not is_cpu(result.device):
        if limit is Limit.ARITHMETIC:
            yield from _slow_dtype(result.dtype, device)
    elif limit is Limit.MEMORY and result.details.bytes_per_call >= _LARGE_BYTES:
        yield (
            "PyTorch may request new memory from the system for each large result, and the system "
            "clears every page of it first."
        )


def _other_parts(result: RunFinished) -> Iterator[str]:
    """Yield the longest part of a call, if that is feeding the device."""
    whole_s = sum(result.details.parts_s.values())
    for name in ("loading", "copying"):
        share = result.details.parts_s.get(name, 0.0) / whole_s if whole_s else 0.0
        if share > 0.5:
            yield f"{format_percent(share)} of a call is {name}, while the device waits."


def _asking(result: RunFinished) -> Iterator[str]:
    if is_cpu(result.device):
        if result.median_s < _SHORT_ON_CPU_S:
            yield (
                f"A call of {format_duration(result.median_s)} is mostly overhead. A larger "
                "size shows the CPU's real speed."
            )
        return
    launch_s = result.details.parts_s.get("launch", 0.0)
    if launch_s > result.median_s / 2:
        yield (
            f"The launch takes {format_duration(launch_s)} of "
            f"{format_duration(result.median_s)}: the work is too small for the card."
        )
    elif result.median_s < _SHORT_ON_CARD_S:
        yield (
            f"A call of {format_duration(result.median_s)} is mostly overhead: the work is too "
            "small for the card."
        )


def _narrow_link(device: Device | TorchCard | None) -> Iterator[str]:
    if not isinstance(device, Device) or not device.pcie_width_max:
        return
    now, most = device.telemetry.pcie_width, device.pcie_width_max
    if now and now < most:
        yield f"The PCIe link uses {now} of its {most} lanes: try another slot."
    elif most <= _FEW_LANES:
        yield f"The card has only {most} PCIe lanes by design."


def _slow_dtype(dtype: str, device: Device | TorchCard | None) -> Iterator[str]:
    peaks = peaks_of(device, None) if device else None
    if device is None or peaks is None or device.compute_capability is None:
        return
    usual, ours = peaks.arithmetic_flops.get("float32"), peaks.best_flops(dtype)
    if usual and ours and ours < usual:
        yield (
            f"{dtype} with compute capability {device.compute_capability} runs at "
            f"1/{usual / ours:.0f} of float32: use float32 here."
        )


class Handicap(msgspec.Struct, frozen=True):
    """A reason why PyTorch stays below the peak of a card, and the share that it reaches then."""

    usual_share: float
    reason: str


_MINING_CARD = re.compile(r"\bCMP \d+HX\b")
_MINING = Handicap(
    0.0, "NVIDIA slows down the arithmetic of this mining card; its memory has full speed."
)
# T4 float16: 24 of 65 TFLOPS at 70 W (forums.developer.nvidia.com/t/264462). The others also have
# few watts for their peak: a PCIe card has half of what the same chip has in a server's socket.
_LOW_POWER_CARD = re.compile(
    r"Laptop|Max-Q|Mobile|\bSFF\b|PCIe|\bMX\d{3}|\d{3}MX?\b"
    r"|\b(T4G?|L4|A2|A10|A16|P4|M4|T\d{3,4}|(RTX )?A(400|1000|2000))\b|RTX (2000|4000 SFF) Ada"
)
_LOW_POWER = Handicap(0.5, "The power limit of such a card keeps its clock below the highest one.")
# The boost clock, which the makers' figures are for, is 70 to 100 % of the highest clock that a
# driver reports (`tests/core/benchmark/published_cards.py`): 60 % of such a figure are 42 % here.
_BELOW_HIGHEST_CLOCK = Handicap(
    0.82,
    "This peak is for the highest clock that the driver reports; under load, few cards hold it.",
)
# Measured with torch.matmul (zzc0721/torch-performance-test-data): GTX 1660 Ti, GTX 1650 Ti and
# MX450 6 % in float16, P100 45 %. pytorch#195716 and #121957 report the first.
_SLOW_FLOAT16 = Handicap(
    0.06, "Without tensor cores, float16 in PyTorch is slow on this chip: use float32 here."
)
_FLOAT32_SUMS = Handicap(
    0.5,
    "PyTorch adds float16 products up in float32, so float16 without tensor cores is no faster "
    "than float32.",
)
_EMULATED_SHARE = 0.1  # of float32's peak: T4 and GTX 1660 Ti reach a quarter to a half


def handicap_of(result: RunFinished, device: Device | TorchCard | None) -> Handicap | None:
    """Return why a card is usually far below its peak arithmetic in a result's dtype, or None.

    Args:
        result: its dtype and the name of its card.
        device: the card's facts; without them only its name decides.
    """
    if is_cpu(result.device) or _limit(result) is not Limit.ARITHMETIC:
        return None
    name = device.name if device else result.device_name
    if _MINING_CARD.search(name):
        return _MINING
    computed_in = result.conditions.computed_in or result.dtype
    of_dtype = _dtype_handicap(computed_in, device) if device else None
    if of_dtype is not None:
        return of_dtype
    is_low_power = bool(_LOW_POWER_CARD.search(name) or result.conditions.power_capped)
    if result.conditions.throttled:
        return None
    return _LOW_POWER if is_low_power else _BELOW_HIGHEST_CLOCK


def _dtype_handicap(dtype: str, device: Device | TorchCard) -> Handicap | None:
    """Return why a 16-bit dtype is slow on a card without tensor cores for it."""
    peaks = peaks_of(device, None)
    if (
        peaks is None
        or device.compute_capability is None
        or dtype not in ("float16", "bfloat16")
        or dtype in peaks.tensor_core_flops
    ):
        return None
    capability = device.compute_capability
    usual, ours = peaks.arithmetic_flops.get("float32"), peaks.arithmetic_flops.get(dtype)
    if ours is None and version_numbers(capability) < (8, 0):
        faster = "float32 or float16" if "float16" in peaks.tensor_core_flops else "float32"
        reason = f"Compute capability {capability} has no arithmetic for {dtype}"
        return Handicap(_EMULATED_SHARE, f"{reason}, which is emulated: use {faster} here.")
    if dtype == "bfloat16" or not ours or not usual:
        return None
    if ours < usual:
        reason = f"float16 with compute capability {capability} runs at 1/{usual / ours:.0f}"
        return Handicap(ours / usual, f"{reason} of float32: use float32 here.")
    return _SLOW_FLOAT16 if capability == "7.5" else _FLOAT32_SUMS


NORMAL_FROM = 0.5  # of a ceiling that nothing reaches completely
ABOVE_FROM = 1.05
_LEAST_SHOWN = 0.001


def is_this_normal(result: RunFinished, device: Device | TorchCard | None = None) -> str:
    """Return how close a result came to its device's ceiling and, if far, the likely cause.

    Empty if its ceiling is unknown.

    Args:
        result: with what it ``reached``.
        device: the card of the run, for causes that only its facts reveal.
    """
    if result.reached is None:
        return ""
    share, of_ceiling = result.reached.share, f"this {_noun(result)}'s {result.reached.ceiling}"
    if stays_in_cache(result):
        return (
            f"Faster than {of_ceiling}: the operands stay in a cache. "
            "A larger size measures the memory itself."
        )
    if share > ABOVE_FROM:
        return f"Cannot compare with {of_ceiling}: {_above(result)}."
    text = f"{_percent(share)} of {of_ceiling}"
    if share >= NORMAL_FROM and is_cpu(result.device) and result.conditions.other_processes:
        return f"{text}. Other programs kept the CPU busy, so its real peak may be higher."
    if share >= NORMAL_FROM:
        return f"{text}: normal."
    if _is_asking_alone(result):
        return f"{text}: as expected. There is next to no work in it; it measures overhead."
    handicap = handicap_of(result, device)
    if handicap is not None and share >= NORMAL_FROM * handicap.usual_share:
        return f"{text}: normal here. {handicap.reason}"
    cause = next(likely_causes(result, device), "")
    return f"{text}: low. {cause or 'The measurement shows no cause.'}"


def stays_in_cache(result: RunFinished) -> bool:
    """Return whether a result beats its device's memory, which only a cache can do."""
    share = _share(result)
    return share is not None and share > ABOVE_FROM and _limit(result) is Limit.MEMORY


def believed_share(result: RunFinished) -> float | None:
    """Return a result's share of its ceiling; None if it is unknown or above 105 %.

    Calls that do next to nothing have no ceiling. A share above the ceiling means that the ceiling
    is wrong, not that the result is good.
    """
    share = _share(result)
    if share is None or share > ABOVE_FROM or _is_asking_alone(result):
        return None
    return share


def share_text(result: RunFinished) -> str:
    """Return a result's share for a table: ``74 %``, or ``cached``; empty if it is not credible.

    How far a cache beats the memory depends on its contents, and says nothing about the device.
    """
    if stays_in_cache(result):
        return "cached"
    share = believed_share(result)
    return "" if share is None else _percent(share)


def _percent(share: float) -> str:
    """Return a share in words; a share that rounds to zero is shown as below the smallest one."""
    return (
        f"< {format_percent(_LEAST_SHOWN)}" if 0 < share < _LEAST_SHOWN else format_percent(share)
    )


def is_worth_a_line(result: RunFinished) -> bool:
    """Return whether a share is neither normal nor a cache's, so that its cause should be shown."""
    share = _share(result)
    is_normal = share is None or NORMAL_FROM <= share <= ABOVE_FROM
    return not (is_normal or stays_in_cache(result) or _is_asking_alone(result))


def _share(result: RunFinished) -> float | None:
    return result.reached.share if result.reached else None


def _limit(result: RunFinished) -> Limit | None:
    return result.reached.limit if result.reached else None


def _is_asking_alone(result: RunFinished) -> bool:
    """Return whether the result counts only calls, so that a larger size would change nothing."""
    return result.throughput_unit == CALLS_PER_S


def _above(result: RunFinished) -> str:
    if is_cpu(result.device):
        return "the result is faster, so something disturbed the peak's measurement"
    return "the result is faster, so a reported clock is too low or work was skipped"


def _noun(result: RunFinished) -> str:
    return "CPU" if is_cpu(result.device) else "card"
