"""The work on a snapshot in a child process: the messages, and the whole work of `answer`.

The window keeps a history as bytes, and gives it back with each question.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.child_question import Limits, ask_child
from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.replay.history import HistoryFacts, RecordedCalls, history_of
from gpu_studio.core.memory.replay.what_if import WhatIf, what_if
from gpu_studio.core.memory.snapshot_file import open_snapshot
from gpu_studio.core.messages.memory_messages import SegmentsRead  # noqa: TC001  # for msgspec
from gpu_studio.core.uncollected import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.child_question import ChildCaller

_MODULE = "gpu_studio.core.memory.replay.replay_call"
_LIMITS = Limits(longest_s=900.0, memory_bytes=6 << 30, answer_bytes=1 << 30)
_OPENING_LIMITS = msgspec.structs.replace(_LIMITS, longest_s=20.0, bytes_per_s=2 << 20)
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "garbage_collection_threshold:0.8",
    "roundup_power2_divisions:4",
)
"""The settings to choose from first."""


class OpenHistory(msgspec.Struct, frozen=True, tag=True):
    """Open the history in a file, whose path is as the file system spells it."""

    path: bytes
    device_index: int | None = None


class OpenedHistory(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A history.

    Attributes:
        history: the `RecordedCalls` for later questions.
        modelled: what the model does with it on a card of any size.
    """

    history: bytes
    device_index: int
    facts: HistoryFacts
    modelled: WhatIf


class OpenSegments(msgspec.Struct, frozen=True, tag=True):
    """Open the segments in a file, whether it has a history or not."""

    path: bytes


class OpenedSegments(msgspec.Struct, frozen=True, tag=True):
    """The segments at the end of a snapshot."""

    segments: SegmentsRead


class NoHistory(msgspec.Struct, frozen=True, tag=True):
    """The file is a snapshot of one moment."""


class AskWhatIf(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Play a history on another card; the attributes are those of `what_if`."""

    history: bytes
    card_bytes: int | None
    other_bytes: int
    conf: str


class AnsweredWhatIf(msgspec.Struct, frozen=True, tag=True):
    """What happens on a card."""

    found: WhatIf


Question = OpenHistory | OpenSegments | AskWhatIf
Answer = OpenedHistory | OpenedSegments | NoHistory | AnsweredWhatIf


# ── the parent ───────────────────────────────────────────────────────────────────────────────


def ask(
    question: Question, call: ChildCaller, is_over: Callable[[], bool] = lambda: False
) -> Answer:
    """Return the answer to a question.

    Args:
        question: the question.
        call: calls a child process.
        is_over: returns whether the answer is no longer needed.

    Raises:
        StudioError: why there is no answer.
    """
    files, limits = [], _LIMITS
    if isinstance(question, (OpenHistory, OpenSegments)):
        files, limits = [Path(os.fsdecode(question.path))], _OPENING_LIMITS
    return ask_child(call, _MODULE, question, Answer, limits=limits, files=files, is_over=is_over)


# ── the child ────────────────────────────────────────────────────────────────────────────────


def answer(content: bytes) -> bytes:
    """Return the answer to a question, both as msgpack; raise ValueError with the reason."""
    try:
        with uncollected():  # millions of entries are not looked through again and again
            found = _answer(msgspec.msgpack.decode(content, type=Question))
    except StudioError as error:
        raise ValueError(str(error)) from error
    except MemoryError as error:
        raise ValueError("This file needs more memory than it is given.") from error
    return msgspec.msgpack.encode(found)


def _answer(question: Question) -> Answer:
    if isinstance(question, OpenHistory):
        return _opened(question)
    if isinstance(question, OpenSegments):
        return OpenedSegments(open_snapshot(Path(os.fsdecode(question.path))).segments)
    history = msgspec.msgpack.decode(question.history, type=RecordedCalls)
    return AnsweredWhatIf(
        what_if(
            history,
            card_bytes=question.card_bytes,
            other_bytes=question.other_bytes,
            conf=question.conf,
        )
    )


def _opened(question: OpenHistory) -> OpenedHistory | NoHistory:
    snapshot = open_snapshot(Path(os.fsdecode(question.path)), question.device_index)
    if not any(entry.action == "alloc" for entry in snapshot.history):
        return NoHistory()
    history = history_of(snapshot)
    return OpenedHistory(
        history=msgspec.msgpack.encode(history),
        device_index=snapshot.device_index,
        facts=history.facts,
        modelled=what_if(history, conf=history.facts.conf),
    )
