"""PyTorch's two switches for cuDNN, set temporarily and always restored."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

# By the option's value: (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic)
CHOICES = {
    "default": (False, False),
    "benchmark": (True, False),
    "deterministic": (False, True),
    "benchmark+deterministic": (True, True),
}


@contextlib.contextmanager
def cudnn_flags(choice: str) -> Iterator[None]:
    """Set both switches, and restore them on exit.

    Args:
        choice: a key of `CHOICES`.
    """
    cudnn = torch.backends.cudnn
    before = (cudnn.benchmark, cudnn.deterministic)
    cudnn.benchmark, cudnn.deterministic = CHOICES[choice]
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before
