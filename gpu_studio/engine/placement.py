"""Moving a model between devices, with every tensor's place and the proof that nothing changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import DeviceUsed, Event, PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.engine.device import (
    card_name,
    cuda_state,
    prove_kernels,
    start_cuda,
    synchronize,
    uuid_of,
)
from gpu_studio.engine.device import resolve as resolve_device
from gpu_studio.engine.models import BuiltInModel, find_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn


def use_device(cuda_index: int) -> DeviceUsed:
    """Make a card the current one of this process.

    Raises:
        StudioError: no CUDA, or no such card; the sentence has the valid range.
    """
    available, reason = cuda_state()
    if not available:
        raise StudioError(FailureKind.NO_CUDA, f"CUDA is not available: {reason}")
    count = torch.cuda.device_count()
    if not 0 <= cuda_index < count:
        there_are = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise StudioError(
            FailureKind.NO_SUCH_DEVICE,
            f"cuda:{cuda_index} is not there: this PC has {there_are}.",
        )
    start_cuda()
    device = torch.device("cuda", cuda_index)
    torch.cuda.set_device(device)
    return DeviceUsed(
        cuda_index=cuda_index,
        name=card_name(device),
        uuid=uuid_of(device),
        snippet=_USE_SNIPPET.format(index=cuda_index),
    )


class Placement:
    """The model that was placed last. It stays where it is, so that the next move starts there."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._model: nn.Module | None = None
        self._input: torch.Tensor | None = None

    def place(self, request: PlaceModel) -> Iterator[Event]:
        """Move a model and yield a row a tensor, then the result.

        Raises:
            StudioError: no such model or device.
        """
        built_in = find_model(request.model)
        device = resolve_device(request.device)
        model, example = self._take(built_in)
        # This also makes a card's context, which takes long and is no part of the move.
        prove_kernels(device)
        before = _places(model)
        output_before = _output(model, example).cpu()
        allocated_before = _allocated_bytes(device)
        elapsed_s = _move(model, device)
        allocated_after = _allocated_bytes(device)
        rows = [_row(name, kind, tensor, before[name]) for name, kind, tensor in _tensors(model)]
        yield from rows
        output_after = _output(model, example)
        difference = float((output_before - output_after.cpu()).abs().max())
        tolerance = built_in.tolerance(output_before)
        moved = [row for row in rows if row.device_before != row.device_after]
        # Kept only now: a model that stopped half-way belongs nowhere.
        self._name, self._model, self._input = request.model, model, example
        yield PlaceFinished(
            model=request.model,
            device=request.device,
            tensors=len(rows),
            moved_bytes=sum(row.bytes for row in moved),
            elapsed_s=elapsed_s,
            same_output=difference <= tolerance,  # false for NaN
            largest_difference=difference if difference == difference else None,
            tolerance=tolerance,
            input_shape=tuple(example.shape),
            output_device=str(output_after.device),
            allocated_delta_bytes=(
                None
                if allocated_before is None or allocated_after is None
                else allocated_after - allocated_before
            ),
            snippet=_PLACE_SNIPPET.format(
                code=built_in.code, device=request.device, shape=built_in.input_shape
            ),
        )

    def _take(self, built_in: BuiltInModel) -> tuple[nn.Module, torch.Tensor]:
        """Return the model from where it was placed, or a new one on the CPU."""
        name, model, example = self._name, self._model, self._input
        self._name = self._model = self._input = None
        if name == built_in.description.name and model is not None and example is not None:
            return model, example
        return built_in.build()


def _tensors(model: nn.Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    for name, parameter in model.named_parameters():
        yield name, "parameter", parameter
    for name, buffer in model.named_buffers():
        yield name, "buffer", buffer


def _places(model: nn.Module) -> dict[str, str]:
    return {name: str(tensor.device) for name, _, tensor in _tensors(model)}


def _row(name: str, kind: str, tensor: torch.Tensor, device_before: str) -> PlaceRow:
    return PlaceRow(
        name=name,
        kind=kind,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        bytes=tensor.numel() * tensor.element_size(),
        device_before=device_before,
        device_after=str(tensor.device),
    )


def _move(model: nn.Module, device: torch.device) -> float:
    """Move a model; return the seconds until the last byte has arrived."""
    source = next(model.parameters()).device
    synchronize(source)
    synchronize(device)
    start_s = time.perf_counter()
    model.to(device)
    synchronize(source)
    synchronize(device)
    return time.perf_counter() - start_s


def _output(model: nn.Module, example: torch.Tensor) -> torch.Tensor:
    """Return the model's output for the input, computed where the model is.

    cuDNN may round float32 convolutions to TF32 by default, which is a choice of speed and would
    hide what a wrong move does; without it they are computed in float32.
    """
    device = next(model.parameters()).device
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=False):
        output: torch.Tensor = model(example.to(device))
    return output


def _allocated_bytes(device: torch.device) -> int | None:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else None


_USE_SNIPPET = """\
import torch

torch.cuda.set_device({index})
print("now in use:", torch.cuda.current_device(), torch.cuda.get_device_name())
"""

_PLACE_SNIPPET = """\
import torch

model = {code}
x = torch.randn{shape}

model = model.to("{device}")
x = x.to("{device}")
y = model(x)
print(y.shape, y.device)
"""
