"""The first numbers of a PC without PyTorch: the CPU against its cards within seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import CPU
from gpu_studio.core.devices.adapters import usual_adapters
from gpu_studio.core.messages.run_messages import RunWorkload

if TYPE_CHECKING:
    from gpu_studio.core.messages.engine_messages import EngineDescribed

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
        RunWorkload(
            run_id=f"{workload}-{device}",
            workload=workload,
            device=device,
            size=large if is_of_cards or not adapters else small,
            dtype="float32",
            budget_s=_BUDGET_S,
        )
        for workload, (large, small) in _SIZES.items()
        for device in devices
    ]
