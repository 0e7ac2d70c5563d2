"""How near the time of a user's own code is to what `torch.utils.benchmark` measures.

    python -m tests.bench.own_code

Both time the same code on the CPU, in turns in one process, for the pieces of
`tests/engine/own_code/strangers.txt`. It prints two ratios of each piece, of the medians and of the
shortest batches: on a busy PC only the second one says much.
"""

import contextlib
import io
from statistics import median
from time import perf_counter

import torch
from torch.utils.benchmark import Timer

from gpu_studio.engine.own_code.program import OwnProgram
from gpu_studio.engine.own_code.stand_in import CodesTurn
from gpu_studio.engine.stopwatch import CpuStopwatch
from tests.engine.own_code.codes import codes_of

CPU = torch.device("cpu")
_BATCH_S, _ROUNDS, _WITHIN = 0.003, 80, 0.03


def functions_of(code):
    """Return a call of the code here, and the same work with nothing of this program around it."""
    program, inner = OwnProgram(code), []
    watched = program.watched
    program.watched = lambda device, function: inner.append(function) or watched(device, function)
    return program.call(CPU, program.sizes[0]).function, inner[-1]


def ratios_of(code) -> tuple[float, float]:
    """Return our time over the timer's: of the medians, and of the shortest batches."""
    ours, plain = functions_of(code)
    ours()
    began_s = perf_counter()
    ours()
    calls = max(1, round(_BATCH_S / max(perf_counter() - began_s, 1e-7)))
    timer, stopwatch, times_s = Timer("work()", globals={"work": plain}), CpuStopwatch(), ([], [])
    for number in range(_ROUNDS):
        for is_ours in (True, False) if number % 2 else (False, True):
            if is_ours:
                times_s[0].append(stopwatch.time(ours, calls)[0] / calls)
            else:
                CodesTurn.device = CPU
                times_s[1].append(timer.timeit(calls).mean)
                CodesTurn.device = None
    ours_s, plain_s = times_s
    return median(ours_s) / median(plain_s), min(ours_s) / min(plain_s)


def main() -> None:
    """Print the ratio of each piece, and how many are within the target."""
    torch.set_num_threads(1)  # the timer's own default
    near = 0
    codes = codes_of("strangers.txt")
    for title, code in codes.items():
        with contextlib.redirect_stdout(io.StringIO()):
            middle, shortest = ratios_of(code)
        near += min(abs(middle - 1), abs(shortest - 1)) <= _WITHIN
        print(f"{middle:6.3f} {shortest:6.3f}  {title}")
    print(f"{near} of {len(codes)} are within {_WITHIN:.0%}")


if __name__ == "__main__":
    main()
