"""The proof of moving a model, and the reason why a device is not available, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices.link import link_bytes_per_s
from gpu_studio.core.engine import describe_exit
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.placement_messages import ModelDescription
from gpu_studio.core.units import format_bytes, format_duration, format_percent, format_rate

if TYPE_CHECKING:
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.engine_messages import EngineEnded
    from gpu_studio.core.messages.placement_messages import PlaceFinished


_NEXT_STEPS = {
    FailureKind.NO_CUDA: "The Devices tab shows what is missing and how to fix it.",
    FailureKind.NO_SUCH_DEVICE: "Choose one of them.",
    FailureKind.NO_KERNEL: "The Devices tab names the build that has code for it.",
    FailureKind.OUT_OF_MEMORY: "Close other programs that use the card, or free it in Memory.",
}


# Below this size, a move consists mostly of the overhead of each copy.
_TELLING_BYTES = 1 << 20


def explain_move(finished: PlaceFinished, link: Link | None = None) -> str:
    """Return the bytes, the time, the memory and the proof of a move, in words.

    Args:
        finished: the move.
        link: the card's connection to the PC; None if unknown.
    """
    parts = [_moved(finished)]
    if finished.moved_bytes and finished.elapsed_s:
        rate = finished.moved_bytes / finished.elapsed_s
        parts.append(_rate(rate, finished.moved_bytes, link))
    deltas = (
        ("allocated", finished.allocated_delta_bytes),
        ("reserved", finished.reserved_delta_bytes),
        ("on the card", finished.card_delta_bytes),
    )
    parts += [f"{name} {_signed(delta)}" for name, delta in deltas if delta is not None]
    parts.append(_proof(finished))
    return "  ·  ".join(filter(None, (*parts, finished.untested)))


def _rate(bytes_per_s: float, moved_bytes: int, link: Link | None) -> str:
    text = format_rate(bytes_per_s, "B/s")
    most = link_bytes_per_s(link.generation, link.width) if link is not None else None
    if link is None or most is None:
        return text
    part = format_percent(bytes_per_s / most)
    text += f", {part} of the {format_rate(most, 'B/s')} of the card's link (PCIe {link.text})"
    if moved_bytes < _TELLING_BYTES:
        text += ": for so few bytes, most of the time is copy overhead"
    return text


def _signed(delta_bytes: int) -> str:
    return f"{delta_bytes:+,}\u202fbytes"


def _moved(finished: PlaceFinished) -> str:
    if not finished.moved_bytes:
        are = "the 1 tensor is" if finished.tensors == 1 else f"all {finished.tensors} tensors are"
        sentence = f"Nothing had to move: {are} on {finished.device}"
        return (
            f"{sentence}, floating-point ones {finished.dtype} now" if finished.dtype else sentence
        )
    return f"{format_bytes(finished.moved_bytes)} moved in {format_duration(finished.elapsed_s)}"


def _proof(finished: PlaceFinished) -> str:
    if finished.same_output is None:
        return "the outputs were not compared"
    if finished.largest_difference is None:
        return "same input, but the output is now NaN"
    difference = _scientific(finished.largest_difference)
    if finished.same_output:
        return f"same input, same output (largest difference {difference})"
    return (
        f"same input, different output: largest difference {difference}, "
        f"more than the {_scientific(finished.tolerance)} that rounding explains"
    )


def _scientific(value: float) -> str:
    """Return a number in two digits: ``2.4e-7``, ``0.31``."""
    if not value or abs(value) >= 0.01:
        return f"{value:.2g}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def explain_failure(failure: Failure) -> str:
    """Return the engine's sentence and the next step."""
    return f"{failure.message} {_NEXT_STEPS.get(failure.kind, 'The details are in the log.')}"


def explain_end(ended: EngineEnded) -> str:
    """Return the reason why there is no answer."""
    if ended.stopped:
        return "PyTorch was stopped before it answered. It starts again automatically."
    return f"{describe_exit(ended.exit_code)} It starts again automatically."


LINEAR_10 = ModelDescription(
    name="linear_10",
    title="Linear(10, 10)",
    sentence="The smallest layer to test a device with: 110 parameters.",
)
LINEAR_1000 = ModelDescription(
    name="linear_1000",
    title="Linear(1000, 500)",
    sentence="One layer of half a million parameters with a 1000 × 1000 input.",
)
CONVNET = ModelDescription(
    name="convnet",
    title="Small conv net",
    sentence=(
        "Classifies 32 × 32 images. Its batch norms also have buffers: numbers that are "
        "not trained but have to move as well."
    ),
)
MLP = ModelDescription(
    name="mlp",
    title="Multi-layer perceptron",
    sentence="Three layers for handwritten digits: 784 inputs, 10 outputs.",
)
MODELS = (LINEAR_10, LINEAR_1000, CONVNET, MLP)
