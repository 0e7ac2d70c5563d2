"""Moving a model or a file between devices: each tensor's place, and proof that nothing changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import DeviceUsed, Event, PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.core.tensors import check_dtype
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import (
    card_name,
    cuda_state,
    free_bytes,
    prove_kernels,
    start_cuda,
    synchronize,
    uuid_of,
)
from gpu_studio.engine.device import resolve as resolve_device
from gpu_studio.engine.switching.placed import Placed, placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    # Allocated, reserved, and taken on the card; None on the CPU.
    _Memory = tuple[int | None, int | None, int | None]


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
    """What was placed last. It stays where it is, so that the next move starts there."""

    def __init__(self) -> None:
        self._placed: Placed | None = None

    def place(self, request: PlaceModel) -> Iterator[Event]:
        """Move a model or a file's tensors; yield a row a tensor, then the result.

        Raises:
            StudioError: no such model, device or dtype, a file that is refused, or no room.
        """
        dtype = _dtype_of(request.dtype)
        device = resolve_device(request.device)
        thing = self._take(request)
        self._check(thing, device, dtype)
        before = {name: _Place.of(tensor) for name, _, tensor in thing.tensors()}
        thing.begin_proof()
        memory_before = _memory(device)
        elapsed_s = _move(thing, device, dtype)
        deltas = _differences(memory_before, _memory(device))
        rows = [_row(name, kind, tensor, before[name]) for name, kind, tensor in thing.tensors()]
        yield from rows
        proof = thing.end_proof()
        moved = [row for row in rows if row.device_before != row.device_after]
        # Kept only now: what stopped half-way belongs nowhere.
        self._placed = thing
        yield PlaceFinished(
            model=thing.title,
            device=request.device,
            tensors=len(rows),
            moved_bytes=sum(row.bytes for row in moved),
            elapsed_s=elapsed_s,
            same_output=proof.same,
            largest_difference=proof.largest_difference,
            tolerance=proof.tolerance,
            input_shape=thing.input_shape,
            output_device=proof.device,
            allocated_delta_bytes=deltas[0],
            reserved_delta_bytes=deltas[1],
            card_delta_bytes=deltas[2],
            proof=thing.proof,
            dtype=request.dtype,
            snippet=thing.snippet(request.device, request.dtype),
        )

    def _check(self, thing: Placed, device: torch.device, dtype: torch.dtype | None) -> None:
        """Raise `StudioError` where the device cannot take a thing, which stays where it was."""
        try:
            if thing.needs_kernels or dtype is not None:
                # This also makes a card's context, which takes long and is no part of the move.
                prove_kernels(device)
            _refuse_too_large(thing, device)
        except StudioError:
            self._placed = thing
            raise

    def _take(self, request: PlaceModel) -> Placed:
        """Return the thing from where it was placed, or a new one on the CPU.

        A file that was written meanwhile is opened again: what is mapped of it is no longer there.
        """
        thing, self._placed = self._placed, None
        is_same = thing is not None and thing.key == (request.model, request.path)
        if thing is not None and is_same and thing.is_current():
            return thing
        del thing
        return placed(request.model, request.path)


class _Place(NamedTuple):
    device: str
    dtype: str

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Place:
        return cls(str(tensor.device), str(tensor.dtype).removeprefix("torch."))


def _dtype_of(name: str) -> torch.dtype | None:
    if not name:
        return None
    check_dtype(name)
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _row(name: str, kind: str, tensor: torch.Tensor, before: _Place) -> PlaceRow:
    after = _Place.of(tensor)
    return PlaceRow(
        name=name,
        kind=kind,
        shape=tuple(tensor.shape),
        dtype=after.dtype,
        bytes=tensor.numel() * tensor.element_size(),
        device_before=before.device,
        device_after=after.device,
        dtype_before=before.dtype,
    )


def _refuse_too_large(thing: Placed, device: torch.device) -> None:
    """Raise `StudioError` for what the device has no room for."""
    needed = sum(
        tensor.numel() * tensor.element_size()
        for _, _, tensor in thing.tensors()
        if tensor.device != device
    )
    available = free_bytes(device) if needed else 0
    if needed > available:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"{thing.title[:60]} needs {format_bytes(needed)}, {format_bytes(available)} are free "
            f"on {device}.",
        )


def _move(thing: Placed, device: torch.device, dtype: torch.dtype | None) -> float:
    """Move a thing; return the seconds until the last byte has arrived."""
    sources = {tensor.device for _, _, tensor in thing.tensors()}
    for used in sources | {device}:
        synchronize(used)
    start_s = time.perf_counter()
    thing.move(device, dtype)
    for used in sources | {device}:
        synchronize(used)
    return time.perf_counter() - start_s


def _differences(before: _Memory, after: _Memory) -> list[int | None]:
    return [
        None if earlier is None or later is None else later - earlier
        for earlier, later in zip(before, after, strict=True)
    ]


def _memory(device: torch.device) -> _Memory:
    """Return allocated and reserved bytes of PyTorch, and what is taken on the card by all."""
    if device.type != "cuda":
        return None, None, None
    free, total = torch.cuda.mem_get_info(device)
    return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device), total - free


_USE_SNIPPET = """\
import torch

torch.cuda.set_device({index})
print("now in use:", torch.cuda.current_device(), torch.cuda.get_device_name())
"""
