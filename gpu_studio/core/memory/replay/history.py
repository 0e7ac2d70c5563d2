"""The calls of a recorded program, from a snapshot of PyTorch's allocator with its history.

A snapshot has the segments at its end, and a ring buffer of what happened before. The calls are the
history's allocations and frees. What was there before the first call is the end without them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.allocator.blocks import FREE, IN_USE, SMALL_BYTES
from gpu_studio.core.memory.allocator.options import (
    SMALL_SEGMENT_BYTES,
    UNLIMITED,
    parse_configuration,
)
from gpu_studio.core.memory.allocator.segments import FoundBlock, FoundSegment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.memory.allocator.options import AllocatorConfiguration
    from gpu_studio.core.memory.snapshot_file import Snapshot, SnapshotEntry

_ASKED = frozenset({"segment_alloc", "segment_map"})
_GIVEN_BACK = frozenset({"segment_free", "segment_unmap"})
_EXPANDABLE = "expandable_segments:True"
MOST_LINES = 7
NO_HISTORY = (
    "This snapshot has no history. Call torch.cuda.memory._record_memory_history() before the part "
    "that you want to see, and dump it before you stop the recording."
)


class MemoryCall(msgspec.Struct, frozen=True, array_like=True):
    """What the program asked of the allocator.

    Attributes:
        action: ``alloc``, ``free``, ``empty_cache`` or ``oom``, which is an allocation that failed.
        address: of the tensor, for ``alloc`` and ``free``: its name until it is freed.
        size_bytes: the request; for ``oom`` after rounding.
        entry: the index in the history.
        line: the index of the line of code in `RecordedCalls.lines`.
    """

    action: str
    address: int
    size_bytes: int
    stream: int
    entry: int
    line: int
    time_us: int


class LineAtPeak(msgspec.Struct, frozen=True):
    """What a line of code held when the most was allocated; an empty line is unknown."""

    line: str
    size_bytes: int


class HistoryFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a history itself says; sizes in bytes.

    Attributes:
        conf: the options of the program's allocator.
        entry_count, allocations, ooms: the lines of the history, the tensors that were made, and
            how often the program was out of memory.
        was_full: the program was out of memory, or the allocator had to give back cached memory.
        has_private_pool: it used a pool of a CUDA graph or of ``torch.cuda.MemPool``.
        peak_reserved_bytes: the most over the history, as it was recorded.
        at_peak: the lines of code that held most, the largest first.
    """

    conf: str
    entry_count: int
    allocations: int
    ooms: int
    was_full: bool
    has_private_pool: bool
    peak_reserved_bytes: int
    at_peak: tuple[LineAtPeak, ...]


class RecordedCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a recorded program.

    Attributes:
        facts: what the history says.
        start: the segments before the first call.
        lines: the different lines of code; the first one is unknown.
        begun_us: the time of the first entry; 0 if times were not recorded.
    """

    facts: HistoryFacts
    start: tuple[FoundSegment, ...]
    calls: tuple[MemoryCall, ...]
    lines: tuple[str, ...]
    begun_us: int


def history_of(snapshot: Snapshot) -> RecordedCalls:
    """Return the calls in the history of a snapshot.

    Raises:
        StudioError: there is no history, it contradicts the snapshot, or its options are not
            modeled.
    """
    entries = snapshot.history
    actions = Counter(entry.action for entry in entries)
    if not actions["alloc"]:
        raise _refused(NO_HISTORY)
    options = _options_of(snapshot)
    frees = "free_completed" if "free_completed" in actions else "free_requested"
    reserved = _reserved_bytes(snapshot)
    every_line = tuple(dict.fromkeys(["", *(entry.line for entry in entries)]))
    lines = {line: number for number, line in enumerate(every_line)}
    start = _start_of(snapshot, frees, options)
    calls = tuple(_calls_of(entries, frees, lines, reserved, options))
    gave_back = any(entry.action in _GIVEN_BACK for entry in entries)
    emptied = any(call.action == "empty_cache" for call in calls)
    facts = HistoryFacts(
        conf=options.text,
        entry_count=len(entries),
        allocations=actions["alloc"],
        ooms=actions["oom"],
        was_full=bool(actions["oom"]) or (gave_back and not emptied),
        has_private_pool=any(entry.is_private for entry in entries),
        peak_reserved_bytes=max(reserved),
        at_peak=_at_peak(start, calls, every_line),
    )
    return RecordedCalls(
        facts=facts, start=start, calls=calls, lines=every_line, begun_us=entries[0].time_us
    )


def _options_of(snapshot: Snapshot) -> AllocatorConfiguration:
    """Return the options of the recorded program; raise `StudioError` for others than modeled.

    Whether its segments were expandable is seen, not believed: Windows and old drivers refuse it,
    and the oldest snapshots have no options.
    """
    conf = snapshot.conf
    actions = {entry.action for entry in snapshot.history}
    is_expandable = "segment_map" in actions or any(snapshot.segments.is_expandable)
    is_fixed = "segment_alloc" in actions or not all(snapshot.segments.is_expandable)
    try:
        options = parse_configuration(conf)
        if options.expandable_segments and is_fixed and not is_expandable:
            options = parse_configuration(f"{conf},expandable_segments:False")
        elif is_expandable and not options.expandable_segments:
            options = parse_configuration(",".join(filter(None, (conf, _EXPANDABLE))))
    except ValueError as error:
        raise _refused(
            f"The options of the recorded program cannot be modeled: {error}."
        ) from error
    return options


def _reserved_bytes(snapshot: Snapshot) -> list[int]:
    """Return what was reserved before each entry, and at the end."""
    reserved = [snapshot.reserved_bytes]
    for entry in reversed(snapshot.history):
        grew_bytes = entry.size_bytes if entry.action in _ASKED else 0
        shrank_bytes = entry.size_bytes if entry.action in _GIVEN_BACK else 0
        reserved.append(reserved[-1] - grew_bytes + shrank_bytes)
    reserved.reverse()
    return reserved


def _calls_of(
    entries: Sequence[SnapshotEntry],
    frees: str,
    lines: dict[str, int],
    reserved: Sequence[int],
    options: AllocatorConfiguration,
) -> Iterator[MemoryCall]:
    """Yield the program's own calls: what the driver gave and got is the allocator's part."""
    names = {"alloc": "alloc", "oom": "oom", frees: "free"}
    most_bytes = max(reserved)
    of_driver: list[SnapshotEntry] = []  # since the call before
    first = 0
    for number, entry in enumerate(entries):
        name = names.get(entry.action)
        if entry.action in _ASKED or entry.action in _GIVEN_BACK:
            first = first if of_driver else number
            of_driver.append(entry)
        if name is None:
            continue
        line = lines[entry.line]
        at, size_bytes, stream = entry.address, entry.size_bytes, entry.stream
        if of_driver:
            room_bytes = most_bytes - reserved[first]
            if _emptied_cache(of_driver, name, entry, room_bytes, options):
                yield MemoryCall("empty_cache", 0, 0, 0, first, line, entry.time_us)
            of_driver.clear()
        yield MemoryCall(name, at, size_bytes, stream, number, line, entry.time_us)


def _emptied_cache(
    of_driver: Sequence[SnapshotEntry],
    name: str,
    call: SnapshotEntry,
    room_bytes: int,
    options: AllocatorConfiguration,
) -> bool:
    """Return whether the program emptied the cache, or the allocator gave memory back by itself.

    The allocator does that if the card is full, or by some options before that; but not if the
    memory that went back was enough for the call.

    Args:
        of_driver: what the driver gave and got before the call.
        name: see `MemoryCall`.
        call: the next call.
        room_bytes: the card was seen to have room for so much.
        options: the allocator's.
    """
    given = [entry for entry in of_driver if entry.action in _GIVEN_BACK]
    asked = [entry for entry in of_driver if entry.action in _ASKED]
    if not given or name == "oom":
        return False
    if name == "free" or not asked:
        return True
    is_small = call.size_bytes <= SMALL_BYTES
    for entry in given:
        is_of_pool = (entry.size_bytes <= SMALL_SEGMENT_BYTES) == is_small
        if is_of_pool and call.size_bytes <= entry.size_bytes < options.max_split_bytes:
            return True
    has_rule = options.garbage_collection_threshold > 0 or options.max_split_bytes != UNLIMITED
    gives_back_early = has_rule and not options.expandable_segments
    return asked[-1].size_bytes <= room_bytes and not gives_back_early


def _at_peak(
    start: Sequence[FoundSegment], calls: Sequence[MemoryCall], lines: Sequence[str]
) -> tuple[LineAtPeak, ...]:
    """Return the lines of code that held most when the most was allocated."""
    before = [
        MemoryCall("alloc", block.address, block.requested_bytes, segment.stream, 0, 0, 0)
        for segment in start
        for block in segment.blocks
        if block.state == IN_USE
    ]
    every = [*before, *calls]
    held: dict[int, MemoryCall] = {}
    total = most = peak = 0
    for number, call in enumerate(every, 1):
        if call.action == "alloc":
            held[call.address] = call
            total += call.size_bytes
            if total > most:
                most, peak = total, number
        elif call.action == "free":
            total -= held.pop(call.address).size_bytes
    held.clear()
    for call in every[:peak]:
        if call.action == "alloc":
            held[call.address] = call
        elif call.action == "free":
            del held[call.address]
    by_line: dict[str, int] = {}
    for call in held.values():
        line = lines[call.line]
        by_line[line] = by_line.get(line, 0) + call.size_bytes
    largest = sorted(by_line.items(), key=lambda one: -one[1])[:MOST_LINES]
    return tuple(LineAtPeak(line, size_bytes) for line, size_bytes in largest)


# ── what was there before ────────────────────────────────────────────────────────────────────


class _Segment(NamedTuple):
    size_bytes: int
    stream: int
    is_small: bool


class _Tensor(NamedTuple):
    """A tensor's memory; ``size_bytes`` is its block's, None if only the request is known."""

    requested_bytes: int
    size_bytes: int | None
    stream: int


def _start_of(
    snapshot: Snapshot, frees: str, options: AllocatorConfiguration
) -> tuple[FoundSegment, ...]:
    """Return the segments before a history, with their tensors.

    Of expandable segments, only the tensors are known, in the order of their addresses.
    """
    segments, tensors = _at_end(snapshot)
    for number in range(len(snapshot.history) - 1, -1, -1):
        entry = snapshot.history[number]
        if not _undo(entry, frees, segments, tensors):
            raise _refused(
                f"The history and the snapshot contradict each other at entry {number + 1:,} "
                f"({entry.action} at {entry.address:#x}): it was changed, or the snapshot was made "
                "after the recording had been stopped."
            )
    if options.expandable_segments:
        return tuple(
            FoundSegment(one.stream, False, (_block(address, one, one.requested_bytes),))
            for address, one in sorted(tensors.items())
        )
    addresses = sorted(tensors)
    found, count = [], 0
    for address, segment in sorted(segments.items()):
        end = bisect_left(addresses, address + segment.size_bytes)
        inside = addresses[bisect_left(addresses, address) : end]
        count += len(inside)
        blocks = tuple(_blocks(address, segment, inside, tensors, options))
        found.append(FoundSegment(segment.stream, segment.is_small, blocks))
    if count != len(tensors):
        raise _refused("This history has tensors outside of every segment.")
    return tuple(found)


def _at_end(snapshot: Snapshot) -> tuple[dict[int, _Segment], dict[int, _Tensor]]:
    """Return the segments and the tensors of a snapshot, by address."""
    segments, tensors = {}, {}
    for found in snapshot.found:
        first, last = found.blocks[0], found.blocks[-1]
        size_bytes = last.address + last.size_bytes - first.address
        segments[first.address] = _Segment(size_bytes, found.stream, found.is_small)
        for one in found.blocks:
            if one.state == IN_USE:
                tensors[one.address] = _Tensor(one.requested_bytes, one.size_bytes, found.stream)
    return segments, tensors


def _undo(
    entry: SnapshotEntry, frees: str, segments: dict[int, _Segment], tensors: dict[int, _Tensor]
) -> bool:
    """Undo an entry; return False if it cannot have happened. Pages are left out."""
    at, size_bytes = entry.address, entry.size_bytes
    if entry.action == "alloc":
        return tensors.pop(at, None) is not None
    if entry.action == frees:
        is_known = at in tensors
        tensors[at] = _Tensor(size_bytes, None, entry.stream)
        return not is_known
    if entry.action == "segment_alloc":
        segment = segments.pop(at, None)
        return segment is not None and segment.size_bytes == size_bytes
    if entry.action == "segment_free":
        is_known = at in segments
        segments[at] = _Segment(size_bytes, entry.stream, size_bytes <= SMALL_SEGMENT_BYTES)
        return not is_known
    return True


def _blocks(
    at: int,
    segment: _Segment,
    inside: Sequence[int],
    tensors: dict[int, _Tensor],
    options: AllocatorConfiguration,
) -> Iterator[FoundBlock]:
    """Yield the blocks of a segment from its address ``at`` to its end."""
    segment_end = at + segment.size_bytes
    for address, limit in zip(inside, [*inside[1:], segment_end], strict=False):
        if address > at:
            yield FoundBlock(at, address - at, 0, FREE)
        tensor = tensors[address]
        size_bytes = tensor.size_bytes
        if size_bytes is None:
            size_bytes = options.rounded_bytes(max(tensor.requested_bytes, 1))
            # A rest that is too small to be split off belongs to the tensor.
            is_whole = size_bytes >= options.max_split_bytes
            is_whole |= 0 <= limit - address - size_bytes <= SMALL_BYTES
            if is_whole and not segment.is_small:
                size_bytes = limit - address
        at = address + size_bytes
        if at > limit:
            raise _refused("Two tensors of this history overlap.")
        yield _block(address, tensor, size_bytes)
    if at < segment_end:
        yield FoundBlock(at, segment_end - at, 0, FREE)


def _block(address: int, tensor: _Tensor, size_bytes: int) -> FoundBlock:
    return FoundBlock(address, size_bytes, tensor.requested_bytes, IN_USE)


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)
