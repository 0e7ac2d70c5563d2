"""Breaking memory on purpose: a real out-of-memory error that leaves the card usable.

``set_per_process_memory_fraction`` makes PyTorch's allocator refuse beyond a budget, with the same
error as for a full card, also where the driver would quietly continue in the PC's memory (Windows,
"CUDA - Sysmem Fallback Policy").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.memory_lab import check_experiment, run_experiment
from gpu_studio.engine.device import resolve
from gpu_studio.engine.memory.lab import CudaMemory

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpu_studio.core.protocol import Event, RunMemoryExperiment
    from gpu_studio.engine.sensor import Sensor


def run_on_card(
    request: RunMemoryExperiment, stop: threading.Event, sensor: Sensor | None = None
) -> Iterator[Event]:
    """Run an experiment on a card of this PC; its memory is freed before the last event.

    Args:
        request: which experiment.
        stop: set by any thread to end it between two allocations.
        sensor: tells what the driver counts for this process; None where nobody can.

    Raises:
        StudioError: the CPU, no such device, or numbers out of range.
    """
    check_experiment(request)
    device = resolve(request.device)
    if device.type == "cpu":
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "This experiment asks PyTorch's allocator of a card, and the CPU has none: there the "
            "system gives memory until it ends a program.",
        )
    yield from run_experiment(request, CudaMemory(device, sensor), stop)
