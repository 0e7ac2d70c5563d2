"""A history over time: what was allocated by which line of code, and what was reserved.

The categories are those of PyTorch's profiler, as far as stacks and lifetimes tell: an allocation
of the forward pass that is still there in the backward pass is an activation, one that is freed
within the pass is temporary. Every array has a value for each entry, which holds after it. They
are bytes here, as this crosses from a child process to the window.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from gpu_studio.core.memory.allocator.blocks import IN_USE
from gpu_studio.core.memory.replay.start import SEGMENT_ACTIONS
from gpu_studio.core.memory.snapshot_file import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from gpu_studio.core.memory.replay.replay import Replay
    from gpu_studio.core.memory.snapshot_file import Snapshot, SnapshotEntry

MOST_LAYERS = 7
_MOST_MARKS = 200
_S = 1e-6


class Category(Enum):
    """What an allocation is for; in the order in which they are stacked, the lowest first."""

    BEFORE = "before"
    OPTIMIZER_STATE = "optimizer_state"
    PARAMETER = "parameter"
    GRADIENT = "gradient"
    ACTIVATION = "activation"
    UNKNOWN = "unknown"
    TEMPORARY = "temporary"
    OTHER = "other"


# What the calls of a part of PyTorch are for, if they outlive it; otherwise they are temporary.
_LASTING = {
    Origin.UNKNOWN: Category.UNKNOWN,
    Origin.MOVE: Category.PARAMETER,
    Origin.FORWARD: Category.ACTIVATION,
    Origin.BACKWARD: Category.GRADIENT,
    Origin.OPTIMIZER: Category.OPTIMIZER_STATE,
}
_ORDER, _ORIGINS = tuple(Category), tuple(Origin)


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """What one line of code holds, or all the lines that are too small to be shown.

    Attributes:
        line: as in `SnapshotEntry`; empty for several, or if it was not recorded.
        line_count: how many lines these are.
        peak_bytes: what it held when the most was allocated.
        tops: of this layer in the stack, after each entry, in bytes; float32, shape (n,).
    """

    category: Category
    line: str
    line_count: int
    peak_bytes: int
    tops: bytes


class MarkKind(Enum):
    """What happened at a mark."""

    OUT_OF_MEMORY = "out_of_memory"
    EMPTY_CACHE = "empty_cache"


class HistoryMark(msgspec.Struct, frozen=True):
    """Something that happened at an entry; ``size_bytes`` was asked for."""

    entry: int
    kind: MarkKind
    size_bytes: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A history, entry by entry.

    Attributes:
        is_timed: whether times were recorded; otherwise entries are counted from 0.
        times: in seconds since the first entry, or its number; float64, shape (n,).
        allocated: bytes, float64, shape (n,).
        reserved: bytes, float64, shape (n,).
        asked, given_back: the entries at which the driver gave and got memory; int32.
        layers: the lowest first.
        marks: at most a few hundred, in the order of their entries.
        lines: the different lines of code.
        line_numbers: the index of each entry's line in ``lines``; int32, shape (n,).
    """

    is_timed: bool
    times: bytes
    allocated: bytes
    reserved: bytes
    asked: bytes
    given_back: bytes
    layers: tuple[Layer, ...]
    marks: tuple[HistoryMark, ...]
    lines: tuple[str, ...]
    line_numbers: bytes

    def line_of(self, entry: int) -> str:
        """Return the line of code of an entry; empty if it was not recorded."""
        return self.lines[int(np.frombuffer(self.line_numbers, np.int32)[entry])]

    def entry_at(self, time: float) -> int:
        """Return the first entry from a time on, or the last one; see ``times``."""
        times = np.frombuffer(self.times)
        return min(int(np.searchsorted(times, time)), len(times) - 1)

    def time_of(self, entry: int) -> float:
        """Return the time of an entry; see ``times``."""
        return float(np.frombuffer(self.times)[entry])


def timeline(snapshot: Snapshot, replayed: Replay) -> Timeline:
    """Return a replayed history over time."""
    history = snapshot.history
    times, is_timed = _times(history)
    reserved, asked, given_back = _reserved(history, replayed)
    places, numbers = _places(history)
    lines = tuple(dict.fromkeys(place.line for place in places))
    line_at = np.array([lines.index(place.line) for place in places], np.int32)
    layers, allocated = _Stack(_held(replayed, places, numbers), len(history)).layers()
    marks = list(_marks(history, replayed))
    marks.sort(key=lambda mark: (mark.kind is not MarkKind.OUT_OF_MEMORY, mark.entry))
    shown = sorted(marks[:_MOST_MARKS], key=lambda mark: mark.entry)
    return Timeline(
        is_timed=is_timed,
        times=times.tobytes(),
        allocated=allocated.tobytes(),
        reserved=reserved.tobytes(),
        asked=np.asarray(asked, np.int32).tobytes(),
        given_back=np.asarray(given_back, np.int32).tobytes(),
        layers=tuple(layers),
        marks=tuple(shown),
        lines=lines,
        line_numbers=line_at[numbers].tobytes(),
    )


def _times(history: Sequence[SnapshotEntry]) -> tuple[NDArray[np.float64], bool]:
    recorded = np.array([entry.time_us for entry in history], np.int64)
    if not recorded.all() or recorded.min() == recorded.max():
        return np.arange(len(history), dtype=np.float64), False
    return (np.maximum.accumulate(recorded) - recorded[0]) * _S, True


def _reserved(
    history: Sequence[SnapshotEntry], replayed: Replay
) -> tuple[NDArray[np.float64], list[int], list[int]]:
    """Return what was reserved after each entry, and where that grew and shrank."""
    changes = np.zeros(len(history))
    asked: list[int] = []
    given_back: list[int] = []
    for number, entry in enumerate(history):
        if entry.action in SEGMENT_ACTIONS:
            grows = entry.action in ("segment_alloc", "segment_map")
            changes[number] = entry.size_bytes if grows else -entry.size_bytes
            (asked if grows else given_back).append(number)
    return replayed.start_bytes + np.cumsum(changes), asked, given_back


def _marks(history: Sequence[SnapshotEntry], replayed: Replay) -> Iterable[HistoryMark]:
    for call in replayed.calls:
        if call.action == "empty_cache":
            yield HistoryMark(call.entry, MarkKind.EMPTY_CACHE, 0)
        elif call.action == "oom":
            size_bytes = history[call.entry].size_bytes
            yield HistoryMark(call.entry, MarkKind.OUT_OF_MEMORY, size_bytes)


class _Place(NamedTuple):
    """A line of code, and the part of PyTorch that it called."""

    line: str
    origin: Origin


def _places(history: Sequence[SnapshotEntry]) -> tuple[list[_Place], NDArray[np.int32]]:
    """Return the different places, and the number of each entry's one."""
    numbers: dict[_Place, int] = {}
    found = []
    line, origin, number = None, None, 0
    for entry in history:
        # An entry is mostly of the same place as the one before, and a look is faster than a hash.
        if entry.line is not line or entry.origin is not origin:
            line, origin = entry.line, entry.origin
            number = numbers.setdefault(_Place(line, origin), len(numbers))
        found.append(number)
    return list(numbers), np.array(found, np.int32)


class _Held(NamedTuple):
    """The tensors of a history; arrays of the shape (tensors,).

    Attributes:
        begins: the entries that made them; 0 for those from before.
        ends: the entries that freed them; ``_NEVER`` if none did.
        groups: the indexes of their categories and lines in ``names``.
    """

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    sizes: NDArray[np.float64]
    groups: NDArray[np.int64]
    names: list[tuple[Category, str]]


_NEVER = np.iinfo(np.int64).max


def _held(replayed: Replay, places: Sequence[_Place], numbers: NDArray[np.int32]) -> _Held:
    before = [
        block.size_bytes
        for segment in replayed.start
        for block in segment.blocks
        if block.state == IN_USE
    ]
    made = [call.entry for call in replayed.calls if call.action == "alloc"]
    freed = [call for call in replayed.calls if call.action == "free"]
    begins = np.array([0] * len(before) + made, np.int64)
    ends = np.full(len(begins), _NEVER)
    if freed:
        names = np.array([call.name for call in freed], np.int64)
        at = np.array([call.entry for call in freed], np.int64)
        # The tensors from before are called -1, -2 and so on.
        ends[np.where(names < 0, -1 - names, names + len(before))] = at
    origins = np.array([_ORIGINS.index(place.origin) for place in places])[numbers[begins]]
    phases = _phases(begins[len(before) :], origins[len(before) :])
    last = np.concatenate([[0], phases])
    is_passing = last[np.searchsorted(begins[len(before) :], ends, "right")] == np.concatenate(
        [np.full(len(before), -1), phases]
    )
    is_passing &= (ends != _NEVER) & (origins != _ORIGINS.index(Origin.UNKNOWN))
    categories = np.array([_ORDER.index(_LASTING[origin]) for origin in _ORIGINS])[origins]
    categories[is_passing] = _ORDER.index(Category.TEMPORARY)
    lines = numbers[begins].astype(np.int64)
    categories[: len(before)], lines[: len(before)] = _ORDER.index(Category.BEFORE), 0
    keys, groups = np.unique(lines * len(_ORDER) + categories, return_inverse=True)
    named = [(_ORDER[key % len(_ORDER)], places[key // len(_ORDER)].line) for key in keys.tolist()]
    named = [(kind, "" if kind is Category.BEFORE else line) for kind, line in named]
    sizes = np.array([*before, *replayed.block_bytes], np.float64)
    return _Held(begins, ends, sizes, groups, named)


def _phases(begins: NDArray[np.int64], origins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the pass (forward, backward, a step) in which each tensor was made.

    A call from nowhere known belongs to the pass around it.
    """
    known = np.flatnonzero(origins != _ORIGINS.index(Origin.UNKNOWN))
    changes = np.zeros(len(begins), np.int64)
    changes[known[1:]] = origins[known[1:]] != origins[known[:-1]]
    changes[known[:1]] = 1
    return np.cumsum(changes)


class _Stack:
    """What the groups of tensors hold after each of a number of entries."""

    def __init__(self, held: _Held, count: int) -> None:
        self._held, self._count = held, count
        self._allocated = self._sum(np.ones(len(held.sizes), np.bool_))
        peak = int(self._allocated.argmax())
        is_there = (held.begins <= peak) & (held.ends > peak)
        present = np.where(is_there, held.sizes, 0.0)
        self._at_peak = np.bincount(held.groups, present, len(held.names)).astype(np.int64).tolist()

    def layers(self) -> tuple[list[Layer], NDArray[np.float64]]:
        """Return the layers of the largest groups and of all others, and the sum of all."""
        names, at_peak = self._held.names, self._at_peak
        largest = sorted(range(len(names)), key=lambda at: -at_peak[at])
        order = {at: (_ORDER.index(names[at][0]), -at_peak[at]) for at in largest[:MOST_LAYERS]}
        layers = []
        top = np.zeros(self._count)
        for at in sorted(order, key=order.__getitem__):
            top += self._sum(self._held.groups == at)
            category, line = names[at]
            layers.append(_layer(category, line, 1, at_peak[at], top))
        others = largest[MOST_LAYERS:]
        if others:
            count = len({names[at][1] for at in others})
            peak_bytes = sum(at_peak[at] for at in others)
            layers.append(_layer(Category.OTHER, "", count, peak_bytes, self._allocated))
        return layers, self._allocated

    def _sum(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        held, count = self._held, self._count
        changes = np.bincount(held.begins[chosen], held.sizes[chosen], count)
        chosen = chosen & (held.ends != _NEVER)
        changes -= np.bincount(held.ends[chosen], held.sizes[chosen], count)
        return np.cumsum(changes)


def _layer(
    category: Category, line: str, count: int, peak_bytes: int, top: NDArray[np.float64]
) -> Layer:
    return Layer(
        category=category,
        line=line,
        line_count=count,
        peak_bytes=peak_bytes,
        tops=top.astype(np.float32).tobytes(),
    )
