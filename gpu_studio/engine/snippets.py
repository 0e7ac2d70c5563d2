"""Snippets that see the cards in the same way as this engine."""

from __future__ import annotations

import os

from gpu_studio.core.switcher import whole_snippet
from gpu_studio.engine.device import accelerator, accelerator_state


def complete(snippet: str) -> str:
    """Return a snippet with the lines that `whole_snippet.complete` adds on this PC."""
    if "cuda" not in snippet or not accelerator_state().is_available:
        return snippet
    return whole_snippet.complete(
        snippet,
        device_count=accelerator().count(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )
