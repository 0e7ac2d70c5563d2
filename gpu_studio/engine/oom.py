"""Breaking memory on purpose: a real out-of-memory error that leaves the card usable.

``set_per_process_memory_fraction`` makes PyTorch's allocator refuse beyond a budget, with the same
error as for a full card, also where the driver would quietly continue in the PC's memory (Windows,
"CUDA - Sysmem Fallback Policy").
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.oom_text import is_out_of_memory, read_oom_text
from gpu_studio.core.protocol import BreakMemory, Event, MemoryRead, OomFinished
from gpu_studio.core.sizes import ITEM_BYTES, LARGEST_SIZE
from gpu_studio.engine.admission import check_dtype
from gpu_studio.engine.device import resolve
from gpu_studio.engine.memory import read_memory

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

_READ_PERIOD_S = 1 / 60
# Allocating takes microseconds: spread out, so that a person can watch the card fill.
_FILLING_S = 2.0
_LONGEST_PAUSE_S = 0.25
_MOST_TENSORS = 1_000_000
# The driver gives whole pages of this size.
_SEGMENT_BYTES = 2 << 20


def break_memory(request: BreakMemory, stop: threading.Event) -> Iterator[Event]:
    """Allocate until all is there, memory ends or the user stops; free everything again.

    Raises:
        StudioError: the CPU, no such device, or numbers out of range.
    """
    _check_numbers(request)
    device = resolve(request.device)
    if device.type == "cpu":
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "This experiment asks PyTorch's allocator of a card, and the CPU has none: there the "
            "system gives memory until it ends a program.",
        )
    torch.empty(1, device=device)  # the context's own memory is no part of the experiment
    torch.cuda.empty_cache()
    total_bytes = torch.cuda.get_device_properties(device).total_memory
    limit_before = _limit_now(device)
    tensors: list[torch.Tensor] = []
    error_text, pause_s = "", _pause_s(request)
    try:
        # Half a byte more: PyTorch multiplies again and cuts to whole bytes.
        fraction = min(1.0, (request.budget_bytes + 0.5) / total_bytes)
        torch.cuda.set_per_process_memory_fraction(fraction, device)
        yield read_memory(device, "start")
        read_at_s = float("-inf")
        while len(tensors) < request.count and not stop.is_set():
            tensor = _allocate(request, device)
            if isinstance(tensor, str):
                error_text = tensor
                break
            tensors.append(tensor)
            del tensor
            if time.perf_counter() - read_at_s >= _READ_PERIOD_S:
                yield read_memory(device, "allocated")
                read_at_s = time.perf_counter()
            stop.wait(pause_s)
        at_end = read_memory(device, "oom" if error_text else "allocated")
        yield at_end
        outcome = _outcome(request, len(tensors), error_text, at_end)
        finished = _finished(request, outcome, len(tensors), error_text, at_end)
    finally:
        tensors.clear()
        torch.cuda.set_per_process_memory_fraction(limit_before, device)
    yield read_memory(device, "freed")
    yield finished


def _check_numbers(request: BreakMemory) -> None:
    check_dtype(request.dtype)
    for name, value, largest in (
        ("size", request.size, LARGEST_SIZE),
        ("count", request.count, _MOST_TENSORS),
        ("budget in bytes", request.budget_bytes, 1 << 50),
    ):
        if not 1 <= value <= largest:
            raise StudioError(
                FailureKind.BAD_REQUEST,
                f"The {name} {value} is out of range: give a whole number from 1 to {largest}.",
            )


def _limit_now(device: torch.device) -> float:
    """Return the share of the card that PyTorch may take; 2.6 does not tell what was set."""
    ask = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    return 1.0 if ask is None else float(ask(device))


def _pause_s(request: BreakMemory) -> float:
    """Return how long to wait after each tensor; many small ones need no slowing down."""
    size_bytes = request.size**2 * ITEM_BYTES[request.dtype]
    expected = max(1, min(request.count, request.budget_bytes // size_bytes))
    return min(_FILLING_S / expected, _LONGEST_PAUSE_S) if expected <= 1000 else 0.0


def _allocate(request: BreakMemory, device: torch.device) -> torch.Tensor | str:
    """Return a new tensor, or the text of the error that memory ended with.

    The error itself does not leave this function: it would keep frames and their tensors alive.
    No kernel runs, so that this works on a card that PyTorch has no code for.
    """
    dtype = getattr(torch, request.dtype)
    try:
        return torch.empty(request.size, request.size, dtype=dtype, device=device)
    except RuntimeError as error:  # OutOfMemoryError is one, and NVML's assertion another
        if isinstance(error, torch.OutOfMemoryError) or is_out_of_memory(str(error)):
            return str(error)
        raise


def _outcome(request: BreakMemory, tensors: int, error_text: str, at_end: MemoryRead) -> str:
    """Return why it ended; the card is full when the driver has not enough left, too."""
    if not error_text:
        return "fits" if tensors == request.count else "stopped"
    free_bytes = at_end.free_bytes or 0
    is_full = free_bytes < _segment_bytes(request.size**2 * ITEM_BYTES[request.dtype])
    return "card_full" if is_full else "over_budget"


def _segment_bytes(size_bytes: int) -> int:
    """Return what the allocator asks the driver for (CUDACachingAllocator, allocation size)."""
    if size_bytes <= 1 << 20:
        return _SEGMENT_BYTES
    if size_bytes < 10 << 20:
        return 20 << 20
    return -(-size_bytes // _SEGMENT_BYTES) * _SEGMENT_BYTES


def _finished(
    request: BreakMemory, outcome: str, tensors: int, error_text: str, at_end: MemoryRead
) -> OomFinished:
    numbers = read_oom_text(error_text)
    return OomFinished(
        device=request.device,
        outcome=outcome,
        tensors=tensors,
        tensor_bytes=request.size**2 * ITEM_BYTES[request.dtype],
        allocated_bytes=at_end.allocated_bytes,
        reserved_bytes=at_end.reserved_bytes,
        tried_bytes=numbers.tried_bytes,
        free_bytes=numbers.free_bytes,
        total_bytes=numbers.total_bytes,
        limit_bytes=numbers.limit_bytes,
        unallocated_bytes=numbers.unallocated_bytes,
        error_text=error_text,
        snippet=_SNIPPET.format(
            device=request.device,
            budget_bytes=request.budget_bytes,
            count=request.count,
            size=request.size,
            dtype=request.dtype,
        ),
    )


_SNIPPET = """\
import torch

device = "{device}"
total_bytes = torch.cuda.get_device_properties(device).total_memory
fraction = min(1.0, ({budget_bytes} + 0.5) / total_bytes)  # cut to whole bytes again inside
torch.cuda.set_per_process_memory_fraction(fraction, device)

tensors = []
try:
    for _ in range({count}):
        tensors.append(torch.empty({size}, {size}, dtype=torch.{dtype}, device=device))
except torch.OutOfMemoryError as error:
    print(error)
print(len(tensors), "tensors fit")
print(torch.cuda.memory_allocated(device), "bytes allocated")
"""
