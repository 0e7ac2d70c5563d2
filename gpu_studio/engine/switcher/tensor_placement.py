"""Two ways of having a tensor on a device: made on the CPU and moved, or made there at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.placement_messages import PlaceTensors, TensorsPlaced
from gpu_studio.core.tensors import ITEM_BYTES, check_dtype, check_size
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import accelerator_of, free_bytes, prove_kernels, resolve
from gpu_studio.engine.switcher.placement import Place, row_of
from gpu_studio.engine.switcher.timed_copy import TimedCopy, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.message import Event


def place_tensors(request: PlaceTensors) -> Iterator[Event]:
    """Place both matrices, multiply them on the device, and yield a row for each and the times.

    Raises:
        StudioError: no such device or dtype, or no room.
    """
    check_dtype(request.dtype)
    device = resolve(request.device)
    prove_kernels(device)
    _check_size(request, device)
    side, dtype = request.size, getattr(torch, request.dtype)
    # The first random numbers on a device start its generator, which is no part of making these.
    torch.rand(8, 8, device=device, dtype=dtype)
    before = _allocated(device)
    on_cpu, cpu_made_s = timed(lambda: torch.rand(side, side, dtype=dtype), device)
    moved, moved_s = _moved(on_cpu, device)
    # Asking the driver for memory is no part of making the other one there either.
    torch.empty(side, side, device=device, dtype=dtype)
    created, made_s = timed(lambda: torch.rand(side, side, device=device, dtype=dtype), device)
    after = _allocated(device)
    result = moved @ created
    for name, tensor, made_on in (
        ("x", moved, CPU),
        ("w", created, device),
        ("x @ w", result, device),
    ):
        yield row_of(name, "tensor", tensor, Place(str(made_on), request.dtype))
    yield TensorsPlaced(
        device=request.device,
        size=side,
        dtype=request.dtype,
        moved_bytes=moved.nbytes,
        cpu_made_s=cpu_made_s,
        moved_s=moved_s,
        made_s=made_s,
        same_values=torch.equal(moved.cpu(), on_cpu),
        result_device=str(result.device),
        allocated_delta_bytes=None if before is None or after is None else after - before,
        untested=untested_sentence(accelerator_of(device).maker),
        snippet=_SNIPPET.format(device=request.device, size=side, dtype=request.dtype),
    )


def _moved(on_cpu: torch.Tensor, device: torch.device) -> tuple[torch.Tensor, float]:
    """Return a copy on the device, and the seconds of the copy alone."""
    if is_cpu(device.type):
        return timed(on_cpu.clone, device)
    copy = TimedCopy(device)
    return copy(on_cpu), copy.elapsed_s


def _check_size(request: PlaceTensors, device: torch.device) -> None:
    """Raise `StudioError` for a size that is none, or that does not fit."""
    check_size(request.size)
    one_bytes = request.size**2 * ITEM_BYTES[request.dtype]
    for place, count in ((torch.device(CPU), 2), (device, 3)):
        available = free_bytes(place)
        if count * one_bytes > available:
            raise StudioError(
                FailureKind.TOO_LARGE,
                f"{count} such matrices need {format_bytes(count * one_bytes)}, "
                f"{format_bytes(available)} are free on {place}.",
            )


def _allocated(device: torch.device) -> int | None:
    return accelerator_of(device).allocated_bytes(device)


_SNIPPET = """\
import torch

device = torch.device("{device}")
x = torch.rand({size}, {size}, dtype=torch.{dtype})
print("made on", x.device)
x = x.to(device)
print("now on", x.device)

w = torch.rand({size}, {size}, dtype=torch.{dtype}, device=device)  # made there, no copy
y = x @ w
print("their product is on", y.device)
"""
