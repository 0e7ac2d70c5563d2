"""The clock stops when the work is queued, not when it is done."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import torch

from gpu_studio.core.device_name import is_cpu, wait_line
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfall_words import is_even
from gpu_studio.core.switcher.pitfalls import NO_SYNCHRONIZE
from gpu_studio.core.units import format_duration, format_ratio
from gpu_studio.engine.device import synchronize
from gpu_studio.engine.pitfalls.pitfall import Bench, seconds

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
        return _SNIPPET.format(device=device, side=_SIDE_ON_CARD, calls=_CALLS, wait=wait)

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


_SNIPPET = """\
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
