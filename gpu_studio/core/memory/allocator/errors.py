"""The out-of-memory errors of PyTorch 2.13's CUDA allocator, word for word.

See malloc and alloc_block in c10/cuda/CUDACachingAllocator.cpp, format_size in
c10/core/Allocator.h. The sentences about processes ("this process has … memory in use") are left
out, as on Windows: they come from NVML, not from the allocator.
"""

from __future__ import annotations

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_HINT = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    "  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
    "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


class ModelledOutOfMemory(RuntimeError):  # noqa: N818 - the name that users of the model know
    """A failed allocation, with PyTorch's text and its exact numbers.

    Attributes:
        tried_bytes: the request to the driver, which is a segment; the original request if the
            driver was not asked; None beyond 1 EiB.
        total_bytes: the card's memory. None if the driver was not asked, like the following ones.
        free_bytes: the card's free memory.
        limit_bytes: this process's limit; None without a limit.
        allocated_bytes: held by tensors.
        unallocated_bytes: reserved by the allocator and held by no tensor.
    """

    def __init__(
        self,
        text: str,
        *,
        tried_bytes: int | None = None,
        total_bytes: int | None = None,
        free_bytes: int | None = None,
        limit_bytes: int | None = None,
        allocated_bytes: int | None = None,
        unallocated_bytes: int | None = None,
    ) -> None:
        super().__init__(text)
        self.tried_bytes = tried_bytes
        self.total_bytes = total_bytes
        self.free_bytes = free_bytes
        self.limit_bytes = limit_bytes
        self.allocated_bytes = allocated_bytes
        self.unallocated_bytes = unallocated_bytes


def card_full(
    *,
    tried_bytes: int,
    total_bytes: int,
    free_bytes: int,
    limit_bytes: int | None,
    allocated_bytes: int,
    reserved_bytes: int,
) -> ModelledOutOfMemory:
    """Return the error of a request that neither the cache nor the driver can serve."""
    unallocated_bytes = reserved_bytes - allocated_bytes
    limit = "" if limit_bytes is None else f"{format_size(limit_bytes)} allowed; "
    return ModelledOutOfMemory(
        f"CUDA out of memory. Tried to allocate {format_size(tried_bytes)}. "
        f"GPU 0 has a total capacity of {format_size(total_bytes)} "
        f"of which {format_size(free_bytes)} is free. {limit}"
        f"Of the allocated memory {format_size(allocated_bytes)} is allocated by PyTorch, "
        f"and {format_size(unallocated_bytes)} is reserved by PyTorch but unallocated.{_HINT}",
        tried_bytes=tried_bytes,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        limit_bytes=limit_bytes,
        allocated_bytes=allocated_bytes,
        unallocated_bytes=unallocated_bytes,
    )


def rejected(requested_bytes: int) -> ModelledOutOfMemory:
    """Return the error of ``throw_on_cudamalloc_oom``, for which the driver is not asked."""
    return ModelledOutOfMemory(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        f"per_process_memory_fraction limit. Requested size: {format_size(requested_bytes)}",
        tried_bytes=requested_bytes,
    )


def beyond_an_exbibyte() -> ModelledOutOfMemory:
    """Return the error of a request of 1 EiB or more."""
    return ModelledOutOfMemory("CUDA out of memory. Tried to allocate more than 1EB memory.")


def format_size(size_bytes: int) -> str:
    """Return a size in the form of PyTorch's errors: bytes, or two decimals of KiB, MiB or GiB."""
    if size_bytes <= KIB:
        return f"{size_bytes} bytes"
    if size_bytes <= MIB:
        return f"{size_bytes / KIB:.2f} KiB"
    if size_bytes <= GIB:
        return f"{size_bytes / MIB:.2f} MiB"
    return f"{size_bytes / GIB:.2f} GiB"
