"""Snippets that see the cards in the same way as this engine."""

from __future__ import annotations

import os

import torch

from gpu_studio.core.switcher import whole_snippet
from gpu_studio.engine.device import cuda_state


def complete(snippet: str) -> str:
    """Return a snippet with the lines that `whole_snippet.complete` adds on this PC."""
    if "cuda" not in snippet or not cuda_state()[0]:
        return snippet
    return whole_snippet.complete(
        snippet,
        device_count=torch.cuda.device_count(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )
