"""The clock is stopped when the work was handed over, not when it was done."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import torch

from gpu_studio.core.messages.pitfall_messages import PitfallDescription, PitfallOutcome
from gpu_studio.core.switching.pitfall_words import is_even
from gpu_studio.core.units import format_duration, format_ratio
from gpu_studio.engine.pitfalls.pitfall import Bench, seconds

_CALLS = 20
_SIDES = {"cuda": 2048, "cpu": 512}


class NoSynchronize:
    """See `pitfall.Pitfall`."""

    description = PitfallDescription(
        name="no_synchronize",
        title="Stop the watch too early",
        sentence="time.time() around CUDA calls: the numbers are wonderful, and of no meaning.",
        why=(
            "A CUDA call puts its work into the card's queue and returns at once. What the clock "
            "shows is how long the CPU took to write the list. Only what waits for the card, such "
            "as synchronize(), .item() or .cpu(), ends when the work has ended."
        ),
        remedy="torch.cuda.synchronize() before the clock is started, and before it is stopped.",
        source="How can I run any code on my GPU, instead on CPU? times without it",
        remark=(
            "The post's loop is long enough for the queue to fill up, so that the clock waits "
            "after all, and its first call pays for the start. Short measurements are worse off."
        ),
    )

    def snippet(self, part: str, device: str) -> str:
        """Return lines that time products; without a card a worker thread has the queue."""
        fixed = part == "fixed"
        if device == "cpu":
            wait = "for one in queued:\n    one.result()\n" if fixed else ""
            return _STAND_IN.format(side=_SIDES["cpu"], calls=_CALLS, wait=wait)
        wait = f'torch.cuda.synchronize("{device}")\n' if fixed else ""
        return _SNIPPET.format(device=device, side=_SIDES["cuda"], calls=_CALLS, wait=wait)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        """Stop two watches, one when all was handed over and one when all was done."""
        handed_s, done_s = _on_card(bench) if bench.has_card else _on_thread()
        stand_in = (
            ""
            if bench.has_card
            else "This PC has no card that PyTorch can use: a worker thread stands in for it, and "
            "takes work into a queue as a card does."
        )
        if part == "broken":
            sentence = _of_the_clock(handed_s / _CALLS, done_s / _CALLS)
        else:
            sentence = (
                f"With the wait a call takes {format_duration(done_s / _CALLS)}; without it the "
                f"same clock had said {format_duration(handed_s / _CALLS)}."
            )
        figures = (
            seconds("printed_s", "A call, as printed without the wait", handed_s / _CALLS),
            seconds("call_s", "A call, with the wait", done_s / _CALLS),
        )
        return PitfallOutcome(part=part, sentence=sentence, figures=figures, stand_in=stand_in)


def _of_the_clock(printed_s: float, call_s: float) -> str:
    """Return what the clock without a wait is worth, by the two that were stopped."""
    says = f"The clock says {format_duration(printed_s)} a call"
    if is_even(printed_s, call_s):
        return (
            f"{says}, and that is about what the work took: the queue was full, so that handing "
            "over had to wait for it. Nothing says when that is so."
        )
    return (
        f"{says}. It is a lie: the work took {format_duration(call_s)} a call, "
        f"{format_ratio(call_s / printed_s)} as long."
    )


def _on_card(bench: Bench) -> tuple[float, float]:
    side = _SIDES["cuda"]
    a, b = (torch.rand(side, side, device=bench.device) for _ in range(2))
    a @ b
    torch.cuda.synchronize(bench.device)
    start_s = time.perf_counter()
    for _ in range(_CALLS):
        a @ b
    handed_s = time.perf_counter() - start_s
    torch.cuda.synchronize(bench.device)
    return handed_s, time.perf_counter() - start_s


def _on_thread() -> tuple[float, float]:
    side = _SIDES["cpu"]
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
card = ThreadPoolExecutor(max_workers=1)  # takes work into a queue, as a card does
card.submit(torch.matmul, a, b).result()
start = time.perf_counter()
queued = [card.submit(torch.matmul, a, b) for _ in range({calls})]
{wait}print(f"{{(time.perf_counter() - start) / {calls}:.6f}} s a call")
card.shutdown()
"""
