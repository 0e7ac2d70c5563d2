"""What a few training steps take of PyTorch's allocator, measured on a soft card."""

from typing import Any

import torch


def peak_of(
    optimizer: str, sizes: list[int], dtype: str, *, has_masters: bool = False, **options: Any
) -> int:
    """Return the most that three steps allocated, in bytes.

    Args:
        optimizer: its name in ``torch.optim``.
        sizes: the numbers in each tensor of the network.
        dtype: of the weights and gradients.
        has_masters: the optimizer works on float32 copies of the weights and gradients.
        options: of the optimizer.
    """
    torch.cuda.init()
    torch.empty(1, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    kind = getattr(torch, dtype)
    weights = [torch.empty(size, dtype=kind, device="cuda") for size in sizes]
    masters = [weight.float() for weight in weights] if has_masters else weights
    created = getattr(torch.optim, optimizer)(masters, lr=0.1, **options)
    for _ in range(3):
        gradients = [torch.empty_like(weight) for weight in weights]
        for master, gradient in zip(masters, gradients, strict=True):
            master.grad = gradient.float() if has_masters else gradient
        created.step()
        if has_masters:
            for weight, master in zip(weights, masters, strict=True):
                weight.copy_(master)
        created.zero_grad(set_to_none=True)
        del gradients, gradient
    return int(torch.cuda.memory_stats()["allocated_bytes.all.peak"])
