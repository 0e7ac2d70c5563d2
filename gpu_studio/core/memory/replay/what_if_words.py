"""The answer of a recorded history on another card, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.memory.tank import ENOUGH, LIKELY, FitAnswer, FitVerdict, Step, Tank, TankPart
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_gib,
    format_percent,
)

if TYPE_CHECKING:
    from gpu_studio.core.memory.replay.replay_call import OpenedHistory
    from gpu_studio.core.memory.replay.what_if import WhatIf

_GIB = 1 << 30
_THIN = "\u202f"
_MOST_AWAY = 0.03  # between the model's memory and the recorded one
_MANY_HOLES = 0.05
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


def history_answer(history: OpenedHistory, found: WhatIf) -> FitAnswer:
    """Return whether a history fits on a card, from what happens there."""
    notice = Notice(f"It reserves at most {format_gib(found.peak_reserved_bytes)}")
    card, told = card_name(found.card_bytes or 0), ""
    if found.card_bytes is not None:
        notice = Notice(f"✔ It fits on {card}", Tone.GOOD)
    if found.failed_at is not None:
        notice = Notice(f"✖ It does not fit on {card}: it fails {_moment(found)}", Tone.FAILURE)
        told = f"First line that fails: {found.failed_line or 'not recorded'}."
        if found.tried_bytes is not None and found.free_bytes is not None:
            tried, free = format_bytes(found.tried_bytes), format_bytes(found.free_bytes)
            told = f"{told} It asked for {tried}, and {free} was free."
    enough = "" if found.enough_bytes is None else f"{format_gib(found.enough_bytes, 1)} is enough."
    sentences = (enough, trust_notice(history).sentence)
    facts = history.facts
    conf = f" with {facts.conf}" if facts.conf else ""
    details = (
        f"{counted(facts.entry_count, 'event')}, recorded on cuda:{history.device_index}{conf}. "
        f"Recorded: {format_gib(history.modelled.peak_allocated_bytes)} allocated and "
        f"{format_gib(facts.peak_reserved_bytes)} reserved at the peak, {facts.ooms} × out of "
        "memory. According to the model of PyTorch's allocator; a smaller card may be enough, too."
    )
    return FitAnswer(
        verdicts=(FitVerdict(notice, _tank(found), told),),
        sentence=" ".join(filter(None, sentences)),
        steps=() if found.fits else _steps(found),
        details=details,
    )


def _tank(found: WhatIf) -> Tank | None:
    """Return the memory when the most was reserved."""
    if found.card_bytes is None:
        return None
    holes = found.unused_at_peak_bytes
    free_bytes = found.card_bytes - found.other_bytes - found.peak_reserved_bytes
    sizes = (
        ("others", "In use", found.other_bytes, "by CUDA itself and by other programs"),
        ("tensors", "Allocated", found.peak_reserved_bytes - holes, "at the recorded peak"),
        ("holes", "Reserved, empty", holes, "PyTorch keeps it for new tensors"),
        ("free", "Free", max(free_bytes, 0), "left at the peak"),
    )
    parts = tuple(
        TankPart(key=key, label=label, size_bytes=size, explanation=explanation)
        for key, label, size, explanation in sizes
    )
    return Tank(total_bytes=sum(part.size_bytes for part in parts), parts=parts)


def _steps(found: WhatIf) -> tuple[Step, ...]:
    steps = [Step("Smaller batch", "record a history with it to see", LIKELY)]
    if found.unused_at_peak_bytes > _MANY_HOLES * found.peak_reserved_bytes:
        share = format_percent(found.unused_at_peak_bytes / found.peak_reserved_bytes)
        steps.append(
            Step("expandable_segments:True", f"{share} of the reserved memory was empty", LIKELY)
        )
    if found.other_bytes:
        steps.append(Step("Close other programs", f"{format_gib(found.other_bytes)} is in use"))
    if found.enough_bytes is not None:
        size = format_gib(found.enough_bytes, 1)
        steps.append(Step("A larger card", f"of {size}", ENOUGH[True]))
    return tuple(steps)


def trust_notice(history: OpenedHistory) -> Notice:
    """Return whether the model reserves as much as the recorded program did, or why that differs.

    Empty if that cannot be compared: a program that filled its card gave memory back.
    """
    if history.facts.has_private_pool:
        return Notice(
            "This program has a memory pool of its own (a CUDA graph or a MemPool), which is not "
            "modeled. Take the results as about right.",
            Tone.AMBER,
        )
    if history.facts.was_full:
        return Notice()
    modelled, recorded = history.modelled.peak_reserved_bytes, history.facts.peak_reserved_bytes
    if abs(modelled - recorded) <= _MOST_AWAY * recorded:
        return Notice()
    return Notice(
        f"The model reserves {format_gib(modelled)} where the recorded program reserved "
        f"{format_gib(recorded)}. Take the results as about right.",
        Tone.AMBER,
    )


def _moment(found: WhatIf) -> str:
    """Return when a call failed: ``at 1.92 s``, or its number without times; empty if none did."""
    if found.failed_at is None:
        return ""
    if found.failed_s is not None:
        return f"at {format_duration(found.failed_s)}"
    return f"at event {format_count(found.failed_at + 1)}"
