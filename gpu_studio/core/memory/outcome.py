"""Which outcome an experiment ended in, by comparing the readings before and after, and in words.

Nothing is guessed from the preset: the readings, the error's text and the limit decide.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.memory_messages import MemoryRead, OomFinished, SegmentsRead


_LEAST_LEAK_STEPS = 3
_PAGE_BYTES = 2 << 20
# What a reading of the driver may be off by without meaning anything.
_NOISE_BYTES = 16 << 20


def outcome_of(
    start: MemoryRead,
    last: SegmentsRead,
    error_text: str,
    *,
    tensor_bytes: int = 0,
    step_ends: Sequence[int] = (),
) -> str:
    """Return one of `core.messages.memory_messages.OUTCOMES` but ``stopped``.

    Args:
        start: before anything was allocated.
        last: when memory ended; if it did not, at the end, everything being held.
        error_text: the error's text; empty if there was none.
        tensor_bytes: what was asked for last; 0 where only the text knows, to two decimals.
        step_ends: what was allocated after each step that should give back all it took.
    """
    at_end = last.read
    if not error_text:
        return "spilled" if has_spilled(start, at_end) else "fits"
    if is_leak(step_ends):
        return "leak"
    tried_bytes = read_oom_text(error_text).tried_bytes
    if tensor_bytes:
        tried_bytes = segment_bytes(tensor_bytes)
    elif tried_bytes is None:  # NVML did not answer, and the text has no numbers
        tried_bytes = last.free_total_bytes + 1
    free_bytes = at_end.free_bytes or 0
    holes_bytes, allowed_bytes = last.free_total_bytes - free_bytes, _allowed_bytes(at_end)
    if tried_bytes <= allowed_bytes + holes_bytes:
        return "fragmented"
    if allowed_bytes < free_bytes and tried_bytes > allowed_bytes:
        return "over_budget"
    grew_bytes = others_grew_bytes(start, at_end) or 0
    if grew_bytes > _NOISE_BYTES and tried_bytes <= allowed_bytes + holes_bytes + grew_bytes:
        return "taken_by_others"
    return "card_full"


def _allowed_bytes(read: MemoryRead) -> int:
    """Return what is free of the card and within the limit."""
    free_bytes = read.free_bytes or 0
    if read.limit_bytes is None:
        return free_bytes
    return min(free_bytes, max(0, read.limit_bytes - (read.reserved_bytes or 0)))


def free_within(free_total_bytes: int, allocated_bytes: int | None, limit_bytes: int | None) -> int:
    """Return what is free and may be had: what lies beyond a limit may not, in any piece.

    Args:
        free_total_bytes: what is free in all, the holes in what is reserved included.
        allocated_bytes: what tensors hold; None where nobody knows.
        limit_bytes: what the allocator may reserve at most; None without a limit.
    """
    if limit_bytes is None or allocated_bytes is None:
        return free_total_bytes
    return min(free_total_bytes, max(0, limit_bytes - allocated_bytes))


def others_grew_bytes(start: MemoryRead, now: MemoryRead) -> int | None:
    """Return what others took of the card meanwhile; negative if they gave some back.

    What is neither free nor PyTorch's in this process is others', apart from this process's CUDA
    context, which is there at both times.
    """
    before, after = _others_bytes(start), _others_bytes(now)
    return None if before is None or after is None else after - before


def is_leak(step_ends: Sequence[int]) -> bool:
    """Return whether every step left more allocated than the one before."""
    return len(step_ends) >= _LEAST_LEAK_STEPS and all(
        after > before for before, after in pairwise(step_ends)
    )


def segment_bytes(size_bytes: int) -> int:
    """Return what the allocator asks the driver for (CUDACachingAllocator, get_allocation_size).

    Of a tensor that the options do not round otherwise.
    """
    if size_bytes <= 1 << 20:
        return _PAGE_BYTES
    if size_bytes < 10 << 20:
        return 20 << 20
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES


def has_spilled(start: MemoryRead, now: MemoryRead) -> bool:
    """Return whether more was reserved than the card had left.

    Windows' driver then goes on in the PC's memory, without an error and many times slower
    (“CUDA - Sysmem Fallback Policy”).
    """
    if start.free_bytes is None or start.reserved_bytes is None or now.reserved_bytes is None:
        return False
    return now.reserved_bytes > start.reserved_bytes + start.free_bytes + _NOISE_BYTES


def _others_bytes(read: MemoryRead) -> int | None:
    if read.total_bytes is None or read.free_bytes is None or read.reserved_bytes is None:
        return None
    return read.total_bytes - read.free_bytes - read.reserved_bytes


Tone = Literal["", "good", "amber", "failure"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A name, what happened, and what to try next."""

    headline: str
    sentence: str
    next_step: str = ""
    tone: Tone = ""


def explain_outcome(finished: OomFinished) -> OomFinished:
    """Return an experiment's end with its explanation and its next step.

    For the engine alone: windows and terminals show both as they are, with `outcome_told`. Numbers
    that the error does not tell are left out.
    """
    account = _EXPLAINED.get(finished.outcome, _refused)(finished)
    return msgspec.structs.replace(
        finished, explanation=account.sentence, next_step=account.next_step
    )


def outcome_told(finished: OomFinished) -> Outcome:
    """Return an experiment's end in the words that came with it."""
    headline, tone = _HEADS.get(finished.outcome, _REFUSED)
    return Outcome(
        headline=headline, sentence=finished.explanation, next_step=finished.next_step, tone=tone
    )


def describe_filling(read: MemoryRead, budget_bytes: int) -> str:
    """Return how far an experiment has come."""
    if read.allocated_bytes is None or read.reserved_bytes is None:
        return "The engine makes its CUDA context."
    return (
        f"{format_bytes(read.allocated_bytes)} allocated, {format_bytes(read.reserved_bytes)} "
        f"reserved, of a budget of {format_bytes(budget_bytes)}."
    )


class _Account(NamedTuple):
    """What happened, in a sentence or two, and what to try."""

    sentence: str
    next_step: str


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


def _fits(finished: OomFinished) -> _Account:
    return _Account(
        sentence=f"{_tensors(finished)} {_was(finished)} on the card at once; now freed.",
        next_step="Take more tensors or larger ones, until it breaks.",
    )


def _over_budget(finished: OomFinished) -> _Account:
    return _Account(
        sentence=_joined(_asked(finished), _limit(finished)),
        next_step=(
            "The card is not full: PyTorch refused because of the budget. Raise it, or "
            "take a smaller type: float16 halves every tensor."
        ),
    )


def _card_full(finished: OomFinished) -> _Account:
    return _Account(
        sentence=_joined(_asked(finished), _space(finished)),
        next_step=(
            "Close other programs that use the card, take smaller tensors, or a smaller "
            "type: float16 halves every tensor."
        ),
    )


def _fragmented(finished: OomFinished) -> _Account:
    return _Account(
        sentence=_joined(_asked(finished), _pieces(finished)),
        next_step=(
            "Try the same with expandable_segments:True, which can join the pieces; or "
            "make the large tensors first, and keep no small ones among them."
        ),
    )


def _spilled(finished: OomFinished) -> _Account:
    return _Account(
        sentence=(
            f"{_tensors(finished)} {_was(finished)} made without an error, and that is more "
            "than the card had free: the driver went on in the PC's memory, which the "
            "card reaches many times slower."
        ),
        next_step=(
            "In the NVIDIA Control Panel set “CUDA - Sysmem Fallback Policy” to “Prefer No "
            "Sysmem Fallback” to have an error instead; or keep to a budget."
        ),
    )


def _taken_by_others(finished: OomFinished) -> _Account:
    return _Account(
        sentence=_joined(_asked(finished), _taken(finished), _space(finished)),
        next_step="See in the Devices tab who uses the card, then run it again.",
    )


def _leak(finished: OomFinished) -> _Account:
    return _Account(
        sentence=_joined(
            f"Each of {finished.steps // 2} steps should have given back what it took, "
            "and each left more allocated than the one before, until memory ended.",
            _asked(finished),
        ),
        next_step=(
            "Find what keeps the tensors: a list of losses, for example. Keep "
            "loss.item() or loss.detach() instead of loss."
        ),
    )


def _stopped(finished: OomFinished) -> _Account:
    return _Account(
        sentence=f"{_tensors(finished)} {_was(finished)} on the card; now freed.",
        next_step="Run it again to go on until it breaks.",
    )


def _refused(finished: OomFinished) -> _Account:
    return _Account(
        sentence=_joined(_asked(finished), _space(finished), _quoted(finished.error_text)),
        next_step="Read the card's free memory now, and try a smaller budget.",
    )


_HEADS: dict[str, tuple[str, Tone]] = {
    "fits": ("Everything fits.", "good"),
    "over_budget": ("Over the budget.", "amber"),
    "card_full": ("The card is full.", "failure"),
    "fragmented": ("Fragmented.", "failure"),
    "spilled": ("Spilled to system memory.", "amber"),
    "taken_by_others": ("Another process took it.", "failure"),
    "leak": ("A leak.", "failure"),
    "stopped": ("Stopped.", ""),
}
_REFUSED: tuple[str, Tone] = ("The card refused.", "failure")

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
