"""Every result of a loop on the CPU gets new memory from the system."""

from __future__ import annotations

import re

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
from gpu_studio.core.switcher.pitfalls import FRESH_RESULTS
from gpu_studio.core.units import format_bytes, format_duration
from gpu_studio.engine.pitfalls.pitfall import Bench, seconds

# Larger than any result that glibc keeps by default (32 MiB): there is no luck in it.
_SIZE = 4096
_RESULT_BYTES = 4 * _SIZE**2
_RESULT = re.compile(r"([\d.]+) s per call")


class FreshResults:
    """See `pitfall.Pitfall`. It runs a script: the engine keeps memory that a script gives back."""

    description = FRESH_RESULTS

    def snippet(self, part: str, device: str) -> str:
        return _SCRIPT.format(
            size=_SIZE,
            made="" if part == "broken" else _MADE.format(size=_SIZE),
            call=_FRESH if part == "broken" else _KEPT,
        )

    def run(self, part: str, bench: Bench) -> PitfallOutcome:
        end = bench.run_script(self.snippet(part, bench.address))
        match = _RESULT.search(end.output)
        if match is None:
            raise StudioError(FailureKind.INTERNAL, f"The new process failed: {end.error}")
        call_s = float(match[1])
        how = "with new memory for each result" if part == "broken" else "into the same memory"
        return PitfallOutcome(
            part=part,
            sentence=(
                f"An addition of {format_bytes(_RESULT_BYTES)} takes {format_duration(call_s)} on "
                f"the CPU, {how}."
            ),
            figures=(seconds("call_s", "Time per addition", call_s, aim="less"),),
            output=end.output,
        )


_MADE = "y = torch.empty({size}, {size})  # once\n"
_FRESH = "y = a + b"
_KEPT = "torch.add(a, b, out=y)"
_SCRIPT = """\
import time

import torch

a = torch.rand({size}, {size})
b = torch.rand({size}, {size})
{made}times = []
for _ in range(11):
    start = time.perf_counter()
    {call}
    times.append(time.perf_counter() - start)
print(f"{{sorted(times)[5]:.6f}} s per call")  # the median
"""
