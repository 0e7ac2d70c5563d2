"""The few lines of PyTorch that do what an experiment of the memory lab does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.memory.activation_calls import LAYERS, WIDTH

if TYPE_CHECKING:
    from gpu_studio.core.messages.memory_messages import RunMemoryExperiment

_MIB = 1 << 20


def snippet_of(
    request: RunMemoryExperiment, budget_bytes: int | None, room_bytes: int, conf: str = ""
) -> str:
    """Return a program that runs as it stands, on a card.

    Args:
        request: the experiment; of a modelled card, the program is for ``cuda:0``.
        budget_bytes: what may be reserved; None for the whole card.
        room_bytes: what the experiment sized its tensors by.
        conf: the allocator's options.
    """
    device = request.device if request.device.startswith("cuda") else "cuda:0"
    lines = []
    if conf:
        lines += ["import os", "", f'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{conf}"', ""]
    lines += ["import torch", "", f'device = "{device}"']
    if budget_bytes is not None:
        lines += [
            "total_bytes = torch.cuda.get_device_properties(device).total_memory",
            f"fraction = min(1.0, ({budget_bytes} + 0.25) / total_bytes)",
            "torch.cuda.set_per_process_memory_fraction(fraction, device)",
        ]
    lines += ["", "", *_body(request, room_bytes).strip("\n").split("\n")]
    lines += [
        'print(torch.cuda.memory_allocated(device), "bytes allocated")',
        'print(torch.cuda.memory_reserved(device), "bytes reserved")',
    ]
    return "\n".join(lines) + "\n"


def _body(request: RunMemoryExperiment, room_bytes: int) -> str:
    preset, plan = request.preset, request.plan
    if preset == "custom" and plan is not None:
        return _CUSTOM.format(
            size=plan.size,
            growth=plan.growth,
            dtype=plan.dtype,
            count="True" if plan.count is None else f"number < {plan.count}",
            drop=_DROP if plan.frees_every_second else "",
        )
    part_bytes = room_bytes // 7 // (2 * _MIB) * (2 * _MIB)
    kept_bytes = max(room_bytes // 24 // _MIB * _MIB, _MIB)
    return {
        "gt1030": _SAME.format(side=8192),
        "many_small": _SAME.format(side=256),
        "one_big": _ONE_BIG.format(room_bytes=room_bytes),
        "fragmentation": _FRAGMENTATION.format(part_bytes=part_bytes, pin_bytes=8 * _MIB),
        "leak": _LEAK.format(kept_bytes=kept_bytes),
        "activations": _ACTIVATIONS.format(layers=LAYERS, width=WIDTH),
        "after_the_error": _AFTER.format(size_bytes=max(room_bytes * 3 // 16 // _MIB * _MIB, _MIB)),
    }[preset]


_SAME = """
tensors = []
try:
    while True:
        tensors.append(torch.empty({side}, {side}, device=device))
except torch.OutOfMemoryError as error:
    print(error)
print(len(tensors), "tensors fit")
"""
_ONE_BIG = """
import math

side = math.isqrt({room_bytes} // 4) + 1
try:
    torch.empty(side, side, device=device)
except torch.OutOfMemoryError as error:
    print(error)
"""
_FRAGMENTATION = """
def take(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8, device=device)


part_bytes, pin_bytes = {part_bytes}, {pin_bytes}
pins, rests = [], []
for _ in range(6):
    part = take(part_bytes)
    del part
    pins.append(take(pin_bytes))  # settles in the front of the freed part
    rests.append(take(part_bytes - pin_bytes))
rests.clear()
try:
    take(2 * part_bytes)
    print("it fits")
except torch.OutOfMemoryError as error:
    print(error)
"""
_LEAK = """
def take(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8, device=device)


history = []
try:
    while True:
        activation = take(2 * {kept_bytes})
        loss = take({kept_bytes})
        history.append(loss)  # a number, loss.item(), would keep nothing
        del activation, loss
except torch.OutOfMemoryError as error:
    print(error)
print(len(history), "steps")
"""
_ACTIVATIONS = """
layers = []
for _ in range({layers}):
    layers += [torch.nn.Linear({width}, {width}, bias=False), torch.nn.ReLU()]
network = torch.nn.Sequential(*layers).to(device)


def step(batch, trains):
    inputs = torch.empty(batch, {width}, device=device)
    with torch.set_grad_enabled(trains):
        outputs = network(inputs)
    if trains:
        outputs.backward(torch.empty_like(outputs))  # as a loss's gradient would
    network.zero_grad(set_to_none=True)


for trains in (True, False):
    batch = 64
    try:
        while batch <= 1 << 26:
            step(batch, trains)
            batch *= 2
    except torch.OutOfMemoryError as error:
        print(error)
    network.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    print("the largest batch", "with" if trains else "without", "gradients:", batch // 2)
"""
_AFTER = """
def work():
    batches = []
    while True:
        batches.append(torch.empty({size_bytes}, dtype=torch.uint8, device=device))


try:
    work()
except torch.OutOfMemoryError as error:
    held = error
torch.cuda.empty_cache()
print("held:  ", torch.cuda.memory_allocated(device), "bytes allocated")
del held
torch.cuda.empty_cache()
print("let go:", torch.cuda.memory_allocated(device), "bytes allocated")
"""
_CUSTOM = """
tensors = []
number = 0
try:
    while {count}:
        side = {size} + number * {growth}
        tensors.append(torch.empty(side, side, dtype=torch.{dtype}, device=device))
        number += 1
{drop}except torch.OutOfMemoryError as error:
    print(error)
print(len(tensors), "tensors are there")
"""
_DROP = """\
        if number > 1 and number % 2 == 1:
            del tensors[-2]
"""
