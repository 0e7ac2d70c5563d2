"""Lessons whose answer is a measurement."""

from __future__ import annotations

import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from gpu_studio.core.device_name import is_cpu, wait_line
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfall_words import is_even, speed_words
from gpu_studio.core.switcher.pitfalls import (
    FLOAT16_ON_OLD_CARD,
    MODEL_ON_CPU,
    NO_SYNCHRONIZE,
    TINY_MODEL,
)
from gpu_studio.core.units import format_duration, format_ratio
from gpu_studio.engine.device import accelerator_of, synchronize
from gpu_studio.engine.pitfalls.pitfall import Bench, count, ratio, seconds

_PRODUCT_ON_CARD, _PRODUCT_ON_CPU = 1024, 256


class Float16OnOldCard:
    """See `pitfall.Pitfall`."""

    description = FLOAT16_ON_OLD_CARD

    def snippet(self, part: str, device: str) -> str:
        return _BOTH_DTYPES.format(
            device=device,
            dtypes="torch.float16," if part == "broken" else "torch.float16, torch.float32",
            side=_PRODUCT_ON_CPU if is_cpu(device) else _PRODUCT_ON_CARD,
            wait=textwrap.indent(wait_line(device), "    "),
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        half_s, single_s = (_product_s(dtype, bench) for dtype in (torch.float16, torch.float32))
        figures = (
            seconds("float16_s", "Product in float16", half_s),
            seconds("float32_s", "Product in float32", single_s),
            ratio("slower", "float16 time / float32 time", half_s / single_s),
        )
        sentence = (
            f"float16 takes {format_duration(half_s)}, float32 {format_duration(single_s)}: "
            f"float16 is {speed_words(half_s, single_s)} on this {self._device(bench)}."
        )
        if part == "fixed":
            sentence = f"{sentence} {_advice(half_s, single_s)}"
        return PitfallOutcome(
            part=part, sentence=sentence, figures=figures, stand_in=bench.stand_in
        )

    @staticmethod
    def _device(bench: Bench) -> str:
        if not bench.has_card:
            return "CPU"
        card = accelerator_of(bench.device)
        name = card.name(bench.device)
        # Without a list, the words for the chip are those of a card that it was not built for.
        return f"{name} ({card.architecture(bench.device)})" if card.arch_list() else name


def _advice(half_s: float, single_s: float) -> str:
    if is_even(half_s, single_s):
        return "So float16 saves no time here, only memory."
    best = "float32" if half_s > single_s else "float16"
    return f"So use {best} here: {format_duration(min(half_s, single_s))}."


def _product_s(dtype: torch.dtype, bench: Bench) -> float:
    side = _PRODUCT_ON_CARD if bench.has_card else _PRODUCT_ON_CPU
    a, b = (torch.rand(side, side, device=bench.device, dtype=dtype) for _ in range(2))
    return bench.median_s(lambda: a @ b, bench.device)


_BOTH_DTYPES = """\
import time
import torch

for dtype in ({dtypes}):
    a = torch.rand({side}, {side}, dtype=dtype, device="{device}")
    b = torch.rand({side}, {side}, dtype=dtype, device="{device}")
    a @ b  # the first call is slower
{wait}    start = time.perf_counter()
    for _ in range(10):
        a @ b
{wait}    print(dtype, f"{{(time.perf_counter() - start) / 10:.6f}} s per product")
"""


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
        return _TRAINING.format(
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
_TRAINING = """\
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


_CALLS = 20
_SIDE_ON_CARD, _SIDE_ON_CPU = 2048, 512


class NoSynchronize:
    """See `pitfall.Pitfall`."""

    description = NO_SYNCHRONIZE

    def snippet(self, part: str, device: str) -> str:
        fixed = part == "fixed"
        if is_cpu(device):
            wait = "for one in queued:\n    one.result()\n" if fixed else ""
            return _STAND_IN.format(side=_SIDE_ON_CPU, calls=_CALLS, wait=wait)
        wait = wait_line(device) if fixed else ""
        return _QUEUED.format(device=device, side=_SIDE_ON_CARD, calls=_CALLS, wait=wait)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        handed_s, done_s = _on_card(bench) if bench.has_card else _on_thread()
        stand_in = (
            ""
            if bench.has_card
            else "This PC has no card that PyTorch can use. A worker thread stands in for it and "
            "queues work as a card does."
        )
        if part == "broken":
            sentence = _of_the_clock(handed_s / _CALLS, done_s / _CALLS)
        else:
            sentence = (
                f"With the wait, a call takes {format_duration(done_s / _CALLS)}. Without it, the "
                f"same clock showed {format_duration(handed_s / _CALLS)}."
            )
        figures = (
            seconds("printed_s", "Time per call, without the wait", handed_s / _CALLS),
            seconds("call_s", "Time per call, with the wait", done_s / _CALLS),
        )
        return PitfallOutcome(part=part, sentence=sentence, figures=figures, stand_in=stand_in)


def _of_the_clock(printed_s: float, call_s: float) -> str:
    """Compare the clock that did not wait with the one that did."""
    shown = f"The clock shows {format_duration(printed_s)} per call"
    if is_even(printed_s, call_s):
        return (
            f"{shown}, and this time that is close to the truth: the queue was full, so the CPU "
            "had to wait for it. You cannot tell from the number when that happens."
        )
    return (
        f"{shown}. That is wrong: the work took {format_duration(call_s)} per call, "
        f"{format_ratio(call_s / printed_s)} as long."
    )


def _on_card(bench: Bench) -> tuple[float, float]:
    side = _SIDE_ON_CARD
    a, b = (torch.rand(side, side, device=bench.device) for _ in range(2))
    a @ b
    synchronize(bench.device)
    start_s = time.perf_counter()
    for _ in range(_CALLS):
        a @ b
    handed_s = time.perf_counter() - start_s
    synchronize(bench.device)
    return handed_s, time.perf_counter() - start_s


def _on_thread() -> tuple[float, float]:
    side = _SIDE_ON_CPU
    a, b = (torch.rand(side, side) for _ in range(2))
    a @ b
    with ThreadPoolExecutor(max_workers=1) as card:
        card.submit(torch.matmul, a, b).result()
        start_s = time.perf_counter()
        queued = [card.submit(torch.matmul, a, b) for _ in range(_CALLS)]
        handed_s = time.perf_counter() - start_s
        for one in queued:
            one.result()
        return handed_s, time.perf_counter() - start_s


_QUEUED = """\
import time
import torch

a = torch.rand({side}, {side}, device="{device}")
b = torch.rand({side}, {side}, device="{device}")
a @ b  # the first call is slower
{wait}start = time.perf_counter()
for _ in range({calls}):
    a @ b
{wait}print(f"{{(time.perf_counter() - start) / {calls}:.6f}} s a call")
"""
_STAND_IN = """\
import time
from concurrent.futures import ThreadPoolExecutor

import torch

a = torch.rand({side}, {side})
b = torch.rand({side}, {side})
card = ThreadPoolExecutor(max_workers=1)  # queues work, as a card does
card.submit(torch.matmul, a, b).result()
start = time.perf_counter()
queued = [card.submit(torch.matmul, a, b) for _ in range({calls})]
{wait}print(f"{{(time.perf_counter() - start) / {calls}:.6f}} s a call")
card.shutdown()
"""


_SAMPLES = 256


class TinyModel:
    """See `pitfall.Pitfall`."""

    description = TINY_MODEL

    def snippet(self, part: str, device: str) -> str:
        wait = wait_line(device)
        return _ONE_LAYER.format(device=device, rows=1 if part == "broken" else _SAMPLES, wait=wait)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        rows = 1 if part == "broken" else _SAMPLES
        cpu_s = _sample_s(torch.device("cpu"), rows, bench)
        how = "alone" if rows == 1 else f"in a batch of {rows}"
        aim = "" if bench.has_card else "less"
        figures = [seconds("cpu_s", "Time per sample on the CPU", cpu_s, aim=aim)]
        if not bench.has_card:
            sentence = f"A sample {how} takes {format_duration(cpu_s)} on the CPU."
            return PitfallOutcome(
                part=part, sentence=sentence, figures=tuple(figures), stand_in=bench.stand_in
            )
        card_s = _sample_s(bench.device, rows, bench)
        figures.append(seconds("card_s", f"Time per sample on {bench.address}", card_s, aim="less"))
        figures.append(ratio("speed_up", "Speed-up of the card", cpu_s / card_s))
        sentence = (
            f"A sample {how} takes {format_duration(card_s)} on {bench.address} and "
            f"{format_duration(cpu_s)} on the CPU: the card is {speed_words(card_s, cpu_s)}."
        )
        return PitfallOutcome(part=part, sentence=sentence, figures=tuple(figures))


def _sample_s(device: torch.device, rows: int, bench: Bench) -> float:
    """Return the seconds per sample of a call."""
    model = torch.nn.Linear(10, 10, device=device)
    x = torch.randn(rows, 10, device=device)
    with torch.no_grad():
        return bench.median_s(lambda: model(x), device, fewest=20) / rows


_ONE_LAYER = """\
import time
import torch

rows = {rows}
model = torch.nn.Linear(10, 10).to("{device}")
x = torch.randn(rows, 10, device="{device}")

model(x)  # the first call is slower
{wait}start = time.perf_counter()
for _ in range(1000):
    model(x)
{wait}print(f"{{(time.perf_counter() - start) / 1000 / rows:.9f}} s per sample")
"""
