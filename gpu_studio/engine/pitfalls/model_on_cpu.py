"""The model stays on the CPU: it learns, but may learn slowly."""

from __future__ import annotations

import time

import torch
from torch import nn

from gpu_studio.core.device_name import is_cpu, wait_line
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import MODEL_ON_CPU
from gpu_studio.core.units import format_duration
from gpu_studio.engine.device import synchronize
from gpu_studio.engine.pitfalls.pitfall import Bench, count, seconds

_STEPS, _ROWS, _INPUTS, _HIDDEN = 60, 512, 64, 256
_SEED = 20250130
_SAME_DEVICE = (
    " The broken part ran on the same device: a difference between the two times is chance "
    "and says nothing about a card."
)


class ModelOnCpu:
    """See `pitfall.Pitfall`."""

    description = MODEL_ON_CPU

    def snippet(self, part: str, device: str) -> str:
        move = _MOVE.format(device=device) if part == "fixed" else ""
        to = f'.to("{device}")' if part == "fixed" else ""
        wait = wait_line(device) if part == "fixed" else ""
        return _SNIPPET.format(
            move=move,
            to=to,
            wait=wait,
            remark="" if part == "fixed" else "  # on the CPU, like every new model",
            rows=_ROWS, inputs=_INPUTS, hidden=_HIDDEN, steps=_STEPS,
        )  # fmt: skip

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        device = bench.device if part == "fixed" else torch.device("cpu")
        losses, step_s = _train(device, bench)
        place = "on the CPU" if is_cpu(device.type) else f"on {device}"
        sentence = (
            f"{_STEPS} steps {place}: the loss went from {losses[0]:.3g} to {losses[-1]:.3g}, "
            f"{format_duration(step_s)} per step."
        )
        if part == "fixed" and not bench.has_card:
            sentence += _SAME_DEVICE
        return PitfallOutcome(
            part=part,
            sentence=sentence,
            figures=(
                seconds("step_s", "Time per step", step_s, aim="less" if bench.has_card else ""),
                count("loss_first", "First loss", losses[0]),
                count("loss_last", "Last loss", losses[-1]),
            ),
            curves={"loss": tuple(losses)},
            stand_in=bench.stand_in if part == "fixed" else "",
        )


def _train(device: torch.device, bench: Bench) -> tuple[list[float], float]:
    """Return the loss of each step, and the seconds per step after the first."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        x = torch.randn(_ROWS, _INPUTS)
        y = x.square().sum(1, keepdim=True) / _INPUTS
        model = nn.Sequential(nn.Linear(_INPUTS, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, 1))
    x, y, model = x.to(device), y.to(device), model.to(device)
    optimizer = torch.optim.Adam(model.parameters())
    losses: list[torch.Tensor] = []
    start_s = time.perf_counter()
    for step in range(_STEPS + 1):
        bench.check_stop()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step == 0:
            synchronize(device)
            start_s = time.perf_counter()
    synchronize(device)
    step_s = (time.perf_counter() - start_s) / _STEPS
    return [float(loss) for loss in losses], step_s


_MOVE = 'x, y = x.to("{device}"), y.to("{device}")\n'
_SNIPPET = """\
import time
import torch

torch.manual_seed(0)
x = torch.randn({rows}, {inputs})
y = x.square().mean(1, keepdim=True)
{move}layers = torch.nn.Linear({inputs}, {hidden}), torch.nn.ReLU(), torch.nn.Linear({hidden}, 1)
model = torch.nn.Sequential(*layers){to}{remark}
optimizer = torch.optim.Adam(model.parameters())

start = time.perf_counter()
for step in range({steps}):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
{wait}print(f"{{(time.perf_counter() - start) / {steps}:.6f}} s per step on {{loss.device}}")
"""
