"""Why a result is far below what its device can do: the likely causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.ceilings import Limit, limit_of
from gpu_studio.core.pc.silicon_facts import peaks_of
from gpu_studio.core.units import format_duration, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.core.pc.devices import Device

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
        yield "The card slowed itself down: it was too hot, or at its power limit."
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
            f"Compute capability {capability} has no arithmetic for {dtype}: PyTorch converts to "
            "float32 and back."
        )
    elif usual and fastest < usual:
        yield (
            f"{dtype} of compute capability {capability} runs at 1/{usual / fastest:.0f} of "
            "float32: use float32 here."
        )
