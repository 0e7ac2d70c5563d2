"""Random calls of an allocator, the same on every PC, and a record of what came of them.

The calls are made of PyTorch's allocator and of its model side by side (tests/soft), and what
PyTorch's did is kept in ``allocator_traces.json``, so that the model is held to it where there is
no CUDA build of PyTorch, too.
"""

import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

MIB = 1 << 20
STEPS = 2000
"""The length of a recorded run."""

RECORD = Path(__file__).with_name("allocator_traces.json")
_CHECK_EVERY = 250
_BOUNDARIES = (512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 64 * MIB)
_OFFSETS = (-512, -1, 0, 1, 512)


@dataclass(frozen=True)
class Setting:
    """What an allocator is told, and a counter that only this moves."""

    conf: str = ""
    fraction: float = 1.0
    total_mib: int = 1996
    moved: str = "inactive_split.all.allocated"
    seed: int = 7

    def __str__(self) -> str:
        return f"{self.conf or 'no option'}, fraction {self.fraction}, {self.total_mib} MiB"


_OVERSIZE = "oversize_segments.freed"
_REJECTED = "num_oom_rejections"
SETTINGS = [
    Setting(),
    Setting(total_mib=96),
    Setting(fraction=0.6),
    Setting("per_process_memory_fraction:0.4"),
    Setting("max_split_size_mb:64", moved=_OVERSIZE),
    Setting("max_split_size_mb:20,max_non_split_rounding_mb:40", moved=_OVERSIZE),
    Setting("roundup_power2_divisions:4"),
    Setting("roundup_power2_divisions:[1:8,64:2,256:8,>:1]"),
    Setting("garbage_collection_threshold:0.6", 0.8),
    Setting("garbage_collection_threshold:0.3,max_split_size_mb:128", 0.9),
    Setting("large_segment_size_mb:64"),
    Setting("large_segment_size_mb:11"),
    Setting("expandable_segments:True"),
    Setting("expandable_segments:True", total_mib=256),
    Setting("expandable_segments:True,large_segment_size_mb:32", 0.7),
    Setting("expandable_segments:True,max_split_size_mb:64,roundup_power2_divisions:8"),
    Setting("throw_on_cudamalloc_oom:True", moved=_REJECTED),
    Setting(
        "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5,"
        "garbage_collection_threshold:0.5",
        0.6,
        moved=_REJECTED,
    ),
]


@dataclass(frozen=True)
class Edge:
    """Calls at the very edge of a rule: each block is freed at once, and what is reserved told."""

    conf: str
    fraction: float
    mib: tuple[int, ...]
    reserved_mib: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.conf or 'no option'}, fraction {self.fraction}"


_THROW = "throw_on_cudamalloc_oom:True,per_process_memory_fraction"
_COLLECT = "garbage_collection_threshold"
EDGES = [
    # A block that may not be split serves requests less than 20 MiB smaller.
    Edge("max_split_size_mb:20", 1.0, (60, 40, 41), (60, 100, 100)),
    # 102 MiB of 1996, but for three tenths of a byte and for seven: a limit is the nearest byte,
    Edge("", 0.05110220426547982, (102,), (102,)),
    Edge("", 0.051102204074362716, (102,), (0,)),
    # a share that requests are rejected for is rounded down,
    Edge(f"{_THROW}:0.05110220426547982", 0.9, (102,), (0,)),
    Edge(f"{_THROW}:0.05110220440881764", 0.9, (102,), (102,)),
    # and so is what garbage is collected beyond: 100 MiB of 998, and less by three tenths.
    Edge(f"{_COLLECT}:0.10020040051492757", 0.5, (100, 200), (100, 200)),
    Edge(f"{_COLLECT}:0.10020040080160321", 0.5, (100, 200), (100, 300)),
]


class Allocator(Protocol):
    living: int

    def malloc(self, size_bytes: int) -> str | None:
        """Allocate; returns the error's text if it fails."""

    def free(self, index: int) -> None:
        """Free the living block of that number, whose place the last one takes."""

    def empty_cache(self) -> None: ...

    def stats(self) -> dict[str, int]: ...

    def snapshot(self) -> dict[str, Any]: ...


class Trace:
    """Random calls: sizes from 1 byte to a quarter of the card, frees in any order.

    Phases in which memory fills up take turns with phases in which it empties, each with a largest
    size of its own, so that the card is now full and now nearly free, of large and of small blocks.
    Some sizes come back, as those of a network's layers do.
    """

    def __init__(self, seed: int, card_bytes: int) -> None:
        self._random = random.Random(seed)
        self._card_bytes = card_bytes
        self._next_phase()

    def verb(self, living: int) -> str:
        """Return the next action, given the number of live blocks."""
        self._left -= 1
        if self._left < 0:
            self._next_phase()
            return self._random.choice(("empty_cache", "malloc"))
        is_malloc = living == 0 or self._random.random() < self._share_of_mallocs
        return "malloc" if is_malloc else "free"

    def size_bytes(self) -> int:
        return self._random.choice(self._usual) if self._random.random() < 0.4 else self._any_size()

    def victim(self, living: int) -> int:
        """Return which block to free: a new one, an old one, or any."""
        return self._random.choice((0, living - 1, self._random.randrange(living)))

    def _next_phase(self) -> None:
        self._left = self._random.randrange(1, 300)
        self._share_of_mallocs = self._random.choice((0.1, 0.3, 0.5, 0.6, 0.8, 0.95))
        self._largest_bytes = self._card_bytes // self._random.choice((4, 4, 4, 16, 256, 4096))
        self._usual = [self._any_size() for _ in range(8)]

    def _any_size(self) -> int:
        kind = self._random.random()
        if kind < 0.0004:
            return self._random.choice((self._card_bytes * 3 // 2, 1 << 50, 1 << 60))
        if kind < 0.1:
            size_bytes = self._random.choice(_BOUNDARIES) + self._random.choice(_OFFSETS)
            return min(size_bytes, self._largest_bytes)
        if kind < 0.2:
            return self._random.randrange(1, self._largest_bytes + 1)
        # About as many of each magnitude, in whole numbers: no PC's logarithm has a say in it.
        magnitude = self._random.randrange(1, self._largest_bytes.bit_length())
        return self._random.randrange(1 << magnitude - 1, 1 << magnitude)


def follow(allocator: Allocator, setting: Setting, steps: int = STEPS) -> list[str]:
    """Make the calls; returns a digest of all that was told so far for every 250 of them.

    Raises:
        AssertionError: the allocator found something wrong; it names the step.
    """
    trace = Trace(setting.seed, setting.total_mib * MIB)
    result = hashlib.sha256()
    digests = []
    for step in range(steps):
        verb = trace.verb(allocator.living)
        try:
            error = None
            if verb == "malloc":
                error = allocator.malloc(trace.size_bytes())
            elif verb == "free":
                allocator.free(trace.victim(allocator.living))
            else:
                allocator.empty_cache()
            result.update(json.dumps([error, allocator.stats()], sort_keys=True).encode())
            if (step + 1) % _CHECK_EVERY == 0:
                result.update(json.dumps(allocator.snapshot(), sort_keys=True).encode())
                digests.append(result.hexdigest()[:16])
        except AssertionError as found:
            raise AssertionError(f"step {step}, {verb}, {setting}: {found}") from found
    return digests


def reserved_at(allocator: Allocator, edge: Edge) -> tuple[int, ...]:
    """Make an edge's calls; returns what is reserved after each, in MiB."""
    reserved_mib = []
    for mib in edge.mib:
        if allocator.malloc(mib * MIB) is None:
            allocator.free(0)
        reserved_mib.append(allocator.stats()["reserved_bytes.all.current"] // MIB)
    return tuple(reserved_mib)
