"""Histories of a few entries that contradict themselves, or their snapshot."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.replay.replay import replay
from gpu_studio.core.memory.snapshot_file import Snapshot, read_snapshot

MIB = 1 << 20
AT = 1 << 30


def entry(action: str, at: int, size_bytes: int) -> dict[str, Any]:
    return {"action": action, "addr": AT + at, "size": size_bytes, "stream": 0}


def segment(*sizes: int, at: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a segment of blocks of these sizes, of which the last one alone is free."""
    blocks = [{"size": size, "requested_size": size, "state": "active_allocated"} for size in sizes]
    blocks[-1]["state"] = "inactive"
    plain = {"address": AT + at, "total_size": sum(sizes), "segment_type": "large"}
    return {**plain, "device": 0, "stream": 0, "blocks": blocks, **changes}


def snapshot(segments: list[dict[str, Any]], *trace: dict[str, Any]) -> Snapshot:
    return read_snapshot(pickle.dumps({"segments": segments, "device_traces": [list(trace)]}))


LARGE = segment(4 * MIB, 16 * MIB)
BEGUN = (entry("segment_alloc", 0, 20 * MIB), entry("alloc", 0, 4 * MIB))


def test_the_plain_history_is_exact() -> None:
    assert replay(snapshot([LARGE], *BEGUN)).is_exact


@pytest.mark.parametrize(
    ("segments", "trace", "words"),
    [
        ([LARGE], (*BEGUN, entry("free_completed", 0, 4 * MIB)), "contradict"),
        ([LARGE], (entry("segment_alloc", 0, 22 * MIB), BEGUN[1]), "contradict"),
        ([LARGE], (*BEGUN, entry("segment_free", 10 * MIB, 20 * MIB)), "contradict"),
        ([LARGE], (*BEGUN, entry("segment_free", -10 * MIB, 20 * MIB)), "contradict"),
        (
            [segment(4 * MIB, 16 * MIB, is_expandable=True)],
            (entry("segment_map", 0, 40 * MIB), BEGUN[1]),
            "contradict",
        ),
        (
            [segment(2 * MIB, segment_type="small")],
            (
                entry("alloc", 8192, 512), entry("free_completed", 8192, 512),
                entry("free_completed", 0, 4096), entry("free_completed", 2048, 512),
            ),
            "overlap",
        ),
        (
            [segment(2 * MIB, segment_type="small")],
            (
                entry("alloc", 0, 512), entry("free_completed", 0, 512),
                entry("free_completed", 2 * MIB - 512, 4096),
            ),
            "overlap",
        ),
        (
            [segment(20 * MIB)],
            (
                *(entry(action, 12 * MIB, 2 * MIB) for action in ("alloc", "free_completed")),
                entry("free_completed", 0, 4 * MIB), entry("free_completed", 2 * MIB, 2 * MIB),
            ),
            "overlap",
        ),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(
    segments: list[dict[str, Any]], trace: tuple[dict[str, Any], ...], words: str
) -> None:
    with pytest.raises(StudioError, match=words):
        replay(snapshot(segments, *trace))


def test_memory_that_the_model_did_not_need_is_a_miss() -> None:
    second = segment(20 * MIB, at=100 * MIB)
    found = replay(
        snapshot(
            [segment(4 * MIB, 4 * MIB, 12 * MIB), second],
            *BEGUN,
            entry("segment_alloc", 100 * MIB, 20 * MIB),
            entry("alloc", 4 * MIB, 4 * MIB),
        )
    )
    assert found.addresses_met == found.allocations == 2
    assert not found.is_exact
