"""The segments of PyTorch's allocator and their blocks as arrays, which stay fast for ten thousand.

A segment is one piece of memory from the driver; a block is a part that the allocator cut from it.
See ``torch.cuda.memory_snapshot()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_studio.core.messages.memory_messages import MOST_BLOCKS, MemoryRead, SegmentsRead
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray


ALLOCATED, AWAITING_FREE, INACTIVE = 0, 1, 2
STATE_WORDS = ("allocated", "waiting to be freed", "free")
_STATES = {"active_allocated": ALLOCATED, "inactive": INACTIVE}  # others wait for a stream

_PAGE_BYTES = {True: 2 << 20, False: 20 << 20}  # expandable segments: small pool, large pool
_DRIVER_STEP_BYTES = 2 << 20
_SMALLEST_LARGE_BYTES = 10 << 20
_LARGE_BUFFER_BYTES = 20 << 20
_MOST_FRAMES, _LARGEST_LINE = 200, 1 << 62


class SegmentMap:
    """Segments, the largest first, and their blocks from left to right.

    Attributes:
        addresses, sizes: of the segments; shape (n,), bytes.
        is_small, is_expandable: of the segments; shape (n,).
        first_blocks: the index of each segment's first block in the block arrays; shape (n + 1,).
        block_offsets, block_sizes: in bytes, the offset from the segment's address; shape (m,).
        block_states: `ALLOCATED`, `AWAITING_FREE` or `INACTIVE`; shape (m,).
    """

    def __init__(
        self,
        *,
        addresses: ArrayLike,
        sizes: ArrayLike,
        is_small: ArrayLike,
        is_expandable: ArrayLike,
        block_counts: ArrayLike,
        block_sizes: ArrayLike,
        block_states: ArrayLike,
        lines: Sequence[str] = (),
        block_lines: Sequence[int] = (),
    ) -> None:
        """Take the segments in any order, and their blocks grouped by segment.

        Raises:
            ValueError: blocks do not fill their segments.
        """
        sizes_given = np.asarray(sizes, np.int64)
        counts = np.asarray(block_counts, np.int64)
        addresses_given = np.asarray(addresses, np.int64)
        order = np.lexsort((addresses_given, -sizes_given))
        picks = _picks(order, sizes_given, counts, np.asarray(block_sizes, np.int64))
        self.addresses: NDArray[np.int64] = addresses_given[order]
        self.sizes: NDArray[np.int64] = sizes_given[order]
        self.is_small: NDArray[np.bool_] = np.asarray(is_small, bool)[order]
        self.is_expandable: NDArray[np.bool_] = np.asarray(is_expandable, bool)[order]
        self.first_blocks: NDArray[np.int64] = _sums(counts[order])
        self.block_sizes: NDArray[np.int64] = np.asarray(block_sizes, np.int64)[picks]
        states = np.asarray(block_states, np.uint8)
        if len(states) != len(picks):
            raise ValueError("the number of blocks differs from the segments' counts")
        self.block_states: NDArray[np.uint8] = states[picks]
        self._lines = lines
        given = block_lines if len(block_lines) == len(picks) else np.full(len(picks), -1)
        self._block_lines: NDArray[np.int64] = np.asarray(given, np.int64)[picks]
        starts = _sums(self.block_sizes)[:-1]
        self.block_offsets: NDArray[np.int64] = starts - np.repeat(
            _sums(self.sizes)[:-1], counts[order]
        )

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.sizes)

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return len(self.block_sizes)

    @property
    def reserved_bytes(self) -> int:
        """The memory from the driver."""
        return int(self.sizes.sum())

    @property
    def allocated_bytes(self) -> int:
        """The memory held by tensors."""
        return int(self.block_sizes[self.block_states == ALLOCATED].sum())

    @property
    def holes_bytes(self) -> int:
        """The free memory inside segments."""
        return int(self.block_sizes[self.block_states == INACTIVE].sum())

    @property
    def largest_hole_bytes(self) -> int:
        """The size of the largest free block."""
        holes = self.block_sizes[self.block_states == INACTIVE]
        return int(holes.max()) if len(holes) else 0

    @property
    def releasable_bytes(self) -> int:
        """The bytes that empty_cache gives back: empty segments, and free whole pages of others."""
        segments = np.repeat(np.arange(len(self)), np.diff(self.first_blocks))
        free = self.block_states == INACTIVE
        expandable = self.is_expandable[segments]
        alone = free & ~expandable & (self.block_sizes == self.sizes[segments])
        pages = np.where(self.is_small[segments], _PAGE_BYTES[True], _PAGE_BYTES[False])
        ends = (self.block_offsets + self.block_sizes) // pages * pages
        starts = -(-self.block_offsets // pages) * pages
        whole = np.where(free & expandable, np.maximum(ends - starts, 0), 0)
        return int(self.block_sizes[alone].sum() + whole.sum())

    def blocks_of(self, segment: int) -> slice:
        """Return the range of a segment's blocks in the block arrays."""
        return slice(int(self.first_blocks[segment]), int(self.first_blocks[segment + 1]))

    def block_at(self, segment: int, offset_bytes: int) -> int:
        place = self.blocks_of(segment)
        found = int(np.searchsorted(self.block_offsets[place], offset_bytes, side="right")) - 1
        return int(place.start) + min(max(found, 0), int(place.stop - place.start) - 1)

    def segment_of(self, block: int) -> int:
        return int(np.searchsorted(self.first_blocks, block, side="right")) - 1

    def line_of(self, block: int) -> str:
        """Return the line of code that asked for a block; empty if it was not recorded."""
        line = int(self._block_lines[block])
        return self._lines[line] if 0 <= line < len(self._lines) else ""


def _sums(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of the values before each value, and the total; shape (n + 1,)."""
    return np.concatenate(([0], np.cumsum(values)))


def _picks(
    order: NDArray[np.intp],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    block_sizes: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the block indices if the segments are put in a new order; shape (m,).

    Args:
        order: the new order of the segments; shape (n,).
        sizes: the segments' sizes in the old order, in bytes; shape (n,).
        counts: the number of blocks of each segment; shape (n,).
        block_sizes: the block sizes grouped by segment, in bytes; shape (m,).

    Raises:
        ValueError: blocks do not fill their segments.
    """
    starts, filled = _sums(counts), _sums(block_sizes)
    if starts[-1] != len(block_sizes):
        raise ValueError("the number of blocks differs from the segments' counts")
    if not np.array_equal(np.diff(filled[starts]), sizes):
        raise ValueError("the blocks do not fill their segments")
    moved = np.repeat(starts[:-1][order] - _sums(counts[order])[:-1], counts[order])
    places: NDArray[np.int64] = moved + np.arange(len(block_sizes))
    return places


def map_of_snapshot(segments: Iterable[Mapping[str, Any]], device: int = 0) -> SegmentMap:
    """Return the map of one card's segments in a snapshot.

    Args:
        segments: the value of ``torch.cuda.memory_snapshot()``.
        device: the index of the card.
    """
    own_segments = [segment for segment in segments if segment.get("device", device) == device]
    blocks: Sequence[Mapping[str, Any]] = [b for segment in own_segments for b in segment["blocks"]]
    return SegmentMap(
        addresses=[segment["address"] for segment in own_segments],
        sizes=[segment["total_size"] for segment in own_segments],
        is_small=[segment["segment_type"] == "small" for segment in own_segments],
        is_expandable=[bool(segment.get("is_expandable")) for segment in own_segments],
        block_counts=[len(segment["blocks"]) for segment in own_segments],
        block_sizes=[block["size"] for block in blocks],
        block_states=[_state_of(block) for block in blocks],
    )


def _state_of(block: Mapping[str, Any]) -> int:
    return _STATES.get(block["state"], AWAITING_FREE)


def map_of_segments(read: SegmentsRead) -> SegmentMap:
    """Return the map of an engine's reading.

    Raises:
        ValueError: the columns of the reading contradict each other.
    """
    return SegmentMap(
        addresses=read.addresses,
        sizes=read.sizes,
        is_small=read.is_small,
        is_expandable=read.is_expandable,
        block_counts=read.block_counts,
        block_sizes=read.block_sizes,
        block_states=np.frombuffer(read.block_states.encode("ascii"), np.uint8) - ord("0"),
        lines=read.lines,
        block_lines=read.block_lines,
    )


def largest_block_bytes(blocks: SegmentMap, free_bytes: int, limit_bytes: int | None = None) -> int:
    """Return the size of the largest tensor that could be made now.

    It fits into the largest free block or into a new segment, for which the allocator first gives
    back all that it can. A tensor under 10 MiB needs a segment of 20 MiB. The result is exact
    without expandable segments. With them, it is what new pages hold; the rest of one or two pages
    (20 MiB) that are in use may add to it.

    Args:
        blocks: the allocator's segments.
        free_bytes: the driver's free memory.
        limit_bytes: the most that the allocator may reserve in total; None for no limit.
    """
    releasable = blocks.releasable_bytes
    allowed = limit_bytes - blocks.reserved_bytes + releasable if limit_bytes else 1 << 62
    allowed = _whole(allowed, _DRIVER_STEP_BYTES)
    if bool(blocks.is_expandable.any()):
        new = min(_whole(free_bytes + releasable, _PAGE_BYTES[False]), allowed)
    else:
        new = min(_whole(free_bytes + releasable, _DRIVER_STEP_BYTES), allowed)
        if new < _LARGE_BUFFER_BYTES:  # below 10 MiB in a segment of 20 MiB; larger ones as is
            new = new if new >= _SMALLEST_LARGE_BYTES else min(new, 1 << 20)
    return max(blocks.largest_hole_bytes, new)


def _whole(size_bytes: int, step_bytes: int) -> int:
    return max(size_bytes, 0) // step_bytes * step_bytes


def segments_read(
    read: MemoryRead,
    segments: Iterable[Mapping[str, Any]],
    device_index: int = 0,
) -> SegmentsRead:
    """Return a card's segments as a message.

    Args:
        read: the counters of the same moment.
        segments: the segments of all cards, with their blocks.
        device_index: the card's index in the segments.
    """
    own_segments = sorted(
        (segment for segment in segments if segment["device"] == device_index),
        key=lambda segment: int(segment["address"]),
    )
    blocks = map_of_snapshot(own_segments, device_index)
    free_bytes = read.free_bytes or 0
    shown = _shown(own_segments)
    shown_blocks = [block for segment in shown for block in segment["blocks"]]
    places = CodeLines()
    block_lines = tuple(places.number_of(block.get("frames")) for block in shown_blocks)
    return SegmentsRead(
        device=read.device,
        read=read,
        largest_block_bytes=largest_block_bytes(blocks, free_bytes, read.limit_bytes),
        free_total_bytes=free_bytes + blocks.holes_bytes,
        addresses=tuple(segment["address"] for segment in shown),
        sizes=tuple(segment["total_size"] for segment in shown),
        is_small=tuple(segment["segment_type"] == "small" for segment in shown),
        is_expandable=tuple(bool(segment.get("is_expandable")) for segment in shown),
        block_counts=tuple(len(segment["blocks"]) for segment in shown),
        block_sizes=tuple(block["size"] for block in shown_blocks),
        block_states="".join(str(_state_of(block)) for block in shown_blocks),
        lines=places.lines,
        block_lines=block_lines if places.lines else (),
        left_out_segments=len(own_segments) - len(shown),
        modelled=read.modelled,
    )


def _shown(segments: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return as many whole segments as fit into a message, from the lowest address on."""
    shown, blocks = [], 0
    for segment in segments:
        blocks += len(segment["blocks"])
        if blocks > MOST_BLOCKS:
            break
        shown.append(segment)
    return shown


class CodeLines:
    """The lines of stacks; PyTorch writes a list for each, of one dictionary per frame.

    The stacks must outlive it: each is looked at only once.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[int, ...], str] = {}
        self._numbers: dict[str, int] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that `number_of` has numbered."""
        return tuple(self._numbers)

    def number_of(self, frames: object) -> int:
        """Return the number of a stack's line, -1 for none."""
        line = self.of(frames)
        return self._numbers.setdefault(line, len(self._numbers)) if line else -1

    def of(self, frames: object) -> str:
        """Return the innermost line of a stack that is not PyTorch's own, or PyTorch's outermost.

        Args:
            frames: a list of dictionaries, the innermost first; anything else has no line.
        """
        key = tuple(map(id, frames[:_MOST_FRAMES])) if isinstance(frames, list) else ()
        line = self._found.get(key)
        if line is None:
            line = self._found[key] = _line(frames)
        return line


def _line(frames: object) -> str:
    line = ""
    for frame in frames[:_MOST_FRAMES] if isinstance(frames, list) else ():
        if not isinstance(frame, dict):
            continue
        name, number, function = (frame.get(key) for key in ("filename", "line", "name"))
        if not (isinstance(name, str) and isinstance(function, str) and name.endswith(".py")):
            continue
        parts = name.replace("\\", "/").split("/")
        file, where = plain_text(parts[-1][:80]), plain_text(function[:80])
        is_number = type(number) is int and 0 <= number <= _LARGEST_LINE
        line = f"{file}:{number if is_number else '?'} in {where}"
        if "torch" not in parts:
            break
    return line
