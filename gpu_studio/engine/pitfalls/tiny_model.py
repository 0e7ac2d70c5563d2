"""A model so small that starting the work takes longer than the work."""

from __future__ import annotations

import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfall_words import speed_words
from gpu_studio.core.switcher.pitfalls import TINY_MODEL
from gpu_studio.core.units import format_duration
from gpu_studio.engine.pitfalls.pitfall import Bench, ratio, seconds

_ROWS = 256


class TinyModel:
    """See `pitfall.Pitfall`."""

    description = TINY_MODEL

    def snippet(self, part: str, device: str) -> str:
        wait = wait_line(device)
        return _SNIPPET.format(device=device, rows=1 if part == "broken" else _ROWS, wait=wait)

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        rows = 1 if part == "broken" else _ROWS
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


_SNIPPET = """\
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
