"""Calls of PyTorch's allocator and the byte counts that its rules promise.

Every case is a list of steps and of what must hold at its end; sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """Steps, what holds after them, and what the card and allocator are told beforehand."""

    name: str
    sequence: list[tuple[object, ...]]
    expected: dict[str, int]
    options: str = ""
    other_mib: int = 0
    total_mib: int = field(default=1996)


def mallocs(*sizes: int) -> list[tuple[object, ...]]:
    return [("malloc", f"t{index}", size) for index, size in enumerate(sizes)]


MIXED = mallocs(MIB + 1, 5 * MIB, 9 * MIB)
FRAGMENTED = [("malloc", f"t{i}", 64 * MIB) for i in range(27)] + [
    ("free", f"t{i}") for i in range(0, 27, 2)
]

CASES = [
    Case(
        "one byte",
        mallocs(1),
        {"allocated": 512, "reserved": 2 * MIB, "split_bytes": 2096640, "splits": 1},
    ),
    Case(
        "three small",
        mallocs(MIB, MIB, MIB),
        {"allocated": 3 * MIB, "reserved": 4 * MIB, "split_bytes": MIB, "splits": 1, "segments": 2},
    ),
    Case(
        "just too large for the small pool",
        mallocs(MIB + 1),
        {"allocated": 1049088, "reserved": 20 * MIB, "split_bytes": 19922432, "splits": 1},
    ),
    Case(
        "one segment shared",
        MIXED,
        {"allocated": 15729152, "reserved": 20 * MIB, "split_bytes": 5242368, "splits": 1},
    ),
    Case(
        "a second segment",
        [*MIXED, ("malloc", "more", 5 * MIB)],
        {"allocated": 20972032, "reserved": 40 * MIB, "split_bytes": 20971008, "splits": 2},
    ),
    Case(
        "holes stay after empty_cache",
        [*MIXED, ("malloc", "more", 5 * MIB), ("free", "t1"), ("empty_cache",)],
        {"reserved": 40 * MIB, "split_bytes": 26213888, "splits": 3},
    ),
    Case("ten MiB is a segment", mallocs(10 * MIB), {"allocated": 10 * MIB, "reserved": 10 * MIB}),
    Case(
        "a rest of one MiB is not split",
        mallocs(11 * MIB),
        {"allocated": 12 * MIB, "reserved": 12 * MIB, "splits": 0},
    ),
    Case(
        "a rest of two MiB is split",
        [("malloc", "a", 100 * MIB), ("free", "a"), ("malloc", "b", 98 * MIB)],
        {"allocated": 98 * MIB, "reserved": 100 * MIB, "split_bytes": 2 * MIB},
    ),
    Case(
        "a rest of one MiB of the cache counts as allocated",
        [("malloc", "a", 100 * MIB), ("free", "a"), ("malloc", "b", 99 * MIB)],
        {"allocated": 100 * MIB, "reserved": 100 * MIB, "splits": 0},
    ),
    Case(
        "a full card is flushed",
        [*FRAGMENTED, ("malloc", "big", 128 * MIB)],
        {"reserved": 1006632960, "segments": 14, "retries": 1, "ooms": 0},
        other_mib=240,
        total_mib=2048,
    ),
    Case(
        "fragmentation",
        [
            ("malloc", "a", 1000 * MIB),
            ("free", "a"),
            ("malloc", "b", 8 * MIB),
            ("out of memory", 1000 * MIB),
        ],
        {"reserved": 1000 * MIB, "retries": 1, "ooms": 1},
        other_mib=188,
    ),
    Case(
        "a fraction",
        [
            ("fraction", 0.25),
            *[("malloc", f"t{i}", 50 * MIB) for i in range(10)],
            ("out of memory", 50 * MIB),
        ],
        {"allocated": 500 * MIB, "ooms": 1},
        total_mib=2048,
    ),
    Case(
        "max_split_size keeps large blocks whole",
        [
            ("malloc", "a", 300 * MIB),
            ("free", "a"),
            ("malloc", "b", 64 * MIB),
            ("malloc", "c", 285 * MIB),
        ],
        {"allocated": 364 * MIB, "reserved": 364 * MIB, "segments": 2},
        options="max_split_size_mb:128",
    ),
    Case(
        "roundup_power2_divisions:4",
        mallocs(1200),
        {"allocated": 1536},
        options="roundup_power2_divisions:4",
    ),
    Case(
        "roundup_power2_divisions:8",
        mallocs(3145729),
        {"allocated": 3407872},
        options="roundup_power2_divisions:8",
    ),
    Case(
        "roundup_power2_divisions:2",
        mallocs(734003200),
        {"allocated": 805306368},
        options="roundup_power2_divisions:2",
    ),
]


EXPANDABLE = [
    (("malloc", "a", 1), 512, 2097152),
    (("malloc", "b", MIB), 1049088, 2097152),
    (("malloc", "c", MIB), 2097664, 4194304),
    (("malloc", "d", 3 * MIB), 5243392, 25165824),
    (("malloc", "e", 30 * MIB), 36700672, 46137344),
    (("malloc", "f", 5 * MIB), 41943552, 46137344),
    (("free", "e"), 10486272, 46137344),
    (("empty_cache",), 10486272, 46137344),
    (("malloc", "g", 60 * MIB), 73400832, 109051904),
    (("free", "d"), None, 109051904),
    (("free", "f"), None, 109051904),
    (("free", "g"), 2097664, 109051904),
    (("empty_cache",), 2097664, 4194304),
    *[((("malloc", f"h{i}", 100 * MIB)), None, None) for i in range(9)],
    (("malloc", "h9", 100 * MIB), 1050673664, 1052770304),
    *[(("free", f"h{i}"), None, 1052770304) for i in range(0, 8, 2)],
    (("free", "h8"), 526385664, 1052770304),
    (("empty_cache",), 526385664, 528482304),
    (("malloc", "i", 450 * MIB), 998244864, 1010827264),
]
