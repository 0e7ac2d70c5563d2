"""A batch that is too large, and the memory that no_grad and a smaller batch need."""

from __future__ import annotations

import msgspec
import torch
from torch import nn

from gpu_studio.core.device_name import is_cpu, torch_module
from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import OUT_OF_MEMORY
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import accelerator_of, synchronize, total_bytes
from gpu_studio.engine.pitfalls.pitfall import Bench, count, memory

_WIDTH, _LAYERS = 1024, 8
_FIRST_BATCH, _LARGEST_BATCH = 256, 1 << 22
# This pitfall does not fill the card: the allocator refuses at this budget, as on a full card.
_BUDGET_BYTES = 1 << 30
_BUDGET_SHARE = 0.25
_ALLOWED = "the {} that this pitfall may use (it does not fill your card)"
_MODELLED_CARD_BYTES = 2 << 30
_MODELLED = (
    "This PC has no card that PyTorch can use. A model of PyTorch's allocator stands in for a card "
    "with 2 GiB, and the meta device gives the shapes. The error text is the allocator's."
)


class OutOfMemory:
    """See `pitfall.Pitfall`."""

    description = OUT_OF_MEMORY

    def snippet(self, part: str, device: str) -> str:
        is_fixed = part == "fixed"
        if is_cpu(device):
            text = _FIXED_ON_META if is_fixed else _BROKEN_ON_META
        else:
            text = _FIXED if is_fixed else _BROKEN
        return text.format(
            device=device,
            module=torch_module(device),
            width=_WIDTH, layers=_LAYERS, first=_FIRST_BATCH, budget=_BUDGET_BYTES,
            share=_BUDGET_SHARE,
        )  # fmt: skip

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        if bench.has_card:
            return _on_card(part, bench)
        return _modelled(part, bench)


def _network(device: torch.device) -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(_LAYERS):
        layers += [nn.Linear(_WIDTH, _WIDTH, device=device), nn.ReLU()]
    return nn.Sequential(*layers)


def _on_card(part: str, bench: Bench) -> PitfallOutcome:
    device = bench.device
    model = _network(device)
    card = accelerator_of(device)
    card.empty_cache()
    total, limit_before = total_bytes(device), card.limit_share(device)
    held = card.reserved_bytes(device) or 0
    budget = min(_BUDGET_BYTES, int(_BUDGET_SHARE * total)) + held
    card.set_limit_share(device, min(1.0, budget / total))
    try:
        batch, error = _first_that_breaks(model, bench)
        card.empty_cache()
        if part == "broken" or not error:
            return _outcome(part, batch, error, budget, _ALLOWED)
        halved = _peak_of(model, batch // 2, device, trains=True)
        card.empty_cache()
        without = _peak_of(model, batch, device, trains=False)
    finally:
        card.set_limit_share(device, limit_before)
    return _fixed(batch, halved, without, "")


def _first_that_breaks(model: nn.Module, bench: Bench) -> tuple[int, str]:
    """Double the batch from the first; return the first that does not fit, and the error."""
    batch = _FIRST_BATCH
    while batch <= _LARGEST_BATCH:
        bench.check_stop()
        error = _error_of_step(model, batch, bench.device)
        if error:
            return batch, error
        accelerator_of(bench.device).empty_cache()
        batch *= 2
    return batch, ""


def _error_of_step(model: nn.Module, batch: int, device: torch.device) -> str:
    """Return the out-of-memory error's text, and drop the exception itself."""
    try:
        _peak_of(model, batch, device, trains=True)
    except RuntimeError as error:
        if accelerator_of(device).is_out_of_memory(error):
            return f"{type(error).__name__}: {error}"
        raise
    finally:
        model.zero_grad(set_to_none=True)
    return ""


def _peak_of(model: nn.Module, batch: int, device: torch.device, *, trains: bool) -> int:
    """Return the peak of allocated bytes during one batch."""
    card = accelerator_of(device)
    card.reset_peak(device)
    before = card.allocated_bytes(device) or 0
    x = torch.zeros(batch, _WIDTH, device=device)
    with torch.set_grad_enabled(trains):
        y = model(x)
        if trains:
            y.sum().backward()
    synchronize(device)
    model.zero_grad(set_to_none=True)
    return (card.peak_bytes(device) or 0) - before


def _modelled(part: str, bench: Bench) -> PitfallOutcome:
    """Do the same with shapes only: the simulated allocator gets every tensor."""
    batch = _FIRST_BATCH
    while True:
        bench.check_stop()
        _, error = _fill(batch, trains=True)
        if error:
            break
        batch *= 2
    if part == "broken":
        outcome = _outcome(part, batch, f"OutOfMemoryError: {error}", _MODELLED_CARD_BYTES)
        return msgspec.structs.replace(outcome, stand_in=_MODELLED)
    halved, _ = _fill(batch // 2, trains=True)
    without, _ = _fill(batch, trains=False)
    return _fixed(batch, halved, without, _MODELLED)


def _fill(batch: int, *, trains: bool) -> tuple[int, str]:
    """Return the peak bytes of a forward pass on the simulated card, or the error's text."""
    model = _network(torch.device("meta"))
    card = AllocatorModel(_MODELLED_CARD_BYTES)
    saved: set[int] = set()

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.add(tensor.untyped_storage()._cdata)
        return tensor

    try:
        for parameter in model.parameters():
            card.allocate(parameter.nbytes)
        weights = card.stats()["allocated_bytes.all.current"]
        x = torch.empty(batch, _WIDTH, device="meta")
        held = card.allocate(x.nbytes)
        with (
            torch.set_grad_enabled(trains),
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        ):
            for layer in model.children():
                y = layer(x)
                output = card.allocate(y.nbytes)
                if x.untyped_storage()._cdata not in saved:  # the backward pass does not need it
                    card.free(held)
                x, held = y, output
    except ModelledOutOfMemory as error:
        return 0, str(error)
    return card.stats()["allocated_bytes.all.peak"] - weights, ""


def _outcome(part: str, batch: int, error: str, budget: int, words: str = "{}") -> PitfallOutcome:
    room = memory("budget_bytes", "Memory budget", budget)
    if not error:
        sentence = (
            f"Even a batch of {batch // 2} fits on this card. This pitfall tries no larger one."
        )
        return PitfallOutcome(part=part, sentence=sentence, figures=(room,))
    into = words.format(format_bytes(budget))
    return PitfallOutcome(
        part=part,
        sentence=f"A batch of {batch} does not fit into {into}; {batch // 2} did.",
        error=error,
        figures=(count("batch_broke", "Batch that failed", batch), room),
    )


def _fixed(batch: int, halved: int, without: int, stand_in: str) -> PitfallOutcome:
    return PitfallOutcome(
        part="fixed",
        sentence=(
            f"Training a batch of {batch // 2} needs {format_bytes(halved)}. Under no_grad, the "
            f"batch of {batch} that failed needs {format_bytes(without)}."
        ),
        figures=(
            count("batch", "Batch that trains", batch // 2),
            memory("peak_bytes", "Peak, training", halved),
            count("batch_no_grad", "Batch under no_grad", batch),
            memory("peak_no_grad_bytes", "Peak, no_grad", without),
        ),
        stand_in=stand_in,
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
