"""Snippets that see the cards as this engine does."""

from __future__ import annotations

import os

import torch

from gpu_studio.core.switcher import whole_snippet
from gpu_studio.engine.device import cuda_state


def complete(snippet: str) -> str:
    """Return a snippet with what `whole_snippet.complete` adds on this PC."""
    if "cuda" not in snippet or not cuda_state()[0]:
        return snippet
    return whole_snippet.complete(
        snippet,
        device_count=torch.cuda.device_count(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )
