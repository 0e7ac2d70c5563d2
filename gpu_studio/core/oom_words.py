"""What an out-of-memory experiment ended in, in words, with the error's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

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
    there, one = _tensors(finished), finished.tensors == 1
    match finished.outcome:
        case "fits":
            return Outcome(
                headline="Everything fits.",
                sentence=f"{there} {'was' if one else 'were'} on the card at once; now freed.",
                next_step="Take more tensors or larger ones, until it breaks.",
                tone="good",
            )
        case "over_budget":
            return Outcome(
                headline="Over the budget.",
                sentence=_joined(_asked(finished), _limit(finished)),
                next_step=(
                    "The card is not full: PyTorch refused because of the budget. Raise it, or "
                    "take a smaller type: float16 halves every tensor."
                ),
                tone="amber",
            )
        case "card_full":
            return Outcome(
                headline="The card is full.",
                sentence=_joined(_asked(finished), _space(finished)),
                next_step=(
                    "Close other programs that use the card, take smaller tensors, or a smaller "
                    "type: float16 halves every tensor."
                ),
                tone="failure",
            )
        case "stopped":
            return Outcome(
                headline="Stopped.",
                sentence=f"{there} {'was' if one else 'were'} on the card; now freed.",
                next_step="Run it again to go on until it breaks.",
            )
    return Outcome(
        headline="The card refused.",
        sentence=_joined(_asked(finished), _space(finished), _quoted(finished.error_text)),
        next_step="Read the card's free memory now, and try a smaller budget.",
        tone="failure",
    )


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
    if count == 1:
        return f"1 tensor of {one}"
    return f"{count} tensors of {one}, together {total},"


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _asked(finished: OomFinished) -> str:
    tried = finished.tried_bytes or finished.tensor_bytes
    sentence = f"Tensor {finished.tensors + 1} asked for {format_bytes(tried)}"
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


def _quoted(error_text: str) -> str:
    first_line = (error_text.strip().splitlines() or [""])[0][:200]
    return f"It said: {first_line}" if first_line else ""
