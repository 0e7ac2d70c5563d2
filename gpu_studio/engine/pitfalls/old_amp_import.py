"""Mixed precision by its old name, which warns and is for CUDA only."""

from __future__ import annotations

import warnings

import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import OLD_AMP_IMPORT
from gpu_studio.engine.pitfalls.pitfall import Bench, count, error_of


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
        return _SNIPPET.format(device=device, names=names, scaler=scaler, autocast=autocast)

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


_SNIPPET = """\
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
