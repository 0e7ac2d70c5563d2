"""What moving a model proved, and why a device could not be used, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.runs import describe_exit
from gpu_studio.core.units import format_bytes, format_duration

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.protocol import EngineEnded, PlaceFinished

_NEXT_STEPS = {
    FailureKind.NO_CUDA: "The Devices tab says what is missing and how to get it.",
    FailureKind.NO_SUCH_DEVICE: "Choose one of those.",
    FailureKind.NO_KERNEL: "The Devices tab names the build that has code for it.",
    FailureKind.OUT_OF_MEMORY: "Close other programs that use the card, or free it in Memory.",
}


def explain_move(finished: PlaceFinished) -> str:
    """Return the bytes, the time, the allocator's difference and the proof of equal output."""
    parts = [_moved(finished)]
    if finished.allocated_delta_bytes is not None:
        delta = f"{finished.allocated_delta_bytes:+,}".replace(",", "\u202f")
        parts.append(f"allocated {delta}\u202fbytes")
    parts.append(_proof(finished))
    return "  ·  ".join(parts)


def _moved(finished: PlaceFinished) -> str:
    if not finished.moved_bytes:
        return f"Nothing had to move: all {finished.tensors} tensors are on {finished.device}"
    return f"{format_bytes(finished.moved_bytes)} moved in {format_duration(finished.elapsed_s)}"


def _proof(finished: PlaceFinished) -> str:
    if finished.same_output is None:
        return "the output was not compared"
    if finished.largest_difference is None:
        return "same input, but the output has become NaN"
    difference = _scientific(finished.largest_difference)
    if finished.same_output:
        return f"same input, same output (largest difference {difference})"
    return (
        f"same input, but another output: largest difference {difference}, "
        f"more than the {_scientific(finished.tolerance)} that rounding explains"
    )


def _scientific(value: float) -> str:
    """Return a number in two digits: ``2.4e-7``, ``0.31``."""
    if not value or abs(value) >= 0.01:
        return f"{value:.2g}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def explain_failure(failure: Failure) -> str:
    """Return the engine's sentence and what to do next."""
    return f"{failure.message} {_NEXT_STEPS.get(failure.kind, 'The details are in the log.')}"


def explain_end(ended: EngineEnded) -> str:
    """Return why there is no answer."""
    if ended.stopped:
        return "The engine was ended before it had answered. A fresh one starts by itself."
    return f"{describe_exit(ended.exit_code)} A fresh one starts by itself."
