"""The sentences of “What if”: a history on another card."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.memory.replay.timeline import Category, HistoryMark, MarkKind
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import (
    counted,
    format_bytes,
    format_count,
    format_duration,
    format_gib,
)

if TYPE_CHECKING:
    from gpu_studio.core.memory.replay.replay_call import AnsweredSmallest, OpenedHistory
    from gpu_studio.core.memory.replay.timeline import Layer, Timeline

_GIB = 1 << 30
_MOMENT = re.compile(r"\s*(?:event)?\s*(\d{1,9}(?:[.,]\d{0,9})?)\s*s?\s*", re.ASCII)
_THIN = "\u202f"
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

_CATEGORY_NAMES = {
    Category.BEFORE: "Before the history",
    Category.OPTIMIZER_STATE: "Optimizer state",
    Category.PARAMETER: "Parameters",
    Category.GRADIENT: "Gradients",
    Category.ACTIVATION: "Activations",
    Category.TEMPORARY: "Temporary",
    Category.UNKNOWN: "Tensors",
    Category.OTHER: "Other lines",
}


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


def met_notice(history: OpenedHistory) -> Notice:
    """Return how well the replay met the recorded history, with its proof."""
    met, count = format_count(history.addresses_met), format_count(history.allocations)
    sentence = f"{met} of {count} addresses met"
    if history.first_miss is None:
        return Notice(
            sentence, Tone.GOOD,
            detail="The model of PyTorch's allocator put every tensor where PyTorch put it, and "
            "asked the driver for the same memory: the replay is exact.",
        )  # fmt: skip
    return Notice(sentence, Tone.AMBER, detail=miss_sentence(history))


def miss_sentence(history: OpenedHistory) -> str:
    """Return whether the replay is exact, or from where on and why it is not."""
    if history.first_miss is None:
        return "The replay is exact."
    reason = f": {history.miss_reason}" if history.miss_reason else ""
    return (
        f"The replay differs from event {format_count(history.first_miss + 1)} on{reason}. Take "
        "the results as about right."
    )


def subject(history: OpenedHistory, name: str, other_bytes: int) -> str:
    """Return a sentence about the history and what else is on the card."""
    conf = f" with {history.conf}" if history.conf else ""
    return (
        f"{name}: {counted(history.entry_count, 'event')}, recorded on cuda:{history.device_index}"
        f"{conf}. Other programs and CUDA hold {format_gib(other_bytes)}. According to the model "
        "of PyTorch's allocator; larger cards of a grid were tried, too."
    )


def best_sentence(best: AnsweredSmallest, usual: AnsweredSmallest | None) -> str:
    """Return which setting needs the least memory.

    Args:
        best: the best of those that were tried.
        usual: the same with the chosen setting.
    """
    if best.card_bytes is None:
        return ""
    name, needed = best.conf or DEFAULT_SETTING, format_gib(best.card_bytes, 1)
    gain_bytes = 0
    if usual is not None and usual.card_bytes is not None:
        gain_bytes = usual.card_bytes - best.card_bytes
    if usual is not None and usual.card_bytes is not None and gain_bytes <= 0:
        return f"No setting of those that were tried needs less than {needed}."
    less = f", {format_gib(gain_bytes, 1)} less" if gain_bytes else ""
    return f"Best setting: {name}, fits from {needed} on{less}."


def moment(timeline: Timeline, entry: int) -> str:
    """Return the time of an entry: ``at 1.92 s``, or its number without times."""
    if timeline.is_timed:
        return f"at {format_duration(timeline.time_of(entry))}"
    return f"at event {format_count(entry + 1)}"


def moment_text(timeline: Timeline, entry: int) -> str:
    """Return the time of an entry as a person may type it: ``1.923041 s``, ``event 1200``."""
    if timeline.is_timed:
        return f"{timeline.time_of(entry):.6f} s"  # times are recorded in microseconds
    return f"event {entry + 1}"


def entry_of(timeline: Timeline, text: str) -> int | None:
    """Return the entry from a time on that a person typed; None if that is none."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    time = float(found[1].replace(",", "."))
    return timeline.entry_at(time if timeline.is_timed else time - 1)


def layer_name(layer: Layer) -> str:
    """Return what a layer of the stack is for."""
    return _CATEGORY_NAMES[layer.category]


def layer_line(layer: Layer) -> str:
    """Return a layer's line of code: ``unet.py:142``; or how many lines it has."""
    if layer.category is Category.OTHER:
        return counted(layer.line_count, "line")
    return layer.line.partition(" in ")[0]


def mark_label(mark: HistoryMark) -> str:
    """Return what happened at a mark."""
    if mark.kind is MarkKind.EMPTY_CACHE:
        return "empty_cache"
    return f"out of memory for {format_bytes(mark.size_bytes)}"
