"""A history over time: what was allocated by which line of code, and what was reserved.

The categories are those of PyTorch's profiler, as far as stacks and lifetimes tell: an allocation
of the forward pass that is still there in the backward pass is an activation, one that is freed
within the pass is temporary. Every array has a value for each entry, which holds after it. They
are bytes here, as this crosses from a child process to the window.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

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
_ORDER = tuple(Category)


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
        left_out_marks: how many more there are.
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
    left_out_marks: int
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


_Groups = list[tuple[Category, str]]
_Changes = list[list[tuple[int, int]]]


def timeline(snapshot: Snapshot, replayed: Replay) -> Timeline:
    """Return a replayed history over time."""
    history = snapshot.history
    times, is_timed = _times(history)
    reserved, asked, given_back = _reserved(history, replayed)
    layers, allocated = _layers(history, replayed)
    marks = list(_marks(history, replayed))
    marks.sort(key=lambda mark: (mark.kind is not MarkKind.OUT_OF_MEMORY, mark.entry))
    shown = sorted(marks[:_MOST_MARKS], key=lambda mark: mark.entry)
    numbers: dict[str, int] = {}
    lines = [numbers.setdefault(entry.line, len(numbers)) for entry in history]
    return Timeline(
        is_timed=is_timed,
        times=times.tobytes(),
        allocated=allocated.tobytes(),
        reserved=reserved.tobytes(),
        asked=np.asarray(asked, np.int32).tobytes(),
        given_back=np.asarray(given_back, np.int32).tobytes(),
        layers=tuple(layers),
        marks=tuple(shown),
        left_out_marks=len(marks) - len(shown),
        lines=tuple(numbers),
        line_numbers=np.asarray(lines, np.int32).tobytes(),
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


def _layers(
    history: Sequence[SnapshotEntry], replayed: Replay
) -> tuple[list[Layer], NDArray[np.float64]]:
    """Return the layers, and the sum of all."""
    groups, held = _grouped(history, replayed)
    allocated = _summed(held, len(history))
    peak = int(allocated.argmax())
    at_peak = [sum(size for entry, size in kept if entry <= peak) for kept in held]
    largest = sorted(range(len(groups)), key=lambda at: -at_peak[at])
    shown = sorted(
        largest[:MOST_LAYERS], key=lambda at: (_ORDER.index(groups[at][0]), -at_peak[at])
    )
    others = largest[MOST_LAYERS:]
    layers = []
    top = np.zeros(len(history))
    for parts in (*([at] for at in shown), others):
        if not parts:
            continue
        top += _summed([held[part] for part in parts], len(history))
        category, line = groups[parts[0]] if parts is not others else (Category.OTHER, "")
        layers.append(
            Layer(
                category=category,
                line=line,
                line_count=len({groups[part][1] for part in parts}),
                peak_bytes=sum(at_peak[part] for part in parts),
                tops=top.astype(np.float32).tobytes(),
            )
        )
    return layers, allocated


def _summed(parts: _Changes, count: int) -> NDArray[np.float64]:
    """Return the running sum of what parts of a history got and freed, shape (count,)."""
    changes = np.zeros(count)
    for part in parts:
        entries, sizes = zip(*part, strict=True)
        np.add.at(changes, np.asarray(entries), np.asarray(sizes, np.float64))
    return np.cumsum(changes)


def _grouped(history: Sequence[SnapshotEntry], replayed: Replay) -> tuple[_Groups, _Changes]:
    """Return the categories and lines, and when each of them got and freed how many bytes."""
    freed = {call.name: call.entry for call in replayed.calls if call.action == "free"}
    phases = _phases(history)
    numbers: dict[tuple[Category, str], int] = {}
    held: _Changes = []

    def keep(group: tuple[Category, str], entry: int, size_bytes: int, end: int | None) -> None:
        number = numbers.setdefault(group, len(numbers))
        if number == len(held):
            held.append([])
        held[number].append((entry, size_bytes))
        if end is not None:
            held[number].append((end, -size_bytes))

    name = 0
    for segment in replayed.start:
        for block in segment.blocks:
            if block.state == IN_USE:
                name -= 1
                keep((Category.BEFORE, ""), 0, block.size_bytes, freed.get(name))
    for call in replayed.calls:
        if call.action == "alloc":
            entry, end = history[call.entry], freed.get(call.name)
            is_passing = end is not None and phases[end] == phases[call.entry]
            category = _LASTING[entry.origin]
            if is_passing and entry.origin is not Origin.UNKNOWN:
                category = Category.TEMPORARY
            keep((category, entry.line), call.entry, replayed.block_bytes[call.name], end)
    return list(numbers), held


def _phases(history: Sequence[SnapshotEntry]) -> list[int]:
    """Return the number of the pass (forward, backward, a step) that each entry belongs to."""
    phases, phase, last = [], 0, Origin.UNKNOWN
    for entry in history:
        if entry.action == "alloc" and entry.origin not in (Origin.UNKNOWN, last):
            phase, last = phase + 1, entry.origin
        phases.append(phase)
    return phases
