"""What engines say of models that move, and of pitfalls."""

from typing import Any

import msgspec

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import (
    Figure,
    PitfallDescription,
    PitfallFinished,
    PitfallOutcome,
    RunPitfall,
)
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    ModelDescription,
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    UseDevice,
)
from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.run_answers import run_events

MODELS = (
    ModelDescription(name="linear_10", title="Linear(10, 10)", sentence="One layer."),
    ModelDescription(name="convnet", title="Small network", sentence="It has buffers."),
)


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


def switching(inventory: Any, **known: Any) -> dict[type, Any]:
    """Return the answers of engines that see what their environment shows them."""

    def describe(engine: Any, _request: Any) -> list[Any]:
        if not inventory.cards:
            return [described(models=MODELS, **known)]
        shown = engine.environment.visible_devices
        count = len(inventory.cards) if shown is None else 1
        return [
            described_with_cuda(device_count=count, visible_devices=shown, models=MODELS, **known)
        ]

    return {DescribeEngine: describe, UseDevice: use_device, PlaceModel: place_model}


def use_device(_engine: Any, request: UseDevice) -> list[Any]:
    return [DeviceUsed(device=request.device, name="NVIDIA GeForce RTX 3060")]


def place_model(_engine: Any, request: PlaceModel) -> list[Any]:
    return [
        place_row("weight", device_after=request.device),
        place_row("bias", (10,), device_after=request.device),
        place_finished(device=request.device),
    ]


def time_it(_engine: Any, request: RunWorkload) -> list[Any]:
    return run_events(
        request,
        parts_s={"loading": 0.002, "computing": 0.001},
        curves={"loss": (2.0, 1.0, 0.5)},
        findings=tuple(f"{value} was tried." for value in request.options.values())[:1],
        peak_allocated_bytes=1 << 20,
    )
