"""Half the bits, and on old devices a multiple of the time."""

from __future__ import annotations

import textwrap

import torch

from gpu_studio.core.device_name import is_cpu, wait_line
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfall_words import is_even, speed_words
from gpu_studio.core.switcher.pitfalls import FLOAT16_ON_OLD_CARD
from gpu_studio.core.units import format_duration
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.pitfalls.pitfall import Bench, ratio, seconds

_SIDE_ON_CARD, _SIDE_ON_CPU = 1024, 256


class Float16OnOldCard:
    """See `pitfall.Pitfall`."""

    description = FLOAT16_ON_OLD_CARD

    def snippet(self, part: str, device: str) -> str:
        return _SNIPPET.format(
            device=device,
            dtypes="torch.float16," if part == "broken" else "torch.float16, torch.float32",
            side=_SIDE_ON_CPU if is_cpu(device) else _SIDE_ON_CARD,
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
    side = _SIDE_ON_CARD if bench.has_card else _SIDE_ON_CPU
    a, b = (torch.rand(side, side, device=bench.device, dtype=dtype) for _ in range(2))
    return bench.median_s(lambda: a @ b, bench.device)


_SNIPPET = """\
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
