"""What the scripted engines of these tests know and answer."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.pitfall_messages import PitfallStarted
from gpu_studio.core.messages.placement_messages import (
    DeviceUsed,
    ModelDescription,
)
from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import gt_1030_card, rtx_3060_card
from tests.fakes.run_answers import run_events
from tests.fakes.switching_answers import pitfall, pitfall_finished, place_finished, place_row

FIRST, SECOND = gt_1030_card().uuid, rtx_3060_card().uuid
MODELS = (
    ModelDescription(name="linear_10", title="Linear(10, 10)", sentence="One layer."),
    ModelDescription(name="convnet", title="Small network", sentence="It has buffers."),
)
PITFALLS = (
    pitfall("mixed_devices", remark="The book is wrong."),
    pitfall("visible_devices_too_late"),
    pitfall("model_on_cpu"),
)
_OPTIONS = (
    WorkloadOption(name="way", title="The batches come", sentence="How.", values=("a", "b")),
    WorkloadOption(name="workers", title="Workers", sentence="How many.", values=("0", "2")),
)


def _workload(name, **changes):
    plain = WorkloadDescription(
        name=name, title=f"Title of {name}", sentence="It works.", dtypes=("float32",),
        sizes=(32, 64, 128), throughput_unit="FLOP/s", options=_OPTIONS,
        size_text="{size} samples",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


WORKLOADS = (
    *map(_workload, ("dataloader", "train_step", "conv2d")),
    _workload("data_parallel", skipped="It needs two cards, or two processes."),
)


def describe(inventory):
    """Return how an engine describes itself that sees what its environment shows it."""

    def answer(engine, _request):
        shown = engine.environment.visible_devices
        about = {"models": MODELS, "pitfalls": PITFALLS, "workloads": WORKLOADS}
        if not inventory.cards:
            return [described(**about)]
        count = len(inventory.cards) if shown is None else 1
        return [described_with_cuda(device_count=count, visible_devices=shown, **about)]

    return answer


def use(_engine, request):
    return [DeviceUsed(device=request.device, name="NVIDIA GeForce RTX 3060")]


def fall(_engine, request):
    return [
        PitfallStarted(name=request.name, part=request.part, snippet=f"# {request.part}\n"),
        pitfall_finished(request),
    ]


def time_it(_engine, request):
    return run_events(
        request,
        parts_s={"loading": 0.002, "computing": 0.001},
        curves={"loss": (2.0, 1.0, 0.5)},
        findings=tuple(f"{value} was tried." for value in request.options.values())[:1],
        peak_allocated_bytes=1 << 20,
    )


def place_model(_engine, request):
    return [
        place_row("weight", device_after=request.device),
        place_row("bias", (10,), device_after=request.device),
        place_finished(device=request.device),
    ]


def free(qtbot, studio):
    qtbot.waitUntil(lambda: studio.session.is_free)
