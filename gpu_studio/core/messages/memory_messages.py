"""What window and engine say to each other about memory."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.message import Message

OUTCOMES = (
    "fits", "card_full", "fragmented", "over_budget", "spilled", "taken_by_others", "leak",
    "stopped",
)  # fmt: skip
"""What an experiment can end in.

``fits``
    everything was there at once, and no memory was lost.
``card_full``
    the driver has not enough left, and no free memory inside what PyTorch holds would be enough.
``fragmented``
    enough is free in all, but in pieces that are too small.
``over_budget``
    PyTorch itself refused, because of the budget.
``spilled``
    no error, although more was allocated than the card had free: the driver went on in RAM.
``taken_by_others``
    it would have fitted, had other processes not taken memory meanwhile.
``leak``
    a step that should give back what it took kept some, every time, until memory ended.
``stopped``
    the user ended it.
"""


class ReadMemory(Message, frozen=True, kw_only=True):
    """How is the memory of a device used? Makes no CUDA context: without one it says so."""

    device: str


class EmptyCache(Message, frozen=True, kw_only=True):
    """Give PyTorch's free segments back to the driver (``torch.cuda.empty_cache``)."""

    device: str


class ReadSegments(Message, frozen=True, kw_only=True):
    """Which segments and blocks does the allocator of a card have? Answered by `SegmentsRead`."""

    device: str


class AllocationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Square tensors, one after another: what the preset ``custom`` does.

    Attributes:
        size: the side of the first tensor.
        count: how many; None goes on until memory ends.
        dtype: of all of them.
        frees_every_second: whether each second tensor is dropped as soon as the next is there.
        growth: what is added to the side at every step.
    """

    size: int
    count: int | None = None
    dtype: str = "float32"
    frees_every_second: bool = False
    growth: int = 0


class RunMemoryExperiment(Message, frozen=True, kw_only=True):
    """Run a preset of the memory lab (`core.memory.presets.PRESETS`).

    It is answered by any number of `StageBegan`, `MemoryRead` and `SegmentsRead`, and `OomFinished`
    at the end. The allocator's options are those that the engine was started with
    (`EngineEnvironment.allocator_configuration`).

    Attributes:
        device: ``cuda:0``; or ``model:1996``, a modelled card on which CUDA sees 1996 MiB.
        plan: for ``custom`` alone.
        budget_bytes: what the allocator may reserve at most (``set_per_process_memory_fraction``),
            so that a real out-of-memory error comes before the card is full; None for three
            quarters of what is free at the start.
        whole_card: no budget at all; then budget_bytes must be None.
        snapshot_path: record the allocator's history, and write the snapshot of the moment before
            everything is freed to this file; empty for none.
        watch_s: spread the steps over about so long, for somebody who watches; 0 is at once.
        reads_every_step: a reading after every step, not only some 60 a second.
    """

    preset: str
    device: str
    plan: AllocationPlan | None = None
    budget_bytes: int | None = None
    whole_card: bool = False
    snapshot_path: str = ""
    watch_s: float = 0.0
    reads_every_step: bool = False


class MemoryRead(Message, frozen=True, kw_only=True):
    """One reading of a device's memory, taken by the engine in one go.

    On a card: PyTorch's allocator (``allocated``, ``reserved``, ``releasable``: what empty_cache
    can give back now) and the driver's total and free. All None while the engine has no CUDA
    context. On the CPU: the engine's own process memory and the PC's.

    ``requested`` is what was asked for before rounding, ``peak_allocated`` the most since the
    counters were last reset, ``segments`` how many there are, ``limit`` what the allocator may
    reserve at most (null without a limit). ``mark`` names a moment of an experiment: ``start``,
    ``allocated``, ``freed``, ``empty_cache``, ``oom``; ``step`` counts its allocations.
    ``engine_bytes`` is what the driver counts for the engine's process on the card, its context
    included: asked where an experiment ends, null where nobody tells (Windows). ``modelled`` says
    that no card was asked: the numbers are the allocator model's.
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
    engine_bytes: int | None = None
    retries: int | None = None
    ooms: int | None = None
    requested_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    segments: int | None = None
    limit_bytes: int | None = None
    mark: str | None = None
    step: int | None = None
    modelled: bool = False


MOST_BLOCKS = 10_000
"""How many blocks a `SegmentsRead` has at most."""


class SegmentsRead(Message, frozen=True, kw_only=True):
    """The segments of a card's allocator and their blocks, in columns.

    A column has one entry a segment, in the order of addresses, or one entry a block, those of
    one segment after those of another (`core.memory.segments.SegmentMap` takes them as they
    are). Beyond `MOST_BLOCKS` whole segments are left out of the columns; the sums count them.

    Attributes:
        read: the counters of the same moment.
        largest_block_bytes: the largest tensor that could be made now: beside
            ``free_total_bytes``, fragmentation in one number.
        free_total_bytes: what is free in all: the driver's and the holes in what is reserved.
        addresses, sizes, is_small, is_expandable, streams, pools, block_counts: of segments.
        block_sizes, requested_sizes: of blocks, in bytes.
        block_states: a digit a block: 0 allocated, 1 awaiting its free, 2 free.
        left_out_segments, left_out_blocks: what the columns do not have.
    """

    device: str
    read: MemoryRead
    largest_block_bytes: int
    free_total_bytes: int
    addresses: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    is_small: tuple[bool, ...] = ()
    is_expandable: tuple[bool, ...] = ()
    streams: tuple[int, ...] = ()
    pools: tuple[tuple[int, int], ...] = ()
    block_counts: tuple[int, ...] = ()
    block_sizes: tuple[int, ...] = ()
    requested_sizes: tuple[int, ...] = ()
    block_states: str = ""
    left_out_segments: int = 0
    left_out_blocks: int = 0
    modelled: bool = False


class StageBegan(Message, frozen=True, kw_only=True):
    """An experiment goes on to its next part: a name for the marker, and what happens now."""

    stage: str
    sentence: str
    modelled: bool = False


class CacheEmptied(Message, frozen=True, kw_only=True):
    """What empty_cache was expected to free, and what it freed."""

    device: str
    predicted_bytes: int
    freed_bytes: int
    before: MemoryRead
    after: MemoryRead
    snippet: str = ""
    modelled: bool = False


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a part of an experiment came to, in words and numbers.

    ``batch`` is the largest batch that went through; ``peak_allocated_bytes`` what that took.
    """

    stage: str
    sentence: str
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    batch: int | None = None


class OomFinished(Message, frozen=True, kw_only=True):
    """The end of an out-of-memory experiment.

    Attributes:
        outcome: one of `OUTCOMES`.
        preset: which experiment.
        tensors, tensor_bytes: how many were there at the end, and what the one took that was
            asked for last.
        steps: how many allocations were asked for; of ``activations`` and ``leak``, how many
            batches and steps.
        allocated_bytes, reserved_bytes: read at the failure, or at the end without one.
        tried_bytes, total_bytes, free_bytes, limit_bytes, unallocated_bytes, private_pools_bytes:
            the error's own numbers, null where its text does not have them. The text has two
            decimals; where a counter of that moment agrees with it, its exact number stands here.
        largest_block_bytes: the largest tensor that could have been made then.
        free_total_bytes: what was free then in all, the holes in what is reserved included.
        others_grew_bytes: what other processes took between the start and the failure.
        budget_bytes: the limit that was set; null for the whole card.
        conf: the allocator's options.
        explanation: what happened, in a sentence or two; ``next_step`` what to try.
        stages: what each part came to.
        snapshot_path: where the snapshot was written; empty for none.
        modelled: no card was asked.
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
    private_pools_bytes: int | None = None
    largest_block_bytes: int | None = None
    free_total_bytes: int | None = None
    others_grew_bytes: int | None = None
    budget_bytes: int | None = None
    conf: str = ""
    error_text: str = ""
    explanation: str = ""
    next_step: str = ""
    stages: tuple[StageResult, ...] = ()
    snippet: str = ""
    snapshot_path: str = ""
    modelled: bool = False


def cache_emptied(before: MemoryRead, after: MemoryRead, snippet: str = "") -> CacheEmptied:
    """Return the answer to `EmptyCache`.

    Args:
        before: its ``releasable_bytes`` are what was expected; None counts as nothing.
        after: what it has less of ``reserved_bytes`` was freed.
        snippet: the lines that did it.
    """
    return CacheEmptied(
        device=before.device,
        predicted_bytes=before.releasable_bytes or 0,
        freed_bytes=(before.reserved_bytes or 0) - (after.reserved_bytes or 0),
        before=before,
        after=after,
        snippet=snippet,
        modelled=before.modelled,
    )
