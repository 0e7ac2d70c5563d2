"""Measures as a careless script does: ``python -m gpu_studio.engine.benchmark.naive_script CASE``.

It runs in a new process, because the engine has already paid every cost that a script pays once:
CUDA's start, the libraries' first use, memory from the system. The clock starts after the imports
and before the work is set up, as in "How can I run any code on my GPU, instead on CPU?" by Radosław
Śmigielski (blog post of 2025-03-01). The last line of standard output has its times.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.failure import first_line
from gpu_studio.core.messages.run_messages import RunParameters
from gpu_studio.engine.device import synchronize
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload


class NaiveStopwatch(msgspec.Struct, frozen=True):
    """The time of each step's end, in seconds since the start of the clock.

    The steps: CUDA starts, the work is set up, the first call returns, the device finishes.
    """

    started_s: float
    made_s: float
    printed_s: float
    finished_s: float


class NaiveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The stopwatch, or why there is none."""

    stopwatch: NaiveStopwatch | None = None
    failure: str = ""


def time_in_this_process(workload: Workload, case: Case) -> NaiveStopwatch:
    """Set up the work and call it once, timed by the wall clock."""
    start_s = time.perf_counter()
    if case.is_on_card:
        torch.empty(1, device=case.device)
    started_s = time.perf_counter()
    with contextlib.closing(workload.prepare_untried(case)) as call:
        made_s = time.perf_counter()
        call()
        printed_s = time.perf_counter()
        synchronize(case.device)
        finished_s = time.perf_counter()
    steps_s = (started_s, made_s, printed_s, finished_s)
    return NaiveStopwatch(*(step_s - start_s for step_s in steps_s))


def main(arguments: Sequence[str]) -> int:
    """Measure, write the answer, and return the exit code."""
    lifeline, out = take_over_stdin(0), take_over_stdout()

    def end_with_engine() -> None:
        lifeline.read(1)
        os._exit(1)

    threading.Thread(target=end_with_engine, name="engine", daemon=True).start()
    asked = msgspec.json.decode(arguments[0], type=RunParameters)
    workload = find_workload(asked.workload)
    case = make_case(
        workload.description,
        torch.device(asked.device),
        asked.size,
        asked.dtype,
        options=asked.options,
        cache=asked.cache,
        transfers=asked.transfers,
    )
    try:
        answer = NaiveAnswer(stopwatch=time_in_this_process(workload, case))
    except Exception as error:  # most often a full card: this process needs a context, too
        answer = NaiveAnswer(failure=first_line(str(error), 200) or type(error).__name__)
    out.write(msgspec.json.encode(answer) + b"\n")
    out.flush()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Tearing down CUDA can hang; the driver frees what a process had.
    os._exit(code)
