"""Opens a memory snapshot: the pickle of ``torch.cuda.memory._dump_snapshot``, or of the model.

Snapshots can come from strangers, and a pickle is a program. Here every name that a file asks for
is refused, and without a name there is nothing to call or to build. But a few bytes can still cost
all memory or an hour, so a child process with limits reads the file (`replay_call`). Its values are
then copied field by field into our own types; a file that does not match is refused with the
reason. See ``_snapshot`` in torch/cuda/memory.py for the fields.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.allocator.blocks import FREE, IN_USE
from gpu_studio.core.memory.allocator.segments import FoundBlock, FoundSegment
from gpu_studio.core.memory.segments import CodeLines, segments_read
from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.user_file import UnusableFileError, read_user_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LARGEST_FILE_BYTES = 256 << 20
MOST_SEGMENTS, MOST_SNAPSHOT_BLOCKS, MOST_ENTRIES = 200_000, 1_000_000, 2_000_000
_LARGEST_NUMBER = 1 << 62
_STATES = {
    "active_allocated", "active_awaiting_free", "active_pending_free", "inactive",
}  # fmt: skip
_LONGEST_TEXT = 4096


class UnsafePickleError(Exception):
    """A file that is refused; the text is the reason as a sentence."""


class SnapshotEntry(msgspec.Struct, frozen=True):
    """One line of the allocator's history.

    Attributes:
        action: ``alloc``, ``free_requested``, ``free_completed``, ``segment_alloc``,
            ``segment_free``, ``segment_map``, ``segment_unmap``, ``snapshot`` or ``oom``.
        address: of the block or segment; for ``oom``, the bytes that the driver had free.
        time_us: since 1970; 0 if it was not recorded.
        is_private: it is in a pool of a CUDA graph or of ``torch.cuda.MemPool``.
        line: the line of code that asked, as ``train.py:41 in forward``; empty if not recorded.
    """

    action: str
    address: int
    size_bytes: int
    stream: int
    time_us: int
    is_private: bool = False
    line: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot of one card.

    Attributes:
        device_index: the card's index in the program that made the snapshot.
        segments: as for a live card; a snapshot does not contain the driver's free memory.
        found: the same with all blocks, however many, as the allocator's model takes them over.
        reserved_bytes, allocated_bytes: the sums over its segments.
        history: oldest first.
        conf: the allocator's options.
    """

    device_index: int
    segments: SegmentsRead
    found: tuple[FoundSegment, ...]
    reserved_bytes: int
    allocated_bytes: int
    history: tuple[SnapshotEntry, ...]
    conf: str


def open_snapshot(path: Path, device_index: int | None = None) -> Snapshot:
    """Return the snapshot in a file; only for a child process with limits.

    Args:
        path: the file.
        device_index: the card; None for the first one with memory.

    Raises:
        StudioError: the file cannot be read or is refused; the sentence says why.
    """
    name = file_name(path)[:60]
    try:
        return read_snapshot(read_user_file(path, LARGEST_FILE_BYTES), device_index)
    except UnusableFileError as error:
        raise StudioError(FailureKind.BAD_REQUEST, f"Cannot read “{name}”: {error}.") from error
    except UnsafePickleError as error:
        raise StudioError(FailureKind.BAD_REQUEST, f"Cannot open “{name}”. {error}") from error


def read_snapshot(content: bytes, device_index: int | None = None) -> Snapshot:
    """Return the snapshot in a pickle; raise `UnsafePickleError` with the reason."""
    whole = _load(content)
    if not isinstance(whole, dict) or not isinstance(whole.get("segments"), list):
        raise UnsafePickleError("This is not a memory snapshot: it has no segments.")
    segments = _segments(whole["segments"])
    traces = whole.get("device_traces", [])
    if device_index is None:
        device_index = min((segment["device"] for segment in segments), default=0)
    segments = [segment for segment in segments if segment["device"] == device_index]
    reserved_bytes = sum(segment["total_size"] for segment in segments)
    blocks = [block for segment in segments for block in segment["blocks"]]
    allocated_bytes = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    read = MemoryRead(
        device=f"cuda:{device_index}",
        taken_at_s=0.0,
        allocated_bytes=allocated_bytes,
        reserved_bytes=reserved_bytes,
        mark="snapshot",
    )
    return Snapshot(
        device_index=device_index,
        segments=segments_read(read, segments, device_index),
        found=tuple(map(_found, segments)),
        reserved_bytes=reserved_bytes,
        allocated_bytes=allocated_bytes,
        history=tuple(_history(traces, device_index)),
        conf=_conf(whole.get("allocator_settings")),
    )


def _found(segment: dict[str, Any]) -> FoundSegment:
    blocks = (
        FoundBlock(
            block["address"],
            block["size"],
            block["requested_size"] or block["size"],
            FREE if block["state"] == "inactive" else IN_USE,
        )
        for block in segment["blocks"]
    )
    return FoundSegment(segment["stream"], segment["segment_type"] == "small", tuple(blocks))


def _load(content: bytes) -> Any:
    try:
        return _NamelessUnpickler(io.BytesIO(content)).load()
    except (
        pickle.UnpicklingError, struct.error, IndexError, TypeError, ValueError, OverflowError,
        EOFError, AttributeError, KeyError, RecursionError,
    ) as error:  # fmt: skip
        raise UnsafePickleError("The pickle is incomplete: it ends early or is damaged.") from error


class _NamelessUnpickler(pickle.Unpickler):
    """Python's unpickler, without names and without references to something outside."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse a class or a function."""
        raise UnsafePickleError(
            f"It asks for {module[:60]}.{name[:60]}: it wants to run a program."
        )

    def persistent_load(self, _pid: Any) -> Any:
        """Refuse an object from outside."""
        raise UnsafePickleError("It asks for an object outside of the file.")


def _segments(entries: list[Any]) -> list[dict[str, Any]]:
    if len(entries) > MOST_SEGMENTS:
        raise UnsafePickleError(f"It has more than {MOST_SEGMENTS} segments.")
    segments, blocks = [], 0
    for segment in entries:
        # Counted before the blocks are read: every segment may hold the same list.
        blocks += len(_blocks_of(segment))
        if blocks > MOST_SNAPSHOT_BLOCKS:
            raise UnsafePickleError(f"It has more than {MOST_SNAPSHOT_BLOCKS} blocks.")
        segments.append(_segment(segment))
    return segments


def _blocks_of(segment: object) -> list[Any]:
    blocks = segment.get("blocks") if isinstance(segment, dict) else None
    if not isinstance(blocks, list) or not blocks:
        raise UnsafePickleError("This is not a memory snapshot: a segment has no blocks.")
    return blocks


def _segment(entry: dict[Any, Any]) -> dict[str, Any]:
    kind = entry.get("segment_type")
    if kind not in ("small", "large"):
        raise UnsafePickleError("This is not a memory snapshot: a segment has an unknown pool.")
    address, size_bytes = _number(entry, "address"), _number(entry, "total_size")
    blocks, at = [], address
    for block in entry["blocks"]:
        if not isinstance(block, dict):
            raise UnsafePickleError("This is not a memory snapshot: a block has no fields.")
        state = block.get("state")
        if not isinstance(state, str) or state not in _STATES:
            raise UnsafePickleError("This is not a memory snapshot: a block has an unknown state.")
        size = _number(block, "size")
        if size == 0 or ("address" in block and _number(block, "address") != at):
            raise UnsafePickleError("Its blocks are not contiguous.")
        requested = _number(block, "requested_size") if "requested_size" in block else 0
        blocks.append(
            {
                "address": at, "size": size, "requested_size": requested, "state": state,
                "frames": block.get("frames"),
            }
        )  # fmt: skip
        at += size
    if at - address != size_bytes:
        raise UnsafePickleError("Its blocks do not fill their segment.")
    return {
        "device": _number(entry, "device") if "device" in entry else 0,
        "address": address,
        "total_size": size_bytes,
        "stream": _number(entry, "stream") if "stream" in entry else 0,
        "segment_type": kind,
        "segment_pool_id": _pool(entry.get("segment_pool_id")),
        "is_expandable": entry.get("is_expandable") is True,
        "blocks": blocks,
    }


def _pool(value: object) -> tuple[int, int]:
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(map(_is_number, value)):
        return value[0], value[1]
    return 0, 0


def _history(traces: object, device_index: int) -> Iterable[SnapshotEntry]:
    if not isinstance(traces, list) or len(traces) <= device_index:
        return ()
    trace = traces[device_index]
    if not isinstance(trace, list):
        raise UnsafePickleError("This is not a memory snapshot: its history is not a list.")
    if len(trace) > MOST_ENTRIES:
        raise UnsafePickleError(f"Its history has more than {MOST_ENTRIES} entries.")
    places = CodeLines()
    # Python's writer keeps one list for all entries with the same stack.
    by_list: dict[int, str] = {}
    actions: dict[object, str] = {}
    entries = []
    for entry in trace:
        if not isinstance(entry, dict) or not isinstance(entry.get("action"), str):
            raise UnsafePickleError("This is not a memory snapshot: its history has no fields.")
        action = actions.get(entry["action"])
        if action is None:
            action = actions[entry["action"]] = plain_text(entry["action"][:40])
        address = entry.get("device_free" if "device_free" in entry else "addr")
        size_bytes = entry.get("size")
        stream, time_us = entry.get("stream", 0), entry.get("time_us", 0)
        # Spelled out: a million calls of a function take as long as all the rest here.
        if not (
            type(address) is type(size_bytes) is type(stream) is type(time_us) is int
            and 0 <= address <= _LARGEST_NUMBER
            and 0 <= size_bytes <= _LARGEST_NUMBER
            and 0 <= stream <= _LARGEST_NUMBER
            and 0 <= time_us <= _LARGEST_NUMBER
        ):
            raise _not_a_size(entry)
        pool, frames = entry.get("pool_id"), entry.get("frames")
        line = by_list.get(id(frames))
        if line is None:
            line = by_list[id(frames)] = places.of(frames)
        entries.append(
            SnapshotEntry(
                action,
                address,
                size_bytes,
                stream,
                time_us,
                pool is not None and _pool(pool) != (0, 0),
                line,
            )
        )
    return entries


def _not_a_size(entry: dict[Any, Any]) -> UnsafePickleError:
    """Return why an entry of a history is refused."""
    numbers = {
        "device_free" if "device_free" in entry else "addr": None,
        "size": None,
        "stream": 0,
        "time_us": 0,
    }
    wrong = (name for name, usual in numbers.items() if not _is_number(entry.get(name, usual)))
    return UnsafePickleError(f"This is not a memory snapshot: a “{next(wrong)}” is not a size.")


def _conf(settings: object) -> str:
    text = settings.get("PYTORCH_CUDA_ALLOC_CONF", "") if isinstance(settings, dict) else ""
    return plain_text(text[:_LONGEST_TEXT]) if isinstance(text, str) else ""


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_NUMBER


def _number(fields: dict[Any, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is int and 0 <= value <= _LARGEST_NUMBER:
        return value
    raise UnsafePickleError(f"This is not a memory snapshot: a “{name}” is not a size.")
