"""The sentences of “What if”: a history on another card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import (
    counted,
    format_count,
    format_duration,
    format_gib,
)

if TYPE_CHECKING:
    from gpu_studio.core.memory.replay.replay_call import AnsweredSmallest, OpenedHistory
    from gpu_studio.core.memory.replay.what_if import WhatIf

_GIB = 1 << 30
_THIN = "\u202f"
_MOST_AWAY = 0.03  # between the model's memory and the recorded one
DEFAULT_SETTING = "PyTorch's default"

# PyTorch's code that records a history, to put into your own script.
RECORDING_SNIPPET = """\
import torch

torch.cuda.memory._record_memory_history()

# Your training: a few steps are enough.
model = torch.nn.Linear(1024, 1024, device="cuda")
for _ in range(3):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()

torch.cuda.memory._dump_snapshot("history.pickle")
"""


def card_name(size_bytes: int) -> str:
    """Return a card's size as people say it: ``8 GiB``, ``7.5 GiB``."""
    return f"{size_bytes / _GIB:.3g}{_THIN}GiB"


def headline(smallest: AnsweredSmallest | None) -> str:
    """Return the answer in a few words."""
    if smallest is None:
        return "Looking for the smallest card…"
    if smallest.card_bytes is None:
        return "Fits on no card with this setting"
    return f"Fits from {format_gib(smallest.card_bytes, 1)} on"


def trust_notice(history: OpenedHistory) -> Notice:
    """Return whether the model reserves as much as the recorded program did, or why that differs.

    Empty if that cannot be compared: a program that filled its card gave memory back.
    """
    if history.has_private_pool:
        return Notice(
            "This program has a memory pool of its own (a CUDA graph or a MemPool), which is not "
            "modeled. Take the results as about right.",
            Tone.AMBER,
        )
    if history.was_full:
        return Notice()
    modelled, recorded = history.modelled.peak_reserved_bytes, history.peak_reserved_bytes
    if abs(modelled - recorded) <= _MOST_AWAY * recorded:
        return Notice()
    return Notice(
        f"The model reserves {format_gib(modelled)} where the recorded program reserved "
        f"{format_gib(recorded)}. Take the results as about right.",
        Tone.AMBER,
    )


def subject(history: OpenedHistory, name: str, other_bytes: int) -> str:
    """Return a sentence about the history and what else is on the card."""
    conf = f" with {history.conf}" if history.conf else ""
    return (
        f"{name}: {counted(history.entry_count, 'event')}, recorded on cuda:{history.device_index}"
        f"{conf}. Other programs and CUDA hold {format_gib(other_bytes)}. According to the model "
        "of PyTorch's allocator; larger cards of a grid were tried, too."
    )


def failure_moment(found: WhatIf) -> str:
    """Return when a call failed: ``at 1.92 s``, or its number without times; empty if none did."""
    if found.failed_at is None:
        return ""
    if found.failed_s is not None:
        return f"at {format_duration(found.failed_s)}"
    return f"at event {format_count(found.failed_at + 1)}"
