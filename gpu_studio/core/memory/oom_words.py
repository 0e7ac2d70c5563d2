"""What an out-of-memory experiment ended in, in words, with the error's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from gpu_studio.core.memory.outcome import free_within
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from gpu_studio.core.protocol import MemoryRead, OomFinished

Tone = Literal["", "good", "amber", "failure"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A name, what happened, and what to try next."""

    headline: str
    sentence: str
    next_step: str = ""
    tone: Tone = ""


def explain_outcome(finished: OomFinished) -> Outcome:
    """Return an experiment's end in words; numbers that the error does not tell are left out."""
    return _EXPLAINED.get(finished.outcome, _refused)(finished)


def describe_filling(read: MemoryRead, budget_bytes: int) -> str:
    """Return how far an experiment has come."""
    if read.allocated_bytes is None or read.reserved_bytes is None:
        return "The engine makes its CUDA context."
    return (
        f"{format_bytes(read.allocated_bytes)} allocated, {format_bytes(read.reserved_bytes)} "
        f"reserved, of a budget of {format_bytes(budget_bytes)}."
    )


def _tensors(finished: OomFinished) -> str:
    count = finished.tensors
    total = format_bytes(count * finished.tensor_bytes)
    one = format_bytes(finished.tensor_bytes)
    allocated_bytes = finished.allocated_bytes
    if allocated_bytes is not None and finished.preset:
        are_alike = 0 <= allocated_bytes - count * finished.tensor_bytes <= allocated_bytes // 50
        if not are_alike:
            return f"{count} tensors, together {format_bytes(allocated_bytes)},"
    if count == 1:
        return f"1 tensor of {one}"
    return f"{count} tensors of {one}, together {total},"


def _was(finished: OomFinished) -> str:
    return "was" if finished.tensors == 1 else "were"


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _asked(finished: OomFinished) -> str:
    tried = finished.tried_bytes or finished.tensor_bytes
    who = (
        f"Tensor {finished.tensors + 1} asked"
        if finished.preset != "activations"
        else "A layer asked"
    )
    sentence = f"{who} for {format_bytes(tried)}"
    if finished.allocated_bytes is None:
        return f"{sentence}."
    return f"{sentence} when {format_bytes(finished.allocated_bytes)} were allocated."


def _limit(finished: OomFinished) -> str:
    if finished.limit_bytes is None:
        return ""
    sentence = f"The budget allows {format_bytes(finished.limit_bytes)}"
    if finished.free_bytes is None:
        return f"{sentence}."
    return f"{sentence}; {format_bytes(finished.free_bytes)} of the card were still free."


def _space(finished: OomFinished) -> str:
    parts = []
    if finished.free_bytes is not None:
        of = f" of {format_bytes(finished.total_bytes)}" if finished.total_bytes else ""
        parts.append(f"{format_bytes(finished.free_bytes)}{of} were free")
    if finished.unallocated_bytes:
        parts.append(
            f"{format_bytes(finished.unallocated_bytes)} were reserved in pieces too small for it"
        )
    return f"{', and '.join(parts)}." if parts else ""


def _pieces(finished: OomFinished) -> str:
    """Return how much was free, and how large the largest piece of it was."""
    if finished.free_total_bytes is None or finished.largest_block_bytes is None:
        return ""
    limit_bytes = finished.limit_bytes if finished.budget_bytes is None else finished.budget_bytes
    free_bytes = free_within(finished.free_total_bytes, finished.allocated_bytes, limit_bytes)
    where = "in all" if free_bytes == finished.free_total_bytes else "within the budget"
    return (
        f"{format_bytes(free_bytes)} were free {where}, but the largest tensor that could be had "
        f"is {format_bytes(finished.largest_block_bytes)}: the rest is in pieces between tensors "
        "that are in use."
    )


def _taken(finished: OomFinished) -> str:
    if finished.others_grew_bytes is None:
        return ""
    return (
        f"Since the start other processes have taken {format_bytes(finished.others_grew_bytes)}; "
        "without that it would have fitted."
    )


def _quoted(error_text: str) -> str:
    first_line = (error_text.strip().splitlines() or [""])[0][:200]
    return f"It said: {first_line}" if first_line else ""


def _fits(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="Everything fits.",
        sentence=f"{_tensors(finished)} {_was(finished)} on the card at once; now freed.",
        next_step="Take more tensors or larger ones, until it breaks.",
        tone="good",
    )


def _over_budget(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="Over the budget.",
        sentence=_joined(_asked(finished), _limit(finished)),
        next_step=(
            "The card is not full: PyTorch refused because of the budget. Raise it, or "
            "take a smaller type: float16 halves every tensor."
        ),
        tone="amber",
    )


def _card_full(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="The card is full.",
        sentence=_joined(_asked(finished), _space(finished)),
        next_step=(
            "Close other programs that use the card, take smaller tensors, or a smaller "
            "type: float16 halves every tensor."
        ),
        tone="failure",
    )


def _fragmented(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="Fragmented.",
        sentence=_joined(_asked(finished), _pieces(finished)),
        next_step=(
            "Try the same with expandable_segments:True, which can join the pieces; or "
            "make the large tensors first, and keep no small ones among them."
        ),
        tone="failure",
    )


def _spilled(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="Spilled to system memory.",
        sentence=(
            f"{_tensors(finished)} {_was(finished)} made without an error, and that is more "
            "than the card had free: the driver went on in the PC's memory, which the "
            "card reaches many times slower."
        ),
        next_step=(
            "In the NVIDIA Control Panel set “CUDA - Sysmem Fallback Policy” to “Prefer No "
            "Sysmem Fallback” to have an error instead; or keep to a budget."
        ),
        tone="amber",
    )


def _taken_by_others(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="Another process took it.",
        sentence=_joined(_asked(finished), _taken(finished), _space(finished)),
        next_step="See in the Devices tab who uses the card, then run it again.",
        tone="failure",
    )


def _leak(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="A leak.",
        sentence=_joined(
            f"Each of {finished.steps // 2} steps should have given back what it took, "
            "and each left more allocated than the one before, until memory ended.",
            _asked(finished),
        ),
        next_step=(
            "Find what keeps the tensors: a list of losses, for example. Keep "
            "loss.item() or loss.detach() instead of loss."
        ),
        tone="failure",
    )


def _stopped(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="Stopped.",
        sentence=f"{_tensors(finished)} {_was(finished)} on the card; now freed.",
        next_step="Run it again to go on until it breaks.",
    )


def _refused(finished: OomFinished) -> Outcome:
    return Outcome(
        headline="The card refused.",
        sentence=_joined(_asked(finished), _space(finished), _quoted(finished.error_text)),
        next_step="Read the card's free memory now, and try a smaller budget.",
        tone="failure",
    )


_EXPLAINED = {
    "fits": _fits,
    "over_budget": _over_budget,
    "card_full": _card_full,
    "fragmented": _fragmented,
    "spilled": _spilled,
    "taken_by_others": _taken_by_others,
    "leak": _leak,
    "stopped": _stopped,
}
