"""How near the time of a user's own code is to what `torch.utils.benchmark` measures.

    python -m tests.bench.own_code

Both time the same code on the CPU, in turns in one process, for the pieces of
`tests/engine/own_code/strangers.txt`. Each pair of neighboring batches has a ratio; the median of
all pairs has a 95 % interval by its ranks, which no outlier widens. It is looked at after 200, 400,
800 and 1600 pairs, until it is inside the target or outside of it; else nothing is said.
Batches are as long as a run's. On a PC that does other things as well, both read the time that this
thread had a core: a batch that is interrupted would count the other program's time.
"""

import contextlib
import io
import os
import time
from statistics import median
from time import perf_counter
from types import SimpleNamespace

import torch
from torch.utils.benchmark import Timer

from gpu_studio.core.statistics import interval_of_rounds
from gpu_studio.engine import stopwatch
from gpu_studio.engine.benchmark.timing import BATCH_S
from gpu_studio.engine.own_code.workload import own_workload
from gpu_studio.engine.workloads.case import Case
from tests.engine.own_code.codes import codes_of

CPU = torch.device("cpu")
_WITHIN = 0.03
_PAIRS, _LONGEST_S = (200, 400, 800, 1600), 25.0


def is_decided(ratios: list[float]) -> bool:
    """Return whether the interval is all inside the target, or all outside of it."""
    low, high = interval_of_rounds(ratios)
    is_inside = 1 - _WITHIN <= low <= high <= 1 + _WITHIN
    return is_inside or high < 1 - _WITHIN or low > 1 + _WITHIN


def ratios_of(code, clock) -> list[float]:
    """Return our time over the timer's, of each pair of batches, by a clock in seconds."""
    workload = own_workload(code)
    case = Case(device=CPU, size=workload.program.sizes[0], dtype=torch.float32)
    call = workload.prepare(case)
    watch = call.timed_by(stopwatch.CpuStopwatch())
    call()
    began_s = perf_counter()
    call_s = min(watch.time(call.function, 1)[0] for _ in range(5))
    calls = max(1, round(BATCH_S / max(call_s, 1e-7)))
    timer, ratios = Timer("work()", timer=clock, globals={"work": call.function}), []
    while not (len(ratios) in _PAIRS and is_decided(ratios)):
        if len(ratios) == _PAIRS[-1] or (ratios and perf_counter() - began_s > _LONGEST_S):
            break
        pair_s = [0.0, 0.0]
        for is_ours in (True, False) if len(ratios) % 2 else (False, True):
            if is_ours:
                for _ in range(max(calls // 100, 2)):  # as the timer warms up before each batch
                    call()
                pair_s[0] = watch.time(call.function, calls)[0] / calls
            else:
                pair_s[1] = timer.timeit(calls).mean
        ratios.append(pair_s[0] / pair_s[1])
    return ratios


def main() -> None:
    """Print the ratio of each piece, and how many are within the target."""
    torch.set_num_threads(1)  # the timer's own default
    is_busy = os.getloadavg()[0] > 0.5
    clock = time.thread_time if is_busy else time.perf_counter
    if is_busy:
        stopwatch.time = SimpleNamespace(perf_counter_ns=time.thread_time_ns)
    found = {True: 0, False: 0, None: 0}
    codes = codes_of("strangers.txt")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {clock.__name__}")
    with contextlib.redirect_stdout(io.StringIO()):
        ratios_of(next(iter(codes.values())), clock)  # PyTorch's own first calls
    for title, code in codes.items():
        with contextlib.redirect_stdout(io.StringIO()):
            ratios = ratios_of(code, clock)
        middle, (low, high) = median(ratios), interval_of_rounds(ratios)
        near = abs(middle - 1) <= _WITHIN if is_decided(ratios) else None
        found[near] += 1
        word = {True: "within", False: "BEYOND", None: "not decided"}[near]
        print(
            f"{middle:6.3f} [{low:.3f}, {high:.3f}] {len(ratios):5} pairs  {word}: {title}",
            flush=True,
        )
    print(
        f"{found[True]} of {len(codes)} are within {_WITHIN:.0%}, {found[False]} are beyond, "
        f"{found[None]} are not decided; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
