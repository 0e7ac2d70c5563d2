"""What every snippet needs so that its ``cuda:1`` is the same card in the user's own shell."""

from __future__ import annotations

import os

import torch

from gpu_studio.engine.device import cuda_state

_IMPORT = "import os\n"


def complete(snippet: str) -> str:
    """Return a snippet that sees the cards as this engine does.

    CUDA numbers the fastest card first unless CUDA_DEVICE_ORDER says otherwise, and hides those
    that CUDA_VISIBLE_DEVICES leaves out. Both are read once, so they are set before PyTorch is
    imported. With one card and nothing hidden a snippet stays as short as it is.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if "cuda" not in snippet or not cuda_state()[0]:
        return snippet
    lines = []
    if visible is not None and "CUDA_VISIBLE_DEVICES" not in snippet:
        lines.append(f'os.environ["CUDA_VISIBLE_DEVICES"] = {visible!r}\n')
    if torch.cuda.device_count() > 1 or lines:
        lines.insert(0, 'os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"\n')
    if not lines or "CUDA_DEVICE_ORDER" in snippet:
        return snippet
    remark, rest = _split_remark(snippet)
    rest = rest.removeprefix(_IMPORT).lstrip("\n")
    return f"{remark}{_IMPORT}\n{''.join(lines)}\n{rest}"


def _split_remark(snippet: str) -> tuple[str, str]:
    """Return the comment that a snippet begins with, and the lines below it."""
    lines = snippet.splitlines(keepends=True)
    count = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])
