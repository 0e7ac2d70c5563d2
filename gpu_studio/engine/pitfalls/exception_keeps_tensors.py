"""A stored exception keeps the tensors of the frames it went through."""

from __future__ import annotations

import gc
import weakref

import torch

from gpu_studio.core.device_name import is_cpu, torch_module
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import EXCEPTION_KEEPS_TENSORS
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.pitfalls.pitfall import Bench, memory

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
