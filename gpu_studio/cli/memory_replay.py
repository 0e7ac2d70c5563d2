"""``gpu-studio memory replay``: a recorded history of memory, on this card and on others."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import msgspec

from gpu_studio.cli import argument_types as types
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, Option
from gpu_studio.cli.memory_answer import print_answer
from gpu_studio.cli.screen import print_json, print_line
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.replay.history import NO_HISTORY
from gpu_studio.core.memory.replay.replay_call import (
    AnsweredSmallest,
    AnsweredWhatIf,
    AskSmallest,
    AskWhatIf,
    OpenedHistory,
    OpenHistory,
    ask,
)
from gpu_studio.core.memory.replay.what_if import WhatIf  # for msgspec
from gpu_studio.core.memory.replay.what_if_words import history_answer
from gpu_studio.core.units import format_bytes
from gpu_studio.process.child_call import call_child


class ReplayAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What ``memory replay --json`` prints; sizes in bytes.

    Attributes:
        allocations: how many tensors the recorded program made.
        peak_allocated_bytes: the most that tensors held, according to the model.
        peak_reserved_bytes: the most that the recorded program reserved.
        what_if: on the card and with the options of the command; None if none were given.
        fits_from_bytes: with ``--smallest``; None if it fits on no card.
    """

    allocations: int
    recorded_conf: str
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    what_if: WhatIf | None
    fits_from_bytes: int | None


def _replay(options: argparse.Namespace, _log_path: Path) -> int:
    """Replay a history; return the exit status."""
    opened = ask(OpenHistory(os.fsencode(options.file), options.index), call_child)
    if not isinstance(opened, OpenedHistory):
        raise StudioError(FailureKind.BAD_REQUEST, NO_HISTORY)
    conf = opened.conf if options.conf is None else options.conf
    found = _what_if(opened, options, conf)
    smallest = _smallest(opened, options, conf)
    if options.json:
        print_json(
            "memory_replay",
            ReplayAnswer(
                allocations=opened.allocations,
                recorded_conf=opened.conf,
                peak_allocated_bytes=opened.modelled.peak_allocated_bytes,
                peak_reserved_bytes=opened.peak_reserved_bytes,
                what_if=found,
                fits_from_bytes=None if smallest is None else smallest.card_bytes,
            ),
        )
        return DONE
    shown = found or opened.modelled
    print_answer(history_answer(opened, shown, smallest))
    if shown.failure:
        print_line(shown.failure)
    for one in opened.at_peak:
        print_line(f"  {format_bytes(one.size_bytes):>10}  {one.line or 'unknown line'}")
    return DONE


def _what_if(opened: OpenedHistory, options: argparse.Namespace, conf: str) -> WhatIf | None:
    if options.card is None and options.conf is None:
        return None
    question = AskWhatIf(
        history=opened.history, card_bytes=options.card, other_bytes=options.other or 0, conf=conf
    )
    answered = ask(question, call_child)
    assert isinstance(answered, AnsweredWhatIf)
    return answered.found


def _smallest(
    opened: OpenedHistory, options: argparse.Namespace, conf: str
) -> AnsweredSmallest | None:
    if not options.smallest:
        return None
    question = AskSmallest(history=opened.history, other_bytes=options.other or 0, conf=conf)
    answered = ask(question, call_child)
    assert isinstance(answered, AnsweredSmallest)
    return answered


_OPTIONS = (
    Option("file", "a file of torch.cuda.memory._dump_snapshot", metavar="FILE", type=Path),
    Option("--card", "a card's memory, such as 8GiB", metavar="SIZE", type=types.memory),
    Option(
        "--other", "what other programs and CUDA's context hold of it, such as 500MiB",
        metavar="SIZE", type=types.memory,
    ),
    types.conf("other options, as in PYTORCH_CUDA_ALLOC_CONF (default: the recorded ones)", None),
    Option("--smallest", "find the smallest card on which it fits", action="store_true"),
    Option(
        "--index", "the card of the recorded program (default: the first one with memory)",
        metavar="N", type=types.whole_number(0, 255),
    ),
)  # fmt: skip
COMMAND = Command(
    help="replay a recorded history of memory, and see whether it fits on another card",
    about="Replay the history in a memory snapshot with the model of PyTorch's allocator, and see "
    "what it would take on another card or with other options. Record one with "
    "torch.cuda.memory._record_memory_history() and _dump_snapshot(FILE).",
    run=_replay,
    options=_OPTIONS,
    json=JSON_OBJECT,
)
