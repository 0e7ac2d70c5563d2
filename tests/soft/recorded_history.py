"""Records a history of PyTorch's allocator, for a child on a soft card."""

import random
import re

import torch

MIB = 1 << 20
_PROCESSES = re.compile(
    r"(Process \d+|Including non-PyTorch memory, this process) has \S+ \S+ memory in use\. "
)


def fill(path: str, *, seeds: int, steps: int) -> list[tuple[int, str]]:
    """Make the calls of each seed until one fails; return how many succeeded, and the error.

    The sentences about processes are left out of the error: they come from NVML.

    Args:
        path: the beginning of the names of their snapshots; empty for none.
        seeds: how many programs.
        steps: how many calls each makes.
    """
    ends = []
    for seed in range(seeds):
        if path:
            torch.cuda.memory._record_memory_history(context=None, clear_history=True)
        chance = random.Random(seed)
        held: list[torch.Tensor] = []
        made, failure = 0, ""
        for _ in range(steps):
            if chance.random() < 0.6 or not held:
                size_bytes = int(2 ** chance.uniform(0, 26))
                try:
                    held.append(torch.empty(size_bytes, dtype=torch.uint8, device="cuda"))
                except torch.OutOfMemoryError as error:
                    failure = _PROCESSES.sub("", str(error))
                    break
                made += 1
            else:
                held.pop(chance.randrange(len(held)))
        ends.append((made, failure))
        if path:
            torch.cuda.memory._dump_snapshot(f"{path}{seed}")
        held.clear()
        torch.cuda.empty_cache()
    return ends
