"""A program that answers requests on a Radeon or an Arc that Python stands in for.

    python -m tests.engine.accelerators.quick_stand_in amd '{"type": "run_workload", …}' … \
        small '{"type": "run_pitfall", …}' …

From the word ``small`` on, a check and pitfalls take seconds: what takes its time by its size is
smaller, and the scripts of pitfalls run in this process, where the card is.
"""

import gc
import sys

import torch

from gpu_studio.engine.check import compute, known_answers, layouts, link, load
from gpu_studio.engine.pitfalls import measured, new_processes, out_of_memory, real_errors
from gpu_studio.engine.pitfalls.pitfall import Bench
from tests.engine.accelerators import python_device, stand_in
from tests.engine.accelerators.python_device import MEMORY
from tests.engine.pitfalls.outcomes import run_here
from tests.engine.quick_runs import make_quick

SMALL = "small"
MIB = 1 << 20
SMALLER = {
    python_device: {"_SEGMENT_BYTES": 1 << 16},
    load: {"_SIDE": 64, "_BURST_S": 0.01, "_ROUND_S": 0.001, "_WAKE_S": 0.001,
           "_LARGEST_BYTES": MIB, "PERIODS_S": (0.01,),
           "STEPS": tuple((duty, 0.01) for duty in load.DUTIES_PERCENT),
           "_LARGEST_STEP_SIDE": 64, "_SMALLEST_SIDE": 64, "_COPY_BYTES": MIB},
    compute: {"_INDEXED": 1 << 10, "_FILLING": 1 << 12, "_COUNT": 1152, "_FUSED_COUNT": 96,
              "_LARGE_TIMES": 2, "_ROWS": 64, "_FULL_SIDE": 32},
    layouts: {"_SIZES": ((17, 33),), "_LARGE_SIZE": (20, 30)},
    known_answers: {"KNOWN": known_answers.KNOWN[::8]},
    link: {"_CARD_COPY_BYTES": MIB},
    out_of_memory: {"_WIDTH": 256, "_BUDGET_BYTES": 32 * MIB},
    real_errors: {"_COUNT": MIB},
    measured: {"_PRODUCT_ON_CARD": 64, "_SIDE_ON_CARD": 64, "_STEPS": 8, "_ROWS": 32,
               "_HIDDEN": 32},
    new_processes: {"_SIZE": 64, "_WORKERS": 0},
}  # fmt: skip


def make_small() -> None:
    """Let everything take as little time as its stage accepts."""
    for module, constants in SMALLER.items():
        for name, value in constants.items():
            assert hasattr(module, name), (module, name)
            setattr(module, name, value)
    MEMORY.cached.clear()
    MEMORY.total_bytes = 192 * MIB
    # Where a result lies around its values cannot be read: each tensor has memory of its own.
    layouts._storage_of = lambda result: python_device.in_order(result)
    Bench.run_script = run_here


def main(maker: str, lines: list[str]) -> None:
    """Answer the requests before and after `SMALL`."""
    gc.freeze()  # as the engine's process does: PyTorch is not looked through for garbage
    smaller = lines.index(SMALL)
    stand_in.stand_in(maker)
    make_quick()
    stand_in.answer(lines[:smaller])
    torch.set_num_threads(1)
    make_small()
    stand_in.answer(lines[smaller + 1 :])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
