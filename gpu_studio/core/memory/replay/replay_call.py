"""The work on a history in a child process: the messages, and the whole work of `answer`.

A history may be a stranger's file, and takes seconds of Python's lock: not in the window's process.
The window keeps the replayed history as bytes, and gives it back with each question.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.replay.replay import Replay, replay
from gpu_studio.core.memory.replay.timeline import Timeline, timeline
from gpu_studio.core.memory.replay.what_if import WhatIf, smallest_card, what_if
from gpu_studio.core.memory.snapshot_file import open_snapshot
from gpu_studio.core.uncollected import uncollected

if TYPE_CHECKING:
    from collections.abc import Iterable

MODULE = "gpu_studio.core.memory.replay.replay_call"
MEMORY_BYTES = 6 << 30
LONGEST_OPENING_S, LONGEST_ANSWER_S = 120.0, 900.0
MOST_ANSWER_BYTES = 1 << 30
_MOST_CARD_BYTES = 1 << 62
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:4",
)
"""What is tried to find the best setting."""


class OpenHistory(msgspec.Struct, frozen=True, tag=True):
    """Open the history in a file, whose path is as the file system spells it."""

    path: bytes
    device_index: int | None = None


class OpenedHistory(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A history; sizes in bytes.

    Attributes:
        replayed: the `Replay` for later questions.
        device_indexes: the cards in the file; one of them is shown.
        entry_count: the lines of the history.
        ooms: how often the recorded program was out of memory.
        fragmentation_bytes: reserved and held by no tensor when the most was reserved.
    """

    replayed: bytes
    timeline: Timeline
    device_index: int
    device_indexes: tuple[int, ...]
    conf: str
    entry_count: int
    allocations: int
    addresses_met: int
    first_miss: int | None
    miss_reason: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    fragmentation_bytes: int
    ooms: int


class NoHistory(msgspec.Struct, frozen=True, tag=True):
    """The file is a snapshot of one moment."""


class AskWhatIf(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Replay a history on another card; the attributes are those of `what_if`.

    The cache is emptied before the first call from an entry in ``empty_at`` on.
    """

    replayed: bytes
    card_bytes: int
    other_bytes: int
    conf: str
    empty_at: tuple[int, ...] = ()


class AnsweredWhatIf(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What happens on a card.

    Attributes:
        found: the numbers.
        entries: at which ``reserved`` changed; int32, shape (n,).
        reserved: from there on; bytes, float64, shape (n,).
    """

    found: WhatIf
    entries: bytes
    reserved: bytes


class AskSmallest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Find the smallest card on which a history fits."""

    replayed: bytes
    other_bytes: int
    conf: str
    empty_at: tuple[int, ...] = ()


class AskSettings(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Find the setting of a small grid with which the smallest card is enough."""

    replayed: bytes
    other_bytes: int


class AnsweredSmallest(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A history fits on a card of this size and on all larger ones of a grid; None: on no card."""

    conf: str
    card_bytes: int | None


Question = OpenHistory | AskWhatIf | AskSmallest | AskSettings
Answer = OpenedHistory | NoHistory | AnsweredWhatIf | AnsweredSmallest


def answer(content: bytes) -> bytes:
    """Return the answer to a question, both as msgpack; raise ValueError with the reason."""
    try:
        with uncollected():  # millions of entries are not looked through again and again
            found = _answer(msgspec.msgpack.decode(content, type=Question))
    except StudioError as error:
        raise ValueError(str(error)) from error
    except MemoryError as error:
        raise ValueError("This history needs more memory than it is given.") from error
    return msgspec.msgpack.encode(found)


def decode_answer(content: bytes) -> Answer:
    """Return the answer in what a child wrote; raise `msgspec.MsgspecError` if there is none."""
    found: Answer = msgspec.msgpack.decode(content, type=Answer)
    return found


def _answer(question: Question) -> Answer:
    if isinstance(question, OpenHistory):
        return _opened(question)
    replayed = msgspec.msgpack.decode(question.replayed, type=Replay)
    if isinstance(question, AskWhatIf):
        return _what_if(question, replayed)
    if isinstance(question, AskSmallest):
        return _smallest(replayed, question.other_bytes, question.conf, question.empty_at)
    found = [_smallest(replayed, question.other_bytes, conf) for conf in SETTINGS]
    # The first one of equals: the default.
    return min(
        found, key=lambda one: _MOST_CARD_BYTES if one.card_bytes is None else one.card_bytes
    )


def _opened(question: OpenHistory) -> OpenedHistory | NoHistory:
    path = Path(os.fsdecode(question.path))
    snapshot = open_snapshot(path, question.device_index, in_child=True)
    if not any(entry.action == "alloc" for entry in snapshot.history):
        return NoHistory()
    replayed = replay(snapshot)
    return OpenedHistory(
        replayed=msgspec.msgpack.encode(replayed),
        timeline=timeline(snapshot, replayed),
        device_index=snapshot.device_index,
        device_indexes=snapshot.device_indexes,
        conf=replayed.conf,
        entry_count=len(snapshot.history),
        allocations=replayed.allocations,
        addresses_met=replayed.addresses_met,
        first_miss=replayed.first_miss,
        miss_reason=replayed.miss_reason,
        peak_allocated_bytes=replayed.peak_allocated_bytes,
        peak_reserved_bytes=replayed.peak_reserved_bytes,
        fragmentation_bytes=replayed.unused_at_peak_bytes,
        ooms=replayed.ooms,
    )


def _what_if(question: AskWhatIf, replayed: Replay) -> AnsweredWhatIf:
    changes: dict[int, int] = {}
    found = what_if(
        replayed,
        card_bytes=question.card_bytes,
        other_bytes=question.other_bytes,
        conf=question.conf,
        empty_at=_calls_from(question.empty_at, replayed),
        watch=changes.__setitem__,
    )
    return AnsweredWhatIf(
        found=found,
        entries=np.array([*changes], np.int32).tobytes(),
        reserved=np.array([*changes.values()], np.float64).tobytes(),
    )


def _calls_from(entries: Iterable[int], replayed: Replay) -> frozenset[int]:
    calls = [call.entry for call in replayed.calls]
    places = (bisect_left(calls, entry) for entry in entries)
    return frozenset(calls[place] for place in places if place < len(calls))


def _smallest(
    replayed: Replay, other_bytes: int, conf: str, empty_at: Iterable[int] = ()
) -> AnsweredSmallest:
    emptied = _calls_from(empty_at, replayed)
    found = smallest_card(replayed, other_bytes=other_bytes, conf=conf, empty_at=emptied)
    return AnsweredSmallest(conf=conf, card_bytes=found)
