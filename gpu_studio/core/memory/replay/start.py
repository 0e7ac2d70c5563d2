"""The state of an allocator before its recorded history: found backwards from the snapshot.

A snapshot has the segments and blocks at its end, and a ring buffer of what happened before. Undone
one after another, from the last entry to the first, they lead to the state at the beginning. The
history says only how large each request was, not how large its block: a rest that is too small to
be split off belongs to the tensor (`AllocatorModel.allocate`). What the first user of the memory
behind it shows decides.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.allocator.blocks import (
    FREE,
    IN_USE,
    SMALL_BYTES,
    UNMAPPED,
)
from gpu_studio.core.memory.allocator.options import SMALL_SEGMENT_BYTES
from gpu_studio.core.memory.allocator.segments import FoundBlock, FoundSegment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpu_studio.core.memory.allocator.options import AllocatorConfiguration
    from gpu_studio.core.memory.snapshot_file import Snapshot, SnapshotEntry

SEGMENT_ACTIONS = frozenset({"segment_alloc", "segment_free", "segment_map", "segment_unmap"})
_MOST_BACKWARDS_US = 1_000_000
_TURN = 16_384


class _Stretch(NamedTuple):
    """A range of memory from the driver."""

    address: int
    size_bytes: int
    stream: int
    is_small: bool

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


class _Held(NamedTuple):
    """A tensor's memory; ``size_bytes`` is its block's, None if only the request is known."""

    requested_bytes: int
    size_bytes: int | None


class _Undone:
    """The segments and the tensors, one entry further back with each call.

    Attributes:
        stretches: by address.
        held: by address.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._mapped = sorted(
            (entry.address, entry.size_bytes <= SMALL_SEGMENT_BYTES)
            for entry in snapshot.history
            if entry.action == "segment_map"
        )
        self.stretches: dict[int, _Stretch] = {}
        self.held: dict[int, _Held] = {}
        self._order: list[int] = []  # the addresses of the stretches
        shown = snapshot.whole
        at = 0
        for number, address in enumerate(shown.addresses):
            stream, is_small = shown.streams[number], shown.is_small[number]
            self._add(_Stretch(address, shown.sizes[number], stream, is_small))
            for block in range(at, at + shown.block_counts[number]):
                size_bytes = shown.block_sizes[block]
                if shown.block_states[block] != "2":
                    requested_bytes = shown.requested_sizes[block] or size_bytes
                    self.held[address] = _Held(requested_bytes, size_bytes)
                address += size_bytes
            at += shown.block_counts[number]

    def undo(self, entry: SnapshotEntry, frees: str) -> None:
        """Undo an entry; ``frees`` is the action that makes memory free.

        Raises:
            _ContradictionError: it cannot have happened.
        """
        action = entry.action
        if action == frees:
            if entry.address in self.held:
                raise _ContradictionError
            self.held[entry.address] = _Held(entry.size_bytes, None)
        elif action == "alloc":
            if self.held.pop(entry.address, None) is None:
                raise _ContradictionError
        elif action not in SEGMENT_ACTIONS:
            return
        elif action == "segment_alloc":
            stretch = self.stretches.get(entry.address)
            if stretch is None or stretch.size_bytes != entry.size_bytes:
                raise _ContradictionError
            self._remove(stretch)
        elif action == "segment_free":
            is_small = entry.size_bytes <= SMALL_SEGMENT_BYTES
            self._add(_Stretch(entry.address, entry.size_bytes, entry.stream, is_small))
        elif action == "segment_map":
            self._cut_out(entry.address, entry.size_bytes)
        elif action == "segment_unmap":
            self._put_back(entry)

    def _add(self, stretch: _Stretch) -> None:
        place = bisect_left(self._order, stretch.address)
        if place and self.stretches[self._order[place - 1]].end > stretch.address:
            raise _ContradictionError
        if place < len(self._order) and self._order[place] < stretch.end:
            raise _ContradictionError
        self._order.insert(place, stretch.address)
        self.stretches[stretch.address] = stretch

    def _remove(self, stretch: _Stretch) -> None:
        del self._order[bisect_left(self._order, stretch.address)]
        del self.stretches[stretch.address]

    def _around(self, address: int) -> _Stretch | None:
        place = bisect_right(self._order, address)
        stretch = self.stretches[self._order[place - 1]] if place else None
        return stretch if stretch is not None and address < stretch.end else None

    def _cut_out(self, address: int, size_bytes: int) -> None:
        """Take pages out of a stretch of an expandable segment."""
        stretch = self._around(address)
        if stretch is None or address + size_bytes > stretch.end:
            raise _ContradictionError
        self._remove(stretch)
        if stretch.address < address:
            self._add(stretch._replace(size_bytes=address - stretch.address))
        if address + size_bytes < stretch.end:
            rest_bytes = stretch.end - address - size_bytes
            self._add(stretch._replace(address=address + size_bytes, size_bytes=rest_bytes))

    def _pool_at(self, entry: SnapshotEntry) -> bool:
        """Return whether pages that were given back were the small pool's.

        They may be many at once, but they were mapped 2 MiB at a time, the large pool's a multiple
        of 20 MiB or what else a large segment has. Where that was before the history began, the
        nearest pages tell: each pool has its own range of addresses.
        """
        place = bisect_left(self._mapped, (entry.address, False))
        near = self._mapped[max(place - 1, 0) : place + 1]
        known = [(abs(address - entry.address), is_small) for address, is_small in near]
        place = bisect_left(self._order, entry.address)
        for address in self._order[max(place - 1, 0) : place + 1]:
            known.append((abs(address - entry.address), self.stretches[address].is_small))
        return min(known, default=(0, entry.size_bytes <= SMALL_SEGMENT_BYTES))[1]

    def _put_back(self, entry: SnapshotEntry) -> None:
        """Join pages with the stretches beside them."""
        before = self._around(entry.address - 1)
        after = self.stretches.get(entry.address + entry.size_bytes)
        is_small = self._pool_at(entry)
        address, size_bytes = entry.address, entry.size_bytes
        if before is not None and before.stream == entry.stream:
            self._remove(before)
            address, size_bytes = before.address, size_bytes + before.size_bytes
        if after is not None and after.stream == entry.stream:
            self._remove(after)
            size_bytes += after.size_bytes
        self._add(_Stretch(address, size_bytes, entry.stream, is_small))


class _ContradictionError(Exception):
    """An entry cannot have happened in the state that it met."""


class Beginning:
    """The state of an allocator before the first entry of a snapshot's history.

    Args:
        snapshot: with its history.
        options: the allocator's.
        is_over: returns whether the result is no longer needed.

    Attributes:
        reservation_bytes: the addresses that an expandable segment reserves, as far as known.

    Raises:
        StudioError: there is no history, or it contradicts itself or the snapshot.
    """

    def __init__(
        self, snapshot: Snapshot, options: AllocatorConfiguration, is_over: Callable[[], bool]
    ) -> None:
        history = snapshot.history
        if not any(entry.action == "alloc" for entry in history):
            raise _refused(
                "This snapshot has no history. Call torch.cuda.memory._record_memory_history() "
                "before the part that you want to see, and dump it before you stop the recording."
            )
        _check_order(history)
        try:
            undone = _Undone(snapshot)
        except _ContradictionError:
            raise _refused("Two segments of this snapshot overlap.") from None
        frees = action_of_frees(history)
        number = len(history)
        try:
            for entry in reversed(history):
                number -= 1
                if number % _TURN == 0 and is_over():
                    raise _refused("The reading was stopped.")
                undone.undo(entry, frees)
        except _ContradictionError:
            raise _refused(_contradiction(history[number], number)) from None
        self._undone, self._history, self._options = undone, history, options
        self._addresses = sorted(undone.held)
        self._first_used = _first_used(undone, self._addresses, history, frees)
        self.reservation_bytes = RESERVED_BYTES
        if options.expandable_segments:
            self.reservation_bytes = _reservation_bytes(history, undone.stretches.values())

    def segments(self, rests: Mapping[int, int]) -> list[FoundSegment]:
        """Return its segments.

        Args:
            rests: what is known of rests that belong to tensors, in bytes by address.

        Raises:
            StudioError: tensors overlap, or are outside of every segment.
        """
        first_used = dict(self._first_used)
        for address, rest_bytes in rests.items():
            requested_bytes = self._undone.held[address].requested_bytes
            first_used[address] = self._options.rounded_bytes(requested_bytes) + rest_bytes
        stretches = sorted(self._undone.stretches.values())
        blocks = {one: list(self._blocks(one, first_used)) for one in stretches}
        in_use = sum(block.state == IN_USE for found in blocks.values() for block in found)
        if in_use != len(self._addresses):
            raise _refused("This history has tensors outside of every segment.")
        if not self._options.expandable_segments:
            return [
                FoundSegment(one.stream, one.is_small, tuple(found))
                for one, found in blocks.items()
            ]
        pools: dict[tuple[int, bool], list[_Stretch]] = {}
        for one in stretches:
            pools.setdefault((one.stream, one.is_small), []).append(one)
        return [segment for pool in pools.values() for segment in self._expandable(pool, blocks)]

    def _blocks(self, stretch: _Stretch, first_used: Mapping[int, int]) -> Iterator[FoundBlock]:
        first, end = (bisect_left(self._addresses, at) for at in (stretch.address, stretch.end))
        inside = self._addresses[first:end]
        return _blocks(stretch, inside, self._undone, first_used, self._options)

    def _expandable(
        self, stretches: Sequence[_Stretch], blocks: Mapping[_Stretch, Sequence[FoundBlock]]
    ) -> Iterator[FoundSegment]:
        """Yield the expandable segments of one pool, with their addresses without memory."""
        stream, is_small = stretches[0].stream, stretches[0].is_small
        page_bytes = self._options.page_bytes(is_small=is_small)
        base = _base_of(stretches, self._history, page_bytes)
        room_bytes = -(-self.reservation_bytes // page_bytes) * page_bytes
        found: list[FoundBlock] = []
        at = base
        for stretch in stretches:
            if stretch.address >= base + room_bytes:  # the next reservation of the same pool
                found.append(FoundBlock(at, base + room_bytes - at, 0, UNMAPPED))
                yield FoundSegment(stream, is_small, tuple(found))
                base = at = stretch.address
                found = []
            elif stretch.address > at:
                found.append(FoundBlock(at, stretch.address - at, 0, UNMAPPED))
            found += blocks[stretch]
            at = stretch.end
        found.append(FoundBlock(at, max(base + room_bytes, at + _PAGE_BYTES) - at, 0, UNMAPPED))
        yield FoundSegment(stream, is_small, tuple(found))


def action_of_frees(history: Iterable[SnapshotEntry]) -> str:
    """Return the action that makes memory free; recordings may skip one of both."""
    actions = {entry.action for entry in history}
    return "free_completed" if "free_completed" in actions else "free_requested"


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)


def _contradiction(entry: SnapshotEntry, number: int) -> str:
    return (
        f"The history and the snapshot contradict each other at entry {number + 1:,} "
        f"({entry.action} at {entry.address:#x}): it was changed, or the snapshot was made after "
        "the recording had been stopped."
    )


def _check_order(history: Sequence[SnapshotEntry]) -> None:
    times_us = np.array([entry.time_us for entry in history], np.int64)
    latest_us = np.maximum.accumulate(times_us)
    backwards = np.flatnonzero((times_us > 0) & (times_us < latest_us - _MOST_BACKWARDS_US))
    if len(backwards):
        raise _refused(f"The time of this history goes back at entry {backwards[0] + 1:,}.")


def _reservation_bytes(history: Iterable[SnapshotEntry], stretches: Iterable[_Stretch]) -> int:
    """Return how many addresses an expandable segment reserves, as far as a history shows it.

    The driver puts reservations side by side, and each has 1⅛ times the card's memory. So the
    distance from the lowest address of the small pool to that of the large one, or the other way
    round, is that size, or more if something lies between them.
    """
    lowest: dict[tuple[int, bool], int] = {}
    found = [(stretch.stream, stretch.is_small, stretch.address) for stretch in stretches]
    found += [
        (entry.stream, entry.size_bytes <= SMALL_SEGMENT_BYTES, entry.address)
        for entry in history
        if entry.action == "segment_map"
    ]
    for stream, is_small, address in found:
        key = stream, is_small
        lowest[key] = min(lowest.get(key, address), address)
    bases = sorted(lowest.values())
    return min((high - low for low, high in itertools.pairwise(bases)), default=RESERVED_BYTES)


RESERVED_BYTES = 1 << 45
"""The addresses of an expandable segment of unknown size: more than any card has."""

_PAGE_BYTES = 2 << 20


def _base_of(
    stretches: Sequence[_Stretch], history: Sequence[SnapshotEntry], page_bytes: int
) -> int:
    """Return the lowest address that an expandable segment is known to have had.

    Pages that had been unmapped before the history began are mapped again from the lowest one on,
    so they show in it.
    """
    base, end = stretches[0].address, stretches[-1].end
    for entry in history:
        is_same = entry.action == "segment_map" and entry.stream == stretches[0].stream
        if is_same and base - RESERVED_BYTES < entry.address < end:
            is_same = (entry.size_bytes <= SMALL_SEGMENT_BYTES) == stretches[0].is_small
            is_same &= (base - entry.address) % page_bytes == 0
            if is_same and base - entry.address < _FARTHEST_BYTES:
                base = min(base, entry.address)
    return base


_FARTHEST_BYTES = 256 << 30


def _blocks(
    stretch: _Stretch,
    inside: Sequence[int],
    undone: _Undone,
    first_used: Mapping[int, int],
    options: AllocatorConfiguration,
) -> Iterator[FoundBlock]:
    """Yield the blocks of a stretch, from its beginning to its end."""
    at = stretch.address
    for place, address in enumerate(inside):
        if address < at:
            raise _refused("Two tensors of this history overlap.")
        if address > at:
            yield FoundBlock(at, address - at, 0, FREE)
        held = undone.held[address]
        limit = inside[place + 1] if place + 1 < len(inside) else stretch.end
        size_bytes = held.size_bytes
        if size_bytes is None:
            size_bytes = _block_bytes(
                held.requested_bytes, limit - address, stretch, first_used.get(address), options
            )
        if address + size_bytes > limit:
            raise _refused("Two tensors of this history overlap.")
        yield FoundBlock(address, size_bytes, held.requested_bytes, IN_USE)
        at = address + size_bytes
    if at < stretch.end:
        yield FoundBlock(at, stretch.end - at, 0, FREE)


def _block_bytes(
    requested_bytes: int,
    room_bytes: int,
    stretch: _Stretch,
    used_after_bytes: int | None,
    options: AllocatorConfiguration,
) -> int:
    """Return the size of a block whose request is known.

    Args:
        requested_bytes: the request.
        room_bytes: from the block's address to the next tensor.
        stretch: where it is.
        used_after_bytes: the distance to the first tensor that was put behind it; None if unknown.
        options: the allocator's.
    """
    size_bytes = options.rounded_bytes(max(requested_bytes, 1))
    rest_bytes = room_bytes - size_bytes
    if stretch.is_small or options.expandable_segments or requested_bytes > room_bytes:
        return size_bytes
    if rest_bytes <= SMALL_BYTES or size_bytes >= options.max_split_bytes:
        return room_bytes
    if used_after_bytes is not None and 0 < used_after_bytes - size_bytes <= SMALL_BYTES:
        return used_after_bytes
    return size_bytes


def _first_used(
    undone: _Undone, addresses: Sequence[int], history: Sequence[SnapshotEntry], frees: str
) -> dict[int, int]:
    """Return the distance from each tensor of the beginning to the first tensor put behind it.

    Only tensors count that were put there before anything beside it was freed.
    """
    order = list(addresses)
    open_ones = {address for address, held in undone.held.items() if held.size_bytes is None}
    found: dict[int, int] = {}
    for entry in history:
        if not open_ones:
            break
        if entry.action == "alloc":
            place = bisect_left(order, entry.address)
            before = order[place - 1] if place else None
            if before in open_ones:
                distance = entry.address - before
                found[before] = min(found.get(before, distance), distance)
            insort(order, entry.address)
        elif entry.action == frees:
            place = bisect_left(order, entry.address)
            if place < len(order) and order[place] == entry.address:
                del order[place]
            open_ones.discard(entry.address)
    return found
