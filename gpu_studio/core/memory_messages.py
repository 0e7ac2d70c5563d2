"""What window and engine say to each other about memory."""

from __future__ import annotations

from gpu_studio.core.message import Message


class ReadMemory(Message, frozen=True, kw_only=True):
    """How is the memory of a device used? Makes no CUDA context: without one it says so."""

    device: str


class EmptyCache(Message, frozen=True, kw_only=True):
    """Give PyTorch's free segments back to the driver (``torch.cuda.empty_cache``)."""

    device: str


class BreakMemory(Message, frozen=True, kw_only=True):
    """Allocate ``count`` square tensors of ``size`` until they are there or memory ends.

    ``budget_bytes`` caps what the allocator may take (``set_per_process_memory_fraction``), so
    that a real out-of-memory error comes before the card is full.
    """

    device: str
    size: int
    count: int
    dtype: str
    budget_bytes: int


class MemoryRead(Message, frozen=True, kw_only=True):
    """One reading of a device's memory, taken by the engine in one go.

    On a card: PyTorch's allocator (``allocated``, ``reserved``, ``releasable``: what empty_cache
    can give back now) and the driver's total and free. All None while the engine has no CUDA
    context. On the CPU: the engine's own process memory and the PC's.
    """

    device: str
    taken_at_s: float
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    active_bytes: int | None = None
    inactive_split_bytes: int | None = None
    releasable_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    process_bytes: int | None = None
    retries: int | None = None
    ooms: int | None = None
    mark: str | None = None


class CacheEmptied(Message, frozen=True, kw_only=True):
    """What empty_cache was expected to free, and what it freed."""

    device: str
    predicted_bytes: int
    freed_bytes: int
    before: MemoryRead
    after: MemoryRead
    snippet: str = ""


class OomFinished(Message, frozen=True, kw_only=True):
    """The end of an out-of-memory experiment.

    ``outcome`` is ``fits``, ``card_full``, ``over_budget``, ``refused`` or ``stopped``;
    ``tensors`` is how many were there at the end. The other numbers are the error's own, null
    where its text does not have them; ``allocated`` and ``reserved`` were read at the failure.
    """

    device: str
    outcome: str
    tensors: int
    tensor_bytes: int
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    tried_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    limit_bytes: int | None = None
    unallocated_bytes: int | None = None
    error_text: str = ""
    snippet: str = ""
