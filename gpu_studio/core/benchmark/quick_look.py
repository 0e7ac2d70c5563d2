"""The first numbers of a PC, with PyTorch and without: the CPU against its cards within seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import CPU
from gpu_studio.core.devices.adapters import usual_adapters
from gpu_studio.core.messages.run_messages import RunWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.engine_messages import EngineDescribed

FIRST_LOOK_SIZES, FIRST_LOOK_S = (128, 512, 2048), 0.5
_BUDGET_S = 0.4
# A card is busy for milliseconds with these; software on the CPU with the smaller ones.
_SIZES = {"matmul": (1024, 256), "copy": (64, 4)}


def quick_look(described: EngineDescribed) -> list[RunWorkload]:
    """Return the runs, those of one workload together: first what computes, then what copies.

    Args:
        described: an engine without PyTorch.
    """
    adapters = usual_adapters(described.adapters)
    is_of_cards = any(not one.is_software for one in adapters)
    devices = [CPU, *(one.address for one in adapters)]
    return [
        _request(workload, large if is_of_cards or not adapters else small, device, _BUDGET_S)
        for workload, (large, small) in _SIZES.items()
        for device in devices
    ]


def first_look(devices: Sequence[str]) -> list[RunWorkload]:
    """Return the runs of a PC with PyTorch: at three sizes, what moves memory and what computes."""
    return [
        _request(workload, size, device, FIRST_LOOK_S)
        for workload in ("elementwise", "matmul")
        for size in FIRST_LOOK_SIZES
        for device in devices
    ]


def _request(workload: str, size: int, device: str, timed_s: float) -> RunWorkload:
    return RunWorkload(
        run_id=f"{workload}-{size}-{device}",
        workload=workload,
        device=device,
        size=size,
        dtype="float32",
        budget_s=timed_s,
    )
