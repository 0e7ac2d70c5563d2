"""The outcome of an experiment, from the readings before and after, and its explanation.

Nothing is guessed from the preset: the readings, whether there was an error, and the limit decide.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.memory.oom_text import usual_holes_bytes
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.messages.memory_messages import MemoryRead, OomFinished, SegmentsRead


_LEAST_LEAK_STEPS = 3
_PAGE_BYTES = 2 << 20
# A reading of the driver may differ by this much without a reason.
_NOISE_BYTES = 16 << 20


def outcome_of(
    start: MemoryRead,
    last: SegmentsRead,
    error_text: str,
    *,
    tensor_bytes: int,
    step_ends: Sequence[int] = (),
) -> str:
    """Return one of `core.messages.memory_messages.OUTCOMES` except ``stopped``.

    Args:
        start: the reading before the first allocation.
        last: the reading when memory ran out; if it did not, at the end with everything held.
        error_text: the error's text; empty if there was no error.
        tensor_bytes: the size of the last request.
        step_ends: the allocated bytes after each step that should give back all of its memory.
    """
    at_end = last.read
    if not error_text:
        return "spilled" if has_spilled(start, at_end) else "fits"
    if is_leak(step_ends):
        return "leak"
    tried_bytes = segment_bytes(tensor_bytes)
    free_bytes, allowed_bytes = at_end.free_bytes, _allowed_bytes(at_end)
    holes_bytes = last.free_total_bytes - (free_bytes or 0)
    is_in_pieces = holes_bytes > usual_holes_bytes(at_end.total_bytes or 0)
    if is_in_pieces and tried_bytes <= allowed_bytes + holes_bytes:
        return "fragmented"
    is_less = free_bytes is None or allowed_bytes < free_bytes
    if at_end.limit_bytes is not None and is_less and tried_bytes > allowed_bytes:
        return "over_budget"
    grew_bytes = others_grew_bytes(start, at_end) or 0
    if grew_bytes > _NOISE_BYTES and tried_bytes <= allowed_bytes + holes_bytes + grew_bytes:
        return "taken_by_others"
    return "card_full"


def _allowed_bytes(read: MemoryRead) -> int:
    """Return the bytes that are within the limit and, as far as the driver tells, free."""
    if read.limit_bytes is None:
        return read.free_bytes or 0
    within_bytes = max(0, read.limit_bytes - (read.reserved_bytes or 0))
    return within_bytes if read.free_bytes is None else min(read.free_bytes, within_bytes)


def free_within(free_total_bytes: int, allocated_bytes: int | None, limit_bytes: int | None) -> int:
    """Return the free bytes within the limit; memory beyond the limit is not available at all.

    Args:
        free_total_bytes: all free bytes, including the holes in reserved memory.
        allocated_bytes: the bytes held by tensors; None if unknown.
        limit_bytes: the most that the allocator may reserve; None without a limit.
    """
    if limit_bytes is None or allocated_bytes is None:
        return free_total_bytes
    return min(free_total_bytes, max(0, limit_bytes - allocated_bytes))


def others_grew_bytes(start: MemoryRead, now: MemoryRead) -> int | None:
    """Return the bytes that others took on the card in the meantime; negative if they freed some.

    Memory that is neither free nor reserved by PyTorch in this process belongs to others. This
    process's CUDA context is part of both readings. None if the driver does not tell what is free.
    """
    if start.free_bytes is None or now.free_bytes is None:
        return None
    return _held_by_us_or_free(start) - _held_by_us_or_free(now)


def _held_by_us_or_free(read: MemoryRead) -> int:
    return (read.free_bytes or 0) + (read.reserved_bytes or 0)


def is_leak(step_ends: Sequence[int]) -> bool:
    """Return whether every step left more memory allocated than the step before."""
    return len(step_ends) >= _LEAST_LEAK_STEPS and all(
        after > before for before, after in pairwise(step_ends)
    )


def segment_bytes(size_bytes: int) -> int:
    """Return the size of the driver's segment for a tensor (see get_allocation_size).

    It holds for tensors that the allocator's options do not round differently.
    """
    if size_bytes <= 1 << 20:
        return _PAGE_BYTES
    if size_bytes < 10 << 20:
        return 20 << 20
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES


def has_spilled(start: MemoryRead, now: MemoryRead) -> bool:
    """Return whether PyTorch reserved more than the card had left.

    The Windows driver then continues in the PC's memory, without an error and many times slower
    (“CUDA - Sysmem Fallback Policy”). Older drivers of Intel's cards do not tell what is free.
    """
    if start.free_bytes is None:
        return False
    return _held_by_us_or_free(start) + _NOISE_BYTES < (now.reserved_bytes or 0)


def explain_outcome(finished: OomFinished) -> OomFinished:
    """Return an experiment's end with its explanation and its next step.

    Only the engine calls this; window and terminal show its texts with `outcome_notice`.
    """
    row = _OUTCOMES[finished.outcome]
    explanation = " ".join(filter(None, (part(finished) for part in row.parts)))
    return msgspec.structs.replace(finished, explanation=explanation, next_step=row.next_step)


def outcome_notice(finished: OomFinished) -> Notice:
    """Return an outcome's name, with the explanation and the next step that came with it."""
    row = _OUTCOMES[finished.outcome]
    return Notice(row.name, row.tone, detail=finished.explanation, next_step=finished.next_step)


def describe_filling(read: MemoryRead, budget_bytes: int) -> str:
    """Return the progress of an experiment in words."""
    return (
        f"{format_bytes(read.allocated_bytes or 0)} allocated, "
        f"{format_bytes(read.reserved_bytes or 0)} reserved, of a budget of "
        f"{format_bytes(budget_bytes)}."
    )


def _asked(finished: OomFinished) -> str:
    tried = finished.tried_bytes or finished.tensor_bytes
    return (
        f"Tensor {finished.tensors + 1} asked for {format_bytes(tried)} when "
        f"{format_bytes(finished.allocated_bytes or 0)} was allocated."
    )


def _limit(finished: OomFinished) -> str:
    words = f"The budget allows {format_bytes(finished.limit_bytes or 0)}"
    if finished.free_bytes is not None:
        words += f"; {format_bytes(finished.free_bytes)} of the card was still free"
    return f"{words}."


def _space(finished: OomFinished) -> str:
    words = []
    if finished.free_bytes is not None:
        total = format_bytes(finished.total_bytes or 0)
        words.append(f"{format_bytes(finished.free_bytes)} of {total} was free")
    if finished.unallocated_bytes:
        pieces = format_bytes(finished.unallocated_bytes)
        words.append(f"{pieces} was reserved in pieces that are too small")
    return f"{', and '.join(words)}." if words else ""


def _pieces(finished: OomFinished) -> str:
    """Return the free memory and the size of its largest piece, in words."""
    total_bytes = finished.free_total_bytes or 0
    limit_bytes = finished.limit_bytes if finished.budget_bytes is None else finished.budget_bytes
    free_bytes = free_within(total_bytes, finished.allocated_bytes, limit_bytes)
    where = "in total" if free_bytes == total_bytes else "within the budget"
    return (
        f"{format_bytes(free_bytes)} was free {where}, but the largest tensor that would fit is "
        f"{format_bytes(finished.largest_block_bytes or 0)}. The rest is in pieces between tensors "
        "that are in use."
    )


def _taken(finished: OomFinished) -> str:
    return (
        f"Other processes have taken {format_bytes(finished.others_grew_bytes or 0)} since the "
        "start. Without them the tensor would fit."
    )


def _held(rest: str) -> Callable[[OomFinished], str]:
    def sentence(finished: OomFinished) -> str:
        count, size = finished.tensors, format_bytes(finished.allocated_bytes or 0)
        if count == 1:
            return f"1 tensor of {size} was {rest}"
        return f"{count} tensors, together {size}, were {rest}"

    return sentence


def _steps(finished: OomFinished) -> str:
    return (
        f"Each of {finished.steps // 2} steps should have given back its memory, but each one left "
        "more allocated than the one before, until memory ran out."
    )


class _Outcome(NamedTuple):
    """An outcome's name, the sentences that explain it, and what to try next."""

    name: str
    tone: Tone
    parts: tuple[Callable[[OomFinished], str], ...]
    next_step: str


_OUTCOMES = {
    "fits": _Outcome(
        "Everything fits.", Tone.GOOD, (_held("on the card at the same time; now freed."),),
        "Choose more or larger tensors to reach the limit.",
    ),
    "over_budget": _Outcome(
        "Over the budget.", Tone.AMBER, (_asked, _limit),
        "The card is not full. Raise the budget, or choose float16.",
    ),
    "card_full": _Outcome(
        "The card is full.", Tone.FAILURE, (_asked, _space),
        "Close other programs, or choose fewer tensors or float16.",
    ),
    "fragmented": _Outcome(
        "Fragmented.", Tone.FAILURE, (_asked, _pieces),
        "Try expandable_segments:True, which can join the pieces, or make the large tensors first.",
    ),
    "spilled": _Outcome(
        "Spilled to system memory.", Tone.AMBER,
        (_held(
            "created without an error, but needed more memory than the card had free. The driver "
            "continued in the PC's memory, which is many times slower for the card."
        ),),
        "For an error instead, set “CUDA - Sysmem Fallback Policy” to “Prefer No Sysmem Fallback” "
        "in the NVIDIA Control Panel. Or stay within a budget.",
    ),
    "taken_by_others": _Outcome(
        "Another process took it.", Tone.FAILURE, (_asked, _taken, _space),
        "See in the Devices tab which programs use the card, then run it again.",
    ),
    "leak": _Outcome(
        "A leak.", Tone.FAILURE, (_steps, _asked),
        "Find out what keeps the tensors, for example a list of losses. Keep loss.item() or "
        "loss.detach() instead of loss.",
    ),
    "stopped": _Outcome(
        "Stopped.", Tone.PLAIN, (_held("on the card; now freed."),),
        "Run it again to reach the limit.",
    ),
}  # fmt: skip
