"""What a plan says of itself while it runs and when it is over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.units import format_duration

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.runs import Run

_LONG_CALL_S = 0.5
_PHASES = {
    "": "waiting for the engine",
    "set-up": "setting up",
    "verification": "checking the result",
    "warm-up": "warming up",
    "naive": "as a naive script does",
    "timing": "timing",
}


class Notice(msgspec.Struct, frozen=True):
    """How the last plan ended, in words; ``bad`` where it ended by itself too early."""

    text: str = ""
    bad: bool = False


def progress_sentence(run: Run, device: str, left_s: float | None) -> str:
    """Return what is running now and how long the plan still takes; None where nobody can tell."""
    parts = (
        run.size_label,
        run.request.dtype,
        device,
        "with transfers" if run.request.transfers else "",
        _PHASES.get(run.phase, run.phase),
        "" if left_s is None else _left_text(left_s),
    )
    return " · ".join(part for part in parts if part)


def long_call_warning(run: Run | None) -> str:
    """Return what to know of a call too long to be stopped in between; empty for others."""
    if run is None or (run.expected_call_s or 0.0) <= _LONG_CALL_S:
        return ""
    took = format_duration(run.expected_call_s or 0.0)
    return f"One call takes about {took}; Stop will end the engine and start a fresh one."


def _left_text(left_s: float) -> str:
    if left_s < 60:
        return f"about {max(math.ceil(left_s), 1)}\u202fs left"
    return f"about {math.ceil(left_s / 60)}\u202fmin left"
