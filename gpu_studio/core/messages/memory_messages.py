"""The messages between window and engine about memory."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.message import Event, LastEvent, Request

OUTCOMES = (
    "fits", "card_full", "fragmented", "over_budget", "spilled", "taken_by_others", "leak",
    "stopped",
)  # fmt: skip
"""The possible outcomes of an experiment.

``fits``
    everything fit at the same time, and memory did not run out.
``card_full``
    the driver has too little left, and PyTorch's reserved but free memory would not be enough.
``fragmented``
    enough memory is free in total, but in pieces that are too small.
``over_budget``
    PyTorch itself refused because of the budget.
``spilled``
    no error, although more was allocated than the card had free: the driver continued in RAM.
``taken_by_others``
    it would have fit if other processes had not taken memory in the meantime.
``leak``
    a step that should give back its memory kept some, every time, until memory ran out.
``stopped``
    the user stopped it.
"""


class ReadMemory(Request, frozen=True, kw_only=True):
    """Ask for the use of a device's memory, without making a CUDA context."""

    device: str


class EmptyCache(Request, frozen=True, kw_only=True):
    """Give PyTorch's free segments back to the driver (``torch.cuda.empty_cache``)."""

    device: str


class ReadSegments(Request, frozen=True, kw_only=True):
    """Ask for the segments and blocks of a card's allocator. Answered by `SegmentsRead`."""

    device: str


class AllocationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Square tensors, one after another, for the preset ``custom``.

    Attributes:
        size: the side of each tensor.
        count: the number of tensors; None continues until memory runs out.
        dtype: the type of all tensors.
    """

    size: int
    count: int | None = None
    dtype: str = "float32"


class RunMemoryExperiment(Request, frozen=True, kw_only=True):
    """Run a preset of the memory lab (`core.memory.presets.PRESETS`).

    The answer is any number of `StageBegan`, `MemoryRead` and `SegmentsRead`, then `OomFinished`.
    The allocator's options are those with which the engine was started
    (`EngineEnvironment.allocator_configuration`).

    Attributes:
        device: ``cuda:0``; or ``model:1996``, a simulated card on which CUDA sees 1996 MiB.
        plan: only for ``custom``.
        budget_bytes: the most that the allocator may reserve
            (``set_per_process_memory_fraction``), so that a real out-of-memory error comes before
            the card is full; None for three quarters of the memory free at the start.
        whole_card: no budget; budget_bytes must then be None.
        watch_s: spread the steps over about this time, for watching; 0 is no delay.
        reads_every_step: a reading after every step, not only about 60 per second.
    """

    preset: str
    device: str
    plan: AllocationPlan | None = None
    budget_bytes: int | None = None
    whole_card: bool = False
    watch_s: float = 0.0
    reads_every_step: bool = False


class MemoryRead(Event, frozen=True, kw_only=True):
    """One consistent reading of a device's memory by the engine.

    On a card: PyTorch's allocator (``allocated``, ``reserved``, ``releasable``: the bytes that
    empty_cache can give back now) and the driver's total and free. All are None while the engine
    has no CUDA context. On the CPU: the memory of the engine's process and of the PC.

    ``limit`` is the most that the allocator may reserve (null without a limit). ``mark`` names a
    moment of an experiment: ``start``, ``allocated``, ``freed``, ``empty_cache``, ``oom``; ``step``
    counts its allocations.
    ``engine_bytes`` is the driver's count for the engine's process on the card, including its
    context: read at the end of an experiment, null if not available (Windows). ``modelled`` means
    that the numbers come from the allocator model, not from a card.
    """

    device: str
    taken_at_s: float
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    releasable_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    process_bytes: int | None = None
    engine_bytes: int | None = None
    limit_bytes: int | None = None
    mark: str | None = None
    step: int | None = None
    modelled: bool = False

    def ends(self, request: Request) -> bool:
        """Return whether nothing but a reading was asked for."""
        return isinstance(request, ReadMemory)


MOST_BLOCKS = 10_000
"""The maximum number of blocks in a `SegmentsRead`."""


class SegmentsRead(Event, frozen=True, kw_only=True):
    """The segments of a card's allocator and their blocks, in columns.

    A column has one entry per segment, in the order of addresses, or one entry per block, grouped
    by segment (`core.memory.segments.SegmentMap` takes them in this form). Beyond `MOST_BLOCKS`,
    whole segments are left out of the columns, but the sums count them.

    Attributes:
        read: the counters of the same moment.
        largest_block_bytes: the largest tensor that could be made now: compared with
            ``free_total_bytes``, fragmentation in one number.
        free_total_bytes: all free memory: the driver's, and the holes in reserved memory.
        addresses, sizes, is_small, is_expandable, block_counts: of segments.
        block_sizes: of blocks, in bytes.
        block_states: one digit per block: 0 allocated, 1 waiting to be freed, 2 free.
        lines: the lines of code that asked for blocks, as ``train.py:41 in forward``.
        block_lines: the index of each block's line, -1 for none; empty without a recorded history.
        left_out_segments: the number of those missing from the columns.
    """

    device: str
    read: MemoryRead
    largest_block_bytes: int
    free_total_bytes: int
    addresses: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    is_small: tuple[bool, ...] = ()
    is_expandable: tuple[bool, ...] = ()
    block_counts: tuple[int, ...] = ()
    block_sizes: tuple[int, ...] = ()
    block_states: str = ""
    lines: tuple[str, ...] = ()
    block_lines: tuple[int, ...] = ()
    left_out_segments: int = 0
    modelled: bool = False

    def ends(self, request: Request) -> bool:
        """Return whether nothing but the segments was asked for."""
        return isinstance(request, ReadSegments)


class StageBegan(Event, frozen=True, kw_only=True):
    """An experiment begins its next stage: a name for the marker, and a sentence about it."""

    stage: str
    sentence: str
    modelled: bool = False


class CacheEmptied(LastEvent, frozen=True, kw_only=True):
    """The bytes that empty_cache freed; ``before`` has those that were expected."""

    device: str
    freed_bytes: int
    before: MemoryRead
    after: MemoryRead
    snippet: str = ""
    modelled: bool = False


class OomFinished(LastEvent, frozen=True, kw_only=True):
    """The end of an out-of-memory experiment.

    Attributes:
        outcome: one of `OUTCOMES`.
        preset: the experiment.
        tensors, tensor_bytes: the number of tensors at the end, and the size of the last request.
        steps: the number of requested allocations.
        allocated_bytes, reserved_bytes: at the failure, or at the end without a failure.
        tried_bytes: what the error says that the driver was asked for; null without an error, and
            where its text has no numbers.
        free_bytes, total_bytes, limit_bytes, unallocated_bytes: the error's own numbers. The text
            has two decimals; if a counter of that moment agrees with it, this is its exact number.
            What there is no text for is the counter's.
        largest_block_bytes: the largest tensor that could have been made at that moment.
        free_total_bytes: all memory free at that moment, including holes in reserved memory.
        others_grew_bytes: the bytes that other processes took between start and failure.
        budget_bytes: the limit; null for the whole card.
        conf: the allocator's options.
        explanation: what happened, in one or two sentences; ``next_step``: what to try.
        modelled: whether the card was simulated.
    """

    device: str
    outcome: str
    preset: str = ""
    tensors: int
    tensor_bytes: int
    steps: int = 0
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    tried_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    limit_bytes: int | None = None
    unallocated_bytes: int | None = None
    largest_block_bytes: int | None = None
    free_total_bytes: int | None = None
    others_grew_bytes: int | None = None
    budget_bytes: int | None = None
    conf: str = ""
    error_text: str = ""
    explanation: str = ""
    next_step: str = ""
    snippet: str = ""
    modelled: bool = False


def cache_emptied(before: MemoryRead, after: MemoryRead, snippet: str = "") -> CacheEmptied:
    """Return the answer to `EmptyCache`.

    Args:
        before: the reading before it.
        after: its decrease in ``reserved_bytes`` is the freed memory.
        snippet: the PyTorch lines for it.
    """
    return CacheEmptied(
        device=before.device,
        freed_bytes=(before.reserved_bytes or 0) - (after.reserved_bytes or 0),
        before=before,
        after=after,
        snippet=snippet,
        modelled=before.modelled,
    )
