"""Replays the history of a snapshot with the allocator's model, and compares every address.

The driver's answers come from the history: whether it had memory, and where. All else is the
model's own: which block it takes, when it asks the driver, what it gives back. So an address that
is met says that the model knew the whole state of the allocator at that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.allocator.blocks import FREE, IN_USE, SMALL_BYTES, UNMAPPED
from gpu_studio.core.memory.allocator.errors import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.allocator.options import MIN_BLOCK_BYTES, parse_configuration
from gpu_studio.core.memory.allocator.segments import FoundSegment, ModelledCard
from gpu_studio.core.memory.replay.start import (
    RESERVED_BYTES,
    SEGMENT_ACTIONS,
    Beginning,
    action_of_frees,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.memory.allocator.blocks import Block
    from gpu_studio.core.memory.allocator.options import AllocatorConfiguration
    from gpu_studio.core.memory.snapshot_file import Snapshot, SnapshotEntry

_ASKED = frozenset({"segment_alloc", "segment_map"})
_TURN = 4096
_UNREACHED = 0.5
_MOST_RESTS = 200
_EXPANDABLE = "expandable_segments:True"


class MemoryCall(msgspec.Struct, frozen=True):
    """What the program asked of the allocator: the history without the allocator's own part.

    Attributes:
        action: ``alloc``, ``free``, ``empty_cache`` or ``oom``, which is an allocation that failed.
        name: of the tensor, for ``alloc`` and ``free``.
        size_bytes: the request; for ``oom`` after rounding.
        entry: the index in the history.
    """

    action: str
    name: int
    size_bytes: int
    stream: int
    entry: int


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """A history, replayed.

    Attributes:
        conf: the options of the recorded program.
        start: the segments before it.
        calls: what the program asked.
        allocations: how many there were.
        addresses_met: how many of them the model put at the recorded address.
        asked, asked_met: segments (or pages) that the driver gave, and those that the model asked
            for at the same moment and in the same size.
        given_back, given_back_met: the same for what went back to the driver.
        first_miss: the index of the first entry that the model did not meet; None if it met all.
        miss_reason: what in the history is not modeled; empty if nothing is known.
        peak_allocated_bytes, peak_reserved_bytes: over the history.
        unused_at_peak_bytes: reserved and held by no tensor when the most was reserved.
        block_bytes: the size of each allocation's block, in the order of their names.
    """

    conf: str
    start: tuple[FoundSegment, ...]
    calls: tuple[MemoryCall, ...]
    allocations: int
    addresses_met: int
    asked: int
    asked_met: int
    given_back: int
    given_back_met: int
    first_miss: int | None
    miss_reason: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    unused_at_peak_bytes: int
    block_bytes: tuple[int, ...]

    @property
    def ooms(self) -> int:
        """How often the recorded program was out of memory."""
        return sum(call.action == "oom" for call in self.calls)

    @property
    def start_bytes(self) -> int:
        """What was reserved before the history."""
        return sum(
            block.size_bytes
            for segment in self.start
            for block in segment.blocks
            if block.state != UNMAPPED
        )

    @property
    def is_exact(self) -> bool:
        """Whether the model did what PyTorch did, all of it."""
        return self.first_miss is None


def options_of(snapshot: Snapshot) -> AllocatorConfiguration:
    """Return the options of the recorded program.

    Whether its segments were expandable is seen, not believed: Windows and old drivers refuse it,
    and the oldest snapshots have no options.

    Raises:
        StudioError: they are not modeled.
    """
    conf = snapshot.conf
    actions = {entry.action for entry in snapshot.history}
    is_expandable = "segment_map" in actions or any(snapshot.whole.is_expandable)
    is_fixed = "segment_alloc" in actions or not all(snapshot.whole.is_expandable)
    try:
        options = parse_configuration(conf)
        if options.expandable_segments and is_fixed and not is_expandable:
            options = parse_configuration(f"{conf},expandable_segments:False")
        elif is_expandable and not options.expandable_segments:
            options = parse_configuration(",".join(filter(None, (conf, _EXPANDABLE))))
    except ValueError as error:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The options of the recorded program cannot be modeled: {error}.",
        ) from error
    return options


def replay(snapshot: Snapshot, is_over: Callable[[], bool] = lambda: False) -> Replay:
    """Return what the model did with the history of a snapshot.

    Raises:
        StudioError: there is no history, it contradicts itself, or its options are not modeled.
    """
    options = options_of(snapshot)
    beginning = Beginning(snapshot, options, is_over)
    rests: dict[int, int] = {}
    while True:
        replayer = _Replayer(snapshot, beginning, rests, options)
        replayed = replayer.run(is_over)
        doubt = replayer.doubt
        if (
            doubt is None
            or len(rests) >= _MOST_RESTS
            or rests.get(doubt.address) == doubt.rest_bytes
        ):
            return replayed
        rests[doubt.address] = doubt.rest_bytes


class _Doubt(NamedTuple):
    """A tensor of the beginning, and the least rest behind its request that belongs to it.

    The model took the free block behind it, and PyTorch did not: so it was smaller.
    """

    address: int
    rest_bytes: int


class _RecordedDriver(ModelledCard):
    """Answers as the driver did: from the history's next entries.

    Attributes:
        at: the index of the next entry that was not used.
        misses: entries and requests that do not fit each other.
    """

    def __init__(self, history: Sequence[SnapshotEntry], reservation_bytes: int) -> None:
        # An expandable segment has 1⅛ times the card's memory.
        super().__init__(reservation_bytes * 8 // 9, 0)
        self._history = history
        self._is_restored = False
        self._refused_at = -1
        self._given: list[SnapshotEntry] = []
        self.at = 0
        self.reserved_bytes = self.peak_reserved_bytes = 0
        self.asked = self.asked_met = self.given_back = self.given_back_met = 0
        self.first_miss: int | None = None

    def begin(self) -> None:
        """End the restoring of what was there before."""
        self._is_restored = True
        self.peak_reserved_bytes = self.reserved_bytes

    def miss(self) -> None:
        """Remember that the model and the history differ here."""
        if self.first_miss is None:
            self.first_miss = min(self.at, len(self._history) - 1)

    @property
    def next(self) -> SnapshotEntry | None:
        """The next entry; None after the last."""
        return self._history[self.at] if self.at < len(self._history) else None

    def reserve(self, size_bytes: int) -> bool:
        if self._given and self._refused_at != self.at:
            self._refused_at = self.at
            return False
        self.skip_given()
        entry = self.next
        if self._is_restored:
            if entry is not None and entry.action in _ASKED:
                if entry.size_bytes != size_bytes:
                    self.miss()
                    return super().reserve(size_bytes)
            elif entry is not None and (entry.action in SEGMENT_ACTIONS or entry.action == "oom"):
                return False
            else:
                self.miss()
        self._count(size_bytes)
        return True

    def known_garbage(self, idle: Sequence[Block]) -> list[Block]:
        self._collect_given()
        freed = {entry.address for entry in self._given if entry.action == "segment_free"}
        return [block for block in idle if block.address in freed]

    def give(self, size_bytes: int) -> None:
        self.reserved_bytes -= size_bytes

    def addresses(self, size_bytes: int) -> int:
        address = self._next_asked()
        return super().addresses(size_bytes) if address is None else address

    def may_map(self, address: int) -> bool:
        entry = self.next
        return entry is None or entry.action not in _ASKED or entry.address == address

    def _next_asked(self) -> int | None:
        """Return where the driver gives memory next; None if not before the next call."""
        # An expandable segment reserves its addresses before the driver may refuse its memory.
        place = self.at
        while place < len(self._history) and self._history[place].action in SEGMENT_ACTIONS:
            if self._history[place].action in _ASKED:
                return self._history[place].address
            place += 1
        return None

    def note(self, action: str, address: int, size_bytes: int) -> None:
        if action in _ASKED:
            entry = self.next
            if entry is not None and entry.action == action and entry.address == address:
                self.asked_met += 1
            else:
                self.miss()
            if entry is not None and entry.action in _ASKED:
                self.asked += 1
                self.at += 1
            return
        self._collect_given()
        for place, entry in enumerate(self._given):
            if (entry.action, entry.address, entry.size_bytes) == (action, address, size_bytes):
                del self._given[place]
                self.given_back_met += 1
                return
        self.miss()

    def _count(self, size_bytes: int) -> None:
        self.reserved_bytes += size_bytes
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def _collect_given(self) -> None:
        """Take the next entries of memory that went back: their order is the driver's own."""
        while (entry := self.next) is not None and entry.action in (
            "segment_free", "segment_unmap",
        ):  # fmt: skip
            self._given.append(entry)
            self.given_back += 1
            self.at += 1

    def skip_given(self) -> None:
        """Leave behind what the model was to give back, and did not."""
        if self._given:
            self._given.clear()
            self.miss()


class _Replayer:
    def __init__(
        self,
        snapshot: Snapshot,
        beginning: Beginning,
        rests: dict[int, int],
        options: AllocatorConfiguration,
    ) -> None:
        self._history = snapshot.history
        self._options = options
        self._start = tuple(beginning.segments(rests))
        self.doubt: _Doubt | None = None
        self._driver = _RecordedDriver(snapshot.history, beginning.reservation_bytes)
        self._model = AllocatorModel(RESERVED_BYTES, conf=options.text, card=self._driver)
        if options.garbage_collection_threshold:
            self._model.set_memory_fraction(_UNREACHED)  # it collects garbage only with a limit
        self._held: dict[int, tuple[Block, int]] = {}
        for number, (address, block) in enumerate(self._model.restore(self._start).items()):
            self._held[address] = (block, -1 - number)
        self._driver.begin()
        self._allocated_bytes = sum(block.size_bytes for block, _ in self._held.values())
        self._peak_allocated_bytes = self._allocated_bytes
        self._most_reserved_bytes = _most_reserved(snapshot.history, self._driver.reserved_bytes)
        self._calls: list[MemoryCall] = []
        self._block_bytes: list[int] = []
        self._peak_reserved_bytes = self._unused_at_peak_bytes = 0
        self._allocations = self._met = 0

    def run(self, is_over: Callable[[], bool]) -> Replay:
        history, driver = self._history, self._driver
        frees = action_of_frees(history)
        count = len(history)
        while (at := driver.at) < count and self.doubt is None:
            if at % _TURN == 0 and is_over():
                raise StudioError(FailureKind.BAD_REQUEST, "The reading was stopped.")
            entry = history[at]
            action = entry.action
            if action == frees:
                self._free(entry)
                driver.at = at + 1
            elif action == "alloc" or action == "oom":
                self._allocate(at)
            elif action in SEGMENT_ACTIONS:
                self._segments_follow()
            else:
                driver.at = at + 1
        driver.skip_given()
        first_miss = driver.first_miss
        return Replay(
            conf=self._options.text,
            start=self._start,
            calls=tuple(self._calls),
            allocations=self._allocations,
            addresses_met=self._met,
            asked=driver.asked,
            asked_met=driver.asked_met,
            given_back=driver.given_back,
            given_back_met=driver.given_back_met,
            first_miss=first_miss,
            miss_reason="" if first_miss is None else self._reason(first_miss),
            peak_allocated_bytes=self._peak_allocated_bytes,
            peak_reserved_bytes=driver.peak_reserved_bytes,
            unused_at_peak_bytes=self._unused_at_peak_bytes,
            block_bytes=tuple(self._block_bytes),
        )

    def _reason(self, first_miss: int) -> str:
        if any(entry.is_private for entry in self._history[: first_miss + 1]):
            return "it has a pool of its own, of a CUDA graph or a MemPool, which is not modeled"
        if self._options.expandable_segments and self._start:
            return "where its expandable segments began is not in the file"
        return ""

    def _segments_follow(self) -> None:
        """Handle memory that comes or goes: for the next allocation, or by empty_cache."""
        history, driver = self._history, self._driver
        place = asked = driver.at
        while place < len(history) and history[place].action in SEGMENT_ACTIONS:
            if history[place].action in _ASKED:
                asked = place
            place += 1
        follower = history[place] if place < len(history) else None
        is_for_it = follower is not None and follower.action in ("alloc", "oom")
        first = history[driver.at]
        if first.action in _ASKED:
            if is_for_it:
                self._allocate(place)
            else:
                driver.miss()
                driver.at += 1
            return
        if is_for_it and follower is not None and self._makes_room(follower, history[asked]):
            self._allocate(place)
            return
        self._calls.append(MemoryCall("empty_cache", 0, 0, 0, driver.at))
        self._model.empty_cache()
        if driver.next is first:
            driver.miss()
            driver.at += 1
        driver.skip_given()

    def _makes_room(self, follower: SnapshotEntry, asked: SnapshotEntry) -> bool:
        """Return whether memory went back because an allocation found the card full.

        Otherwise the program called empty_cache just before it: the allocation did not need the
        driver, or the card had been seen to have room for it.
        """
        if follower.action == "oom":
            return True
        if asked.action not in _ASKED or self._model.has_cached(
            follower.size_bytes, follower.stream
        ):
            return False
        if self._model.gives_back_early:
            return True
        wanted_bytes = self._driver.reserved_bytes + asked.size_bytes
        return wanted_bytes > self._most_reserved_bytes

    def _allocate(self, place: int) -> None:
        """Make the allocation of an entry; what the driver said to it comes before the entry."""
        driver, entry = self._driver, self._history[place]
        is_oom = entry.action == "oom"
        name = self._allocations
        self._calls.append(
            MemoryCall("oom" if is_oom else "alloc", name, entry.size_bytes, entry.stream, place)
        )
        try:
            block = self._model.allocate(entry.size_bytes, entry.stream)
        except ModelledOutOfMemory:
            block = None
        driver.skip_given()
        if driver.at != place or (block is None) != is_oom:
            driver.miss()
        driver.at = place
        if not is_oom:
            self._allocations += 1
            self._block_bytes.append(entry.size_bytes if block is None else block.size_bytes)
            if block is not None and block.address == entry.address:
                self._met += 1
            else:
                if block is not None and driver.first_miss is None:
                    self.doubt = self._doubt_of(block)
                driver.miss()
            if block is not None:
                self._held[entry.address] = (block, name)
                self._allocated_bytes += block.size_bytes
                if self._allocated_bytes > self._peak_allocated_bytes:
                    self._peak_allocated_bytes = self._allocated_bytes
                if driver.reserved_bytes > self._peak_reserved_bytes:
                    self._peak_reserved_bytes = driver.reserved_bytes
                    self._unused_at_peak_bytes = driver.reserved_bytes - self._allocated_bytes
        elif block is not None:
            self._model.free(block)
        driver.at = place + 1

    def _doubt_of(self, block: Block) -> _Doubt | None:
        """Return which tensor of the beginning may be larger, if a wrong block was taken for it."""
        before = block.prev
        if before is None or before.state != IN_USE or self._options.expandable_segments:
            return None
        name = self._held.get(before.address, (before, 0))[1]
        if name >= 0 or block.pool.is_small:
            return None
        free_bytes = block.size_bytes
        if block.next is not None and block.next.state == FREE:
            free_bytes += block.next.size_bytes
        wanted_bytes = self._options.rounded_bytes(block.requested_bytes)
        rest_bytes = before.size_bytes - self._options.rounded_bytes(before.requested_bytes)
        rest_bytes += free_bytes - wanted_bytes + MIN_BLOCK_BYTES
        return _Doubt(before.address, rest_bytes) if rest_bytes <= SMALL_BYTES else None

    def _free(self, entry: SnapshotEntry) -> None:
        held = self._held.pop(entry.address, None)
        if held is None:
            self._driver.miss()
            return
        block, name = held
        self._allocated_bytes -= block.size_bytes
        self._calls.append(MemoryCall("free", name, 0, entry.stream, self._driver.at))
        self._model.free(block)


def _most_reserved(history: Sequence[SnapshotEntry], reserved_bytes: int) -> int:
    most_bytes = reserved_bytes
    for entry in history:
        if entry.action in _ASKED:
            reserved_bytes += entry.size_bytes
            most_bytes = max(most_bytes, reserved_bytes)
        elif entry.action in SEGMENT_ACTIONS:
            reserved_bytes -= entry.size_bytes
    return most_bytes
