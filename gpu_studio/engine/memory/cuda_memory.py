"""A real card for the memory lab: a real out-of-memory error that leaves the card usable.

``set_per_process_memory_fraction`` makes PyTorch's allocator refuse beyond a budget, with the same
error as on a full card. This also works if the driver would silently continue in the PC's memory
(Windows, "CUDA - Sysmem Fallback Policy").
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.experiment import run_experiment
from gpu_studio.core.memory.modelled_memory import budget_fraction
from gpu_studio.core.memory.presets import FULL, HELD
from gpu_studio.core.memory.segments import segments_read
from gpu_studio.core.messages.memory_messages import OomFinished
from gpu_studio.engine.device import accelerator_of, resolve, total_bytes, uuid_of
from gpu_studio.engine.memory.caching_allocator import read_memory

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpu_studio.core.messages.memory_messages import (
        MemoryRead,
        RunMemoryExperiment,
        SegmentsRead,
    )
    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.sensor import Sensor


def run_on_card(
    request: RunMemoryExperiment, stop: threading.Event, sensor: Sensor | None = None
) -> Iterator[Event]:
    """Run an experiment on a card of this PC; its memory is freed before the last event.

    Args:
        request: the experiment.
        stop: set by any thread to end the experiment between two allocations.
        sensor: reads the driver's count for this process; None if there is no sensor.

    Raises:
        StudioError: the device is the CPU or does not exist, or a number is out of range.
    """
    device = resolve(request.device)
    if is_cpu(device.type):
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "This experiment needs PyTorch's allocator on a card. The CPU has none: there, the "
            "system provides memory until it ends a program.",
        )
    card = accelerator_of(device)
    reason = card.lacks("segments")
    if not request.whole_card:
        reason = reason or card.lacks("memory limit")
    if reason:
        raise StudioError(FailureKind.BAD_REQUEST, reason)
    doubt = untested_sentence(card.maker)
    for event in run_experiment(request, CudaMemory(device, sensor), stop):
        if isinstance(event, OomFinished) and doubt:
            yield msgspec.structs.replace(event, explanation=f"{event.explanation} {doubt}")
        else:
            yield event


class CudaMemory:
    """Satisfies `core.memory.presets.LabCard` with a card of this PC.

    Args:
        device: the card.
        sensor: reads the driver's count for this process; None if there is no sensor.
    """

    is_modelled = False

    def __init__(self, device: torch.device, sensor: Sensor | None = None) -> None:
        self.device = str(device)
        self.conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        self._device = device
        self._card = accelerator_of(device)
        self._sensor = sensor
        self._limit_before = 1.0

    def prepare(self) -> None:
        """Create the context and empty the cache."""
        torch.empty(1, device=self._device)
        self._card.empty_cache()
        self._limit_before = self._card.limit_share(self._device)

    def empty(self, size_bytes: int) -> torch.Tensor:
        """Return a tensor. It runs no kernel, so it also works on a card without code."""
        return torch.empty(size_bytes, dtype=torch.uint8, device=self._device)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether this is an out-of-memory error, or NVML's assertion in its place."""
        return self._card.is_out_of_memory(error)

    def limit(self, budget_bytes: int | None) -> None:
        """Limit the reserved bytes; None restores the previous limit."""
        fraction = self._limit_before
        if budget_bytes is not None:
            fraction = budget_fraction(budget_bytes, total_bytes(self._device))
        self._card.set_limit_share(self._device, fraction)

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        """Return the counters; at an experiment's end, with the driver's count."""
        read = read_memory(self._device, mark, step=step)
        uuid = uuid_of(self._device) if self._sensor and mark in (FULL, HELD) else None
        if self._sensor is None or uuid is None:
            return read
        own = (one for one in self._sensor.processes(uuid) if one.pid == os.getpid())
        engine_bytes = next((one.memory_bytes for one in own), None)
        return msgspec.structs.replace(read, engine_bytes=engine_bytes)

    def segments(self, read: MemoryRead) -> SegmentsRead:
        return segments_read(read, self._card.segments(), self._device.index)
