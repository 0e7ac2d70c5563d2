"""What a device can do at most, and a result as a share of it.

Of a card the ceilings follow from its processors, clocks and bus (`peaks`); of a CPU they are what
an engine measured: how fast it copies memory, and how fast it multiplies large matrices.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.facts import peaks_of
from gpu_studio.core.devices.link import link_bytes_per_s
from gpu_studio.core.units import format_duration, format_percent, format_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.peaks import CardPeaks
    from gpu_studio.core.messages.run_messages import RunFinished


CALLS_PER_S = "calls/s"
"""The throughput's unit of a workload that does as good as nothing but ask."""


class Limit(str, Enum):
    """What holds a call back at the very best."""

    ARITHMETIC = "arithmetic"
    MEMORY = "memory"
    LINK = "link"


_WORDS = {
    Limit.ARITHMETIC: "peak arithmetic",
    Limit.MEMORY: "memory bandwidth",
    Limit.LINK: "PCIe link",
}


class MeasuredCeilings(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine found its CPU to reach; None or missing where it has not measured it.

    ``copy_bytes_per_s`` counts the bytes read and those written of a copy that fits no cache,
    ``matmul_flops`` the operations a second of a large matrix product by dtype.
    """

    copy_bytes_per_s: float | None = None
    matmul_flops: dict[str, float] = msgspec.field(default_factory=dict)


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """What a device can do at most in one dtype; None where it is not known.

    ``arithmetic_flops`` are operations a second, ``memory_bytes_per_s`` bytes read and written,
    ``link_bytes_per_s`` bytes one way between a card and the PC.
    """

    arithmetic_flops: float | None = None
    memory_bytes_per_s: float | None = None
    link_bytes_per_s: float | None = None

    def peak(self, limit: Limit) -> float | None:
        """Return one of the three."""
        return {
            Limit.ARITHMETIC: self.arithmetic_flops,
            Limit.MEMORY: self.memory_bytes_per_s,
            Limit.LINK: self.link_bytes_per_s,
        }[limit]


class CeilingShare(msgspec.Struct, frozen=True):
    """How near a call came to what its device can do.

    ``share`` is the shortest time that the ceilings allow over the time it took; ``limit`` is the
    ceiling that allows no shorter one, ``ceiling`` names it: ``memory bandwidth, 48.1 GB/s``.
    """

    share: float
    limit: Limit
    ceiling: str


def cpu_ceilings(measured: MeasuredCeilings, dtype: str) -> Ceilings:
    """Return the ceilings of a CPU in a dtype."""
    return Ceilings(
        arithmetic_flops=measured.matmul_flops.get(dtype),
        memory_bytes_per_s=measured.copy_bytes_per_s,
    )


def card_ceilings(
    peaks: CardPeaks,
    dtype: str,
    *,
    tf32: bool = False,
    link: tuple[int | None, int | None] = (None, None),
) -> Ceilings:
    """Return the ceilings of a card in a dtype.

    Args:
        peaks: what it can do at its highest clocks.
        dtype: PyTorch's name.
        tf32: whether float32 matrices may be multiplied in TF32.
        link: generation and width of its PCIe link under load.
    """
    return Ceilings(
        arithmetic_flops=peaks.best_flops(dtype, tf32=tf32),
        memory_bytes_per_s=peaks.memory_bytes_per_s,
        link_bytes_per_s=link_bytes_per_s(*link),
    )


def shortest_s(
    ceilings: Ceilings,
    *,
    operations: float = 0.0,
    bytes_moved: float = 0.0,
    link_bytes: float = 0.0,
) -> dict[Limit, float]:
    """Return the shortest time that each known ceiling allows for some work, in seconds.

    Args:
        ceilings: of the device, in the dtype of the work.
        operations: what is computed.
        bytes_moved: what is read and written in the device's memory.
        link_bytes: what is sent over PCIe, the busier way.
    """
    amounts = {
        Limit.ARITHMETIC: operations,
        Limit.MEMORY: bytes_moved,
        Limit.LINK: link_bytes,
    }
    return {
        limit: amount / peak
        for limit, amount in amounts.items()
        if amount and (peak := ceilings.peak(limit))
    }


def share_of_ceiling(
    ceilings: Ceilings,
    median_s: float,
    *,
    operations: float = 0.0,
    bytes_moved: float = 0.0,
    link_bytes: float = 0.0,
) -> CeilingShare | None:
    """Return how near a call came to its ceiling; None where none that it needs is known.

    Args:
        ceilings: of the device, in the dtype of the work.
        median_s: what the call took.
        operations: what it computed.
        bytes_moved: what it read and wrote in the device's memory.
        link_bytes: what it sent over PCIe, the busier way.
    """
    least_s = shortest_s(
        ceilings, operations=operations, bytes_moved=bytes_moved, link_bytes=link_bytes
    )
    if not least_s or median_s <= 0:
        return None
    limit = max(least_s, key=lambda one: least_s[one])
    unit = "FLOP/s" if limit is Limit.ARITHMETIC else "B/s"
    peak_text = format_rate(ceilings.peak(limit) or 0.0, unit)
    return CeilingShare(least_s[limit] / median_s, limit, f"{_WORDS[limit]}, {peak_text}")


def limit_of(ceiling: str) -> Limit | None:
    """Return which limit a result's ``ceiling`` names; None for another text."""
    return next((limit for limit, words in _WORDS.items() if ceiling.startswith(words)), None)


# A call this short is mostly the asking: a launch takes some microseconds (`launch` measures it).
_SHORT_S = {"cpu": 20e-6, "cuda": 60e-6}
_FEW_LANES = 8
# glibc keeps freed memory up to 32 MiB a piece and gives larger ones back: mallopt(3),
# M_MMAP_THRESHOLD. A call that reads and writes this much has such pieces.
_LARGE_BYTES = 256 << 20


def likely_causes(result: RunFinished, device: Device | None) -> Iterator[str]:
    """Yield likely causes of a low share, the likeliest first."""
    limit = limit_of(result.ceiling)
    if limit is not Limit.LINK:
        # Neither heat nor a neighbour explains a call that asks for next to no work.
        yield from _asking(result)
    if result.throttled:
        yield "The card slowed itself down: it was too hot, or its power supply was too weak."
    elif result.power_capped:
        yield "The card was at its power limit, as most cards are under load."
    if result.other_processes:
        yield "Other programs used the same device."
    yield from _other_parts(result)
    if limit is Limit.LINK or result.transfers:
        yield from _narrow_link(device)
    if limit is Limit.LINK:
        if result.options.get("memory") != "pinned":
            yield (
                "Ordinary (pageable) memory is copied twice on its way to a card or back; pinned "
                "memory is not."
            )
        yield from _asking(result)
    if result.device != "cpu":
        if limit is Limit.ARITHMETIC:
            yield from _slow_dtype(result.dtype, device)
    elif limit is Limit.MEMORY and result.bytes_per_call >= _LARGE_BYTES:
        yield (
            "PyTorch may ask the system for each large result anew, which clears every page of "
            "it first."
        )


def _other_parts(result: RunFinished) -> Iterator[str]:
    """Yield what a call does for most of its time, where that is feeding the device."""
    whole_s = sum(result.parts_s.values())
    for name in ("loading", "copying"):
        share = result.parts_s.get(name, 0.0) / whole_s if whole_s else 0.0
        if share > 0.5:
            yield f"{format_percent(share)} of a call is {name}, while the device waits."


def _asking(result: RunFinished) -> Iterator[str]:
    if result.device == "cpu":
        if result.median_s < _SHORT_S["cpu"]:
            yield (
                f"A call of {format_duration(result.median_s)} is mostly the asking: a larger "
                "size shows what the CPU can do."
            )
        return
    launch_s = result.parts_s.get("launch", 0.0)
    if launch_s > result.median_s / 2:
        yield (
            f"Asking the card takes {format_duration(launch_s)} of "
            f"{format_duration(result.median_s)}: the work is too small for it."
        )
    elif result.median_s < _SHORT_S["cuda"]:
        yield (
            f"A call of {format_duration(result.median_s)} is mostly the asking: the work is too "
            "small for the card."
        )


def _narrow_link(device: Device | None) -> Iterator[str]:
    if device is None or not device.pcie_width_max:
        return
    now, most = device.telemetry.pcie_width, device.pcie_width_max
    if now and now < most:
        yield f"The PCIe link runs with {now} of its {most} lanes: try another slot."
    elif most <= _FEW_LANES:
        yield f"The card is connected by {most} lanes of PCIe alone, which is how it is made."


def _slow_dtype(dtype: str, device: Device | None) -> Iterator[str]:
    peaks = peaks_of(device, None) if device else None
    if device is None or peaks is None:
        return
    usual, ours = peaks.arithmetic_flops.get("float32"), peaks.arithmetic_flops.get(dtype)
    fastest = max(ours or 0.0, peaks.tensor_core_flops.get(dtype, 0.0))
    capability = device.compute_capability
    if not fastest:
        yield (
            f"Compute capability {capability} has no arithmetic for {dtype}, which is emulated: "
            "use float32 or float16 here."
        )
    elif usual and fastest < usual:
        yield (
            f"{dtype} of compute capability {capability} runs at 1/{usual / fastest:.0f} of "
            "float32: use float32 here."
        )


NORMAL_FROM = 0.5  # of a ceiling that nothing reaches whole
ABOVE_FROM = 1.05
_LEAST_SHOWN = 0.001


def is_this_normal(result: RunFinished, device: Device | None = None) -> str:
    """Return how near a result came to its device's ceiling and, if not, the likely cause.

    Empty where its ceiling is not known.

    Args:
        result: with its ``share_of_ceiling``.
        device: the card it ran on, for what only its facts can tell.
    """
    share = result.share_of_ceiling
    if share is None:
        return ""
    if stays_in_cache(result):
        return (
            f"Faster than this {_noun(result)}'s {result.ceiling}: the operands stay in a cache. "
            "A larger size shows the memory itself."
        )
    if share > ABOVE_FROM:
        return f"No share of this {_noun(result)}'s {result.ceiling}: {_above(result)}."
    text = f"{_percent(share)} of this {_noun(result)}'s {result.ceiling}"
    if share >= NORMAL_FROM:
        return f"{text}: normal."
    if _is_asking_alone(result):
        return f"{text}: as it should be. There is next to no work in it: what is timed is asking."
    cause = next(likely_causes(result, device), "")
    return f"{text}: low. {cause or 'No cause can be seen in what was measured.'}"


def stays_in_cache(result: RunFinished) -> bool:
    """Return whether a result is faster than its device's memory, which only a cache can be."""
    share = result.share_of_ceiling
    return share is not None and share > ABOVE_FROM and limit_of(result.ceiling) is Limit.MEMORY


def believed_share(result: RunFinished) -> float | None:
    """Return a result's share of its ceiling; None where none is known, or above 105 %.

    A share above its ceiling says that the ceiling is wrong, not that the result is good.
    """
    share = result.share_of_ceiling
    return share if share is not None and share <= ABOVE_FROM else None


def share_text(result: RunFinished) -> str:
    """Return a result's share for a table: ``74 %``, or ``cached``; empty where none is believed.

    How often a cache beats the memory depends on what is in it and says nothing about the device.
    """
    if stays_in_cache(result):
        return "cached"
    share = believed_share(result)
    return "" if share is None else _percent(share)


def _percent(share: float) -> str:
    """Return a share; one that would be rounded to nothing is told to be something."""
    return (
        f"< {format_percent(_LEAST_SHOWN)}" if 0 < share < _LEAST_SHOWN else format_percent(share)
    )


def is_worth_a_line(result: RunFinished) -> bool:
    """Return whether a share needs its likely cause told, being neither normal nor a cache's."""
    share = result.share_of_ceiling
    is_normal = share is None or NORMAL_FROM <= share <= ABOVE_FROM
    return not (is_normal or stays_in_cache(result) or _is_asking_alone(result))


def _is_asking_alone(result: RunFinished) -> bool:
    """Return whether calls are all that is counted: no larger size would come nearer a ceiling."""
    return result.throughput_unit == CALLS_PER_S


def _above(result: RunFinished) -> str:
    if result.device == "cpu":
        return "the result is faster, so the measurement of the peak was disturbed"
    return "the result is faster, so a clock is told too low or work was left out"


def _noun(result: RunFinished) -> str:
    return "CPU" if result.device == "cpu" else "card"
