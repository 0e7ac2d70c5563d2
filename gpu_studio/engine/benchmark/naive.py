"""The other stopwatch: what a script without warm-up and synchronize would have printed.

As in "How can I run any code on my GPU, instead on CPU?" by Radosław Śmigielski (blog post of
2025-03-01): the clock starts before the operands are made, and stops when the call has returned.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.protocol import NaiveTime
from gpu_studio.core.units import format_duration, format_ratio
from gpu_studio.engine.device import synchronize

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

# What is closer to the honest number than this is no difference worth a word.
_WORTH_TELLING = 0.1


class NaiveStopwatch(NamedTuple):
    """When the operands were made, the call had returned, and the device was done; seconds."""

    made_s: float
    printed_s: float
    finished_s: float


def time_naively(workload: Workload, case: Case) -> NaiveStopwatch:
    """Do as such a script does: make the operands and call once, by the clock on the wall."""
    start_s = time.perf_counter()
    with contextlib.closing(workload.prepare(case)) as call:
        made_s = time.perf_counter()
        call()
        printed_s = time.perf_counter()
        synchronize(case.device)
        finished_s = time.perf_counter()
    return NaiveStopwatch(made_s - start_s, printed_s - start_s, finished_s - start_s)


def explain(naive: NaiveStopwatch, median_s: float, case: Case) -> NaiveTime:
    """Return both numbers with the difference to the honest one in a sentence.

    Args:
        naive: what was measured.
        median_s: of the honest samples.
        case: what was called.
    """
    ratio = naive.printed_s / median_s
    sentence = f"A script without care would print {format_duration(naive.printed_s)}"
    if abs(ratio - 1) <= _WORTH_TELLING:
        sentence += ", which happens to be right here"
    else:
        sentence += f", {format_ratio(ratio)} the median of {format_duration(median_s)}"
    sentence += f": {', '.join(_reasons(naive, case))}."
    return NaiveTime(printed_s=naive.printed_s, finished_s=naive.finished_s, sentence=sentence)


def _reasons(naive: NaiveStopwatch, case: Case) -> list[str]:
    call_s = naive.printed_s - naive.made_s
    reasons = [
        f"{format_duration(naive.made_s)} of it made the operands",
        f"{format_duration(call_s)} are the first call, without warm-up",
    ]
    if case.is_on_card:
        late_s = naive.finished_s - naive.printed_s
        reasons[-1] += " and without waiting for the card"
        reasons.append(f"which was done {format_duration(late_s)} later")
    return reasons
