"""What an engine says of models that move, and of pitfalls."""

from typing import Any

import msgspec

from gpu_studio.core.messages.pitfall_messages import (
    Figure,
    PitfallDescription,
    PitfallFinished,
    PitfallOutcome,
    RunPitfall,
)
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceRow


def place_row(name: str = "weight", shape: tuple[int, ...] = (10, 10), **changes: Any) -> PlaceRow:
    """Return one float32 tensor that went from the CPU to the first card."""
    count = 1
    for length in shape:
        count *= length
    plain = PlaceRow(
        name=name, kind="parameter", shape=shape, dtype="float32", bytes=4 * count,
        device_before="cpu", device_after="cuda:0",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def place_finished(**changes: Any) -> PlaceFinished:
    """Return the proof of a small network's move to the first card."""
    plain = PlaceFinished(
        model="convnet", device="cuda:0", tensors=15, moved_bytes=84 << 10, elapsed_s=0.21e-3,
        same_output=True, largest_difference=2.4e-7, tolerance=1e-5, input_shape=(8, 3, 32, 32),
        output_device="cuda:0", allocated_delta_bytes=86_528,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def pitfall(name: str, **changes: Any) -> PitfallDescription:
    plain = PitfallDescription(
        name=name, title=name.replace("_", " ").capitalize(), sentence="It goes wrong.",
        why="There is a reason.", remedy="Do it otherwise.", source="A book",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def pitfall_finished(request: RunPitfall, **changes: Any) -> PitfallFinished:
    outcomes = {
        part: PitfallOutcome(
            part=part,
            sentence=f"It was {part}.",
            error="RuntimeError: two devices" if part == "broken" else "",
            figures=(Figure(name="call_s", title="A call", value=0.002, unit="s"),),
        )
        for part in ("broken", "fixed")
        if request.part in (part, "both")
    }
    plain = PitfallFinished(
        name=request.name, device=request.device, broken=outcomes.get("broken"),
        fixed=outcomes.get("fixed"), broken_snippet="# broken\n", fixed_snippet="# fixed\n",
        snippet=f"# {request.part}\n", elapsed_s=0.1,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)
