"""Scripts that run out of memory, and scripts that fit."""

from __future__ import annotations

from gpu_studio.core.device_name import is_cpu, torch_module


def snippet_for(
    part: str, device: str, *, width: int, layers: int, first: int, budget: int, share: float
) -> str:
    """Return a script that fails, or one that prints its need; on the CPU with shapes only.

    Args:
        part: ``broken`` or ``fixed``.
        device: the address; ``cpu`` if there is no card.
        width: inputs and outputs of each layer.
        layers: the number of layers, each followed by a ReLU.
        first: the samples of the first batch.
        budget: the bytes that PyTorch may use on the card.
        share: the share of the card that it may use, if that is less.
    """
    is_fixed = part == "fixed"
    if is_cpu(device):
        text = _FIXED_ON_META if is_fixed else _BROKEN_ON_META
    else:
        text = _FIXED if is_fixed else _BROKEN
    return text.format(
        device=device,
        module=torch_module(device),
        width=width,
        layers=layers,
        first=first,
        budget=budget,
        share=share,
    )


_MODEL = """\
layers = []
for _ in range({layers}):
    layers += [torch.nn.Linear({width}, {width}), torch.nn.ReLU()]
"""
_ON_CARD = (
    """\
import torch

device = "{device}"
# A limit inside PyTorch: the error is real, and the card stays usable for other programs.
total = {module}.get_device_properties(device).total_memory
{module}.set_per_process_memory_fraction(min({share}, {budget} / total), device)

"""
    + _MODEL
    + """\
model = torch.nn.Sequential(*layers).to(device)
batch = {first}
"""
)
_BROKEN = (
    _ON_CARD
    + """\
while True:
    x = torch.randn(batch, {width}, device=device)
    model(x).sum().backward()
    print("a batch of", batch, "fits")
    batch *= 2
"""
)
_FIXED = (
    _ON_CARD
    + """\
x = torch.randn(batch, {width}, device=device)

model(x).sum().backward()
print("training:", {module}.max_memory_allocated(device), "bytes at the peak")
model.zero_grad()
{module}.reset_peak_memory_stats(device)
with torch.no_grad():
    model(x)
print("no_grad: ", {module}.max_memory_allocated(device), "bytes at the peak")
"""
)
_ON_META = (
    """\
import torch

"""
    + _MODEL
    + """\
model = torch.nn.Sequential(*layers).to("meta")  # shapes without values, on any PC
kept = {{}}


def pack(tensor):
    kept[tensor.untyped_storage()._cdata] = tensor.nbytes
    return tensor


x = torch.empty(65536, {width}, device="meta")
with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
"""
)
_KEPT = 'print(sum(kept.values()) / 2**30, "GiB are kept for the backward pass")\n'
_BROKEN_ON_META = (
    _ON_META
    + """\
    model(x)
"""
    + _KEPT
)
_FIXED_ON_META = (
    _ON_META
    + """\
    with torch.no_grad():
        model(x)
"""
    + _KEPT
)
