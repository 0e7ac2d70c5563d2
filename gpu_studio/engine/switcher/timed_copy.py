"""Copying a tensor to a device, and the time of the copy alone.

A move with `Tensor.to` also reads the file that a tensor is mapped from, converts its type and asks
the driver for memory (cudaMalloc, which takes longer than copying a few megabytes). None of it
crosses the PCIe link, so all of it is done before the clock starts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.engine.device import synchronize

if TYPE_CHECKING:
    from collections.abc import Callable


class TimedCopy:
    """Copies tensors to a device one after the other, and adds up how long the copies took.

    Args:
        device: the target device.
        dtype: the type that floating-point tensors become; None leaves it.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype | None = None) -> None:
        self._device, self.dtype = device, dtype
        self.elapsed_s = 0.0

    def __call__(self, tensor: torch.Tensor, *, reads_file: bool = False) -> torch.Tensor:
        """Return a tensor on the device; one that is there already is no copy.

        Args:
            tensor: on any device.
            reads_file: whether it may be mapped from a file that is not read yet.
        """
        converts = self.dtype is not None and tensor.is_floating_point()
        source = tensor.to(self.dtype) if converts else tensor
        if source.device == self._device:
            return source
        if source.layout is not torch.strided:
            return self._moved(source)
        if reads_file and source is tensor and is_cpu(source.device.type):
            source = source.clone()
        target = torch.empty_like(source, device=self._device)
        if is_cpu(self._device.type):
            target.zero_()  # the system hands out memory when it is first touched
        self._copied(source, lambda: target.copy_(source))
        return target

    def _moved(self, source: torch.Tensor) -> torch.Tensor:
        """Move what has no plain memory to copy into, a sparse tensor; its memory counts."""
        return self._copied(source, lambda: source.to(self._device))

    def _copied(self, source: torch.Tensor, copy: Callable[[], torch.Tensor]) -> torch.Tensor:
        target, copy_s = timed(copy, source.device, self._device)
        self.elapsed_s += copy_s
        return target


def timed(make: Callable[[], torch.Tensor], *devices: torch.device) -> tuple[torch.Tensor, float]:
    """Return a tensor and the seconds until its devices are idle."""
    for device in devices:
        synchronize(device)
    start_s = time.perf_counter()
    tensor = make()
    for device in devices:
        synchronize(device)
    return tensor, time.perf_counter() - start_s
