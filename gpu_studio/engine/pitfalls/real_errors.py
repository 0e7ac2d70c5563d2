"""Lessons whose answer is a real error or warning of PyTorch, or what an error keeps."""

from __future__ import annotations

import gc
import warnings
import weakref

import torch

from gpu_studio.core.device_name import is_cpu, torch_module
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import EXCEPTION_KEEPS_TENSORS, MIXED_DEVICES, OLD_AMP_IMPORT
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.pitfalls.pitfall import (
    META_STANDS_IN,
    Bench,
    count,
    error_of,
    memory,
    seconds,
)

_ROWS, _COLUMNS = 32, 1000
_REMARK = "  # on the CPU: the next line raises"


class MixedDevices:
    """See `pitfall.Pitfall`."""

    description = MIXED_DEVICES

    def snippet(self, part: str, device: str) -> str:
        """Return the script; on a PC without a card the second device is the meta device."""
        there = device if not is_cpu(device) else "meta"
        moved = f'x = torch.randn({_ROWS}, {_COLUMNS}).to("{there}")'
        return _MIXED.format(
            device=there,
            made=moved if part == "fixed" else f"x = torch.randn({_ROWS}, {_COLUMNS}){_REMARK}",
            columns=_COLUMNS,
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        """Give the model an input on the wrong or on the right device."""
        there = bench.device if bench.has_card else torch.device("meta")
        stand_in = "" if bench.has_card else META_STANDS_IN
        model = torch.nn.Linear(_COLUMNS, 500, device=there)
        x = torch.randn(_ROWS, _COLUMNS)
        if part == "broken":
            error = error_of(lambda: model(x))
            sentence = "PyTorch refuses and names both devices." if error else "It worked."
            return PitfallOutcome(part=part, sentence=sentence, error=error, stand_in=stand_in)
        y = model(x.to(there))
        if not bench.has_card:
            sentence = f"The output has shape {tuple(y.shape)} and is on {y.device}."
            return PitfallOutcome(part=part, sentence=sentence, stand_in=stand_in)
        move_s = bench.median_s(lambda: x.to(there), there)
        return PitfallOutcome(
            part=part,
            sentence=f"The output is on {y.device}. The missing copy takes this long.",
            figures=(seconds("copy_s", "Copying the input", move_s),),
        )


_MIXED = """\
import torch

model = torch.nn.Linear({columns}, 500).to("{device}")
{made}
y = model(x)
print(tuple(y.shape), y.device)
"""


_COUNT = 16 << 20  # float32: 64 MiB


class ExceptionKeepsTensors:
    """See `pitfall.Pitfall`."""

    description = EXCEPTION_KEEPS_TENSORS

    def snippet(self, part: str, device: str) -> str:
        kept = "str(error)" if part == "fixed" else "error"
        remark = "" if part == "fixed" else "  # with its traceback, and so with x"
        if is_cpu(device):
            return _ON_CPU.format(count=_COUNT, kept=kept, remark=remark)
        return _ON_CARD.format(
            device=device,
            module=torch_module(device),
            count=_COUNT,
            kept=kept,
            remark=remark,
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        gc.collect()
        before = _held(bench.device)
        made: list[weakref.ref[torch.Tensor]] = []
        kept: list[object] = []
        try:
            _fail_with_a_tensor(bench.device, made)
        except RuntimeError as error:
            kept.append(str(error) if part == "fixed" else error)
        tensor = made[0]()
        held = 0 if tensor is None else tensor.nbytes
        if bench.has_card:
            held = _held(bench.device) - before
        del tensor
        kept.clear()
        what = "With only the error's text kept" if part == "fixed" else "With the error kept"
        return PitfallOutcome(
            part=part,
            sentence=f"{what}, {format_bytes(held)} of tensors stay in memory.",
            figures=(memory("held_bytes", "Still held", held, aim="less"),),
            stand_in=bench.stand_in,
        )


def _fail_with_a_tensor(device: torch.device, made: list[weakref.ref[torch.Tensor]]) -> None:
    x = torch.empty(_COUNT, device=device)
    made.append(weakref.ref(x))
    raise RuntimeError("something went wrong")


def _held(device: torch.device) -> int:
    return accelerator_of(device).allocated_bytes(device) or 0


_ON_CARD = """\
import torch


def train():
    x = torch.ones({count}, device="{device}")
    raise RuntimeError("something went wrong")


kept = []
try:
    train()
except RuntimeError as error:
    kept.append({kept}){remark}
print({module}.memory_allocated("{device}") / 2**20, "MiB are still allocated")
"""
_ON_CPU = """\
import weakref

import torch

tensors = []


def train():
    x = torch.ones({count})
    tensors.append(weakref.ref(x))
    raise RuntimeError("something went wrong")


kept = []
try:
    train()
except RuntimeError as error:
    kept.append({kept}){remark}
held = sum(x().nbytes for x in tensors if x() is not None)
print(held / 2**20, "MiB are still there")
"""


class OldAmpImport:
    """See `pitfall.Pitfall`."""

    description = OLD_AMP_IMPORT

    def snippet(self, part: str, device: str) -> str:
        kind = device.partition(":")[0]
        if part == "broken":
            names = "from torch.cuda.amp import GradScaler, autocast"
            scaler, autocast = "GradScaler()", "autocast()"
        else:
            names = "from torch.amp import GradScaler, autocast"
            dtype = ", dtype=torch.bfloat16" if is_cpu(kind) else ""
            scaler, autocast = f'GradScaler("{kind}")', f'autocast("{kind}"{dtype})'
        return _AMP.format(device=device, names=names, scaler=scaler, autocast=autocast)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            error = error_of(_use_old if part == "broken" else lambda: _use_new(bench.device.type))
        warned = [
            str(one.message).strip() for one in caught if issubclass(one.category, FutureWarning)
        ]
        text = error or "\n".join(f"FutureWarning: {line}" for line in warned)
        many = "1 warning" if len(warned) == 1 else f"{len(warned)} warnings"
        sentence = f"{many} about old names." if warned else "No warning."
        if error:
            names = "no longer has the old names" if part == "broken" else "lacks the new names"
            sentence = f"This PyTorch {names}."
        return PitfallOutcome(
            part=part,
            sentence=sentence,
            error=text,
            figures=(count("warnings", "Warnings", len(warned), aim="less"),),
        )


def _use_old() -> None:
    torch.cuda.amp.GradScaler(enabled=False)
    with torch.cuda.amp.autocast(enabled=False):
        pass


def _use_new(kind: str) -> None:
    torch.amp.GradScaler(kind, enabled=False)
    with torch.amp.autocast(kind, enabled=False):
        pass


_AMP = """\
import torch
{names}

device = "{device}"
model = torch.nn.Linear(1000, 500).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = {scaler}
x = torch.randn(64, 1000, device=device)
y = torch.randn(64, 500, device=device)

optimizer.zero_grad()
with {autocast}:
    loss = torch.nn.functional.mse_loss(model(x), y)
scaler.scale(loss).backward()
scaler.step(optimizer)
scaler.update()
print("loss", loss.item())
"""
