"""The kinds of out-of-memory errors of all programs, and their numbers in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from gpu_studio.core.memory.oom_text import OomNumbers

Kind = Literal[
    "card_full", "reserve", "fragmented", "over_budget", "others", "too_large", "one_piece",
    "spilled", "commit", "refused", "raced", "apple_limit", "apple_full", "intel", "library",
    "nvml", "no_free", "unknown",
    "llama", "jax", "tensorflow", "server_start", "server_cache", "offload", "program",
    "kernel_blocks", "cpu", "model_in_ram", "page_file", "killed", "workers",
]  # fmt: skip


def asked_text(numbers: OomNumbers) -> str:
    """Return what was asked for and what was free, in a sentence; one of the two is known."""
    total = f" of {sized(numbers.total_bytes)}" if numbers.total_bytes else ""
    free = f"{sized(numbers.free_bytes)}{total} was free"
    if numbers.tried_bytes is None:
        return f"{free[0].upper()}{free[1:]}."
    asked = f"The program asked for {sized(numbers.tried_bytes)}"
    return f"{asked}." if numbers.free_bytes is None else f"{asked}, and {free}."


def sized(size_bytes: int | None) -> str:
    """Return a size in words; empty if it is unknown."""
    return "" if size_bytes is None else format_bytes(size_bytes)
