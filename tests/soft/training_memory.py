"""What a few training steps take of PyTorch's allocator, measured on a soft card."""

from typing import Any

import torch


def peak_of(optimizer: str, sizes: list[int], dtype: str, **options: Any) -> int:
    """Return the most that three steps allocated, in bytes.

    Args:
        optimizer: its name in ``torch.optim``.
        sizes: the numbers in each tensor of the network.
        dtype: of the weights and gradients.
        options: of the optimizer.
    """
    torch.cuda.init()
    torch.empty(1, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    kind = getattr(torch, dtype)
    weights = [torch.empty(size, dtype=kind, device="cuda") for size in sizes]
    created = getattr(torch.optim, optimizer)(weights, lr=0.1, **options)
    for _ in range(3):
        for weight in weights:
            weight.grad = torch.empty_like(weight)
        created.step()
        created.zero_grad(set_to_none=True)
    return int(torch.cuda.memory_stats()["allocated_bytes.all.peak"])
