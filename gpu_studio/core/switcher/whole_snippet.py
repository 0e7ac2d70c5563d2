"""Completes a snippet so that its ``cuda:1`` is the same card in your own shell."""

from __future__ import annotations

from gpu_studio.core.device_name import is_cpu, torch_module

_IMPORT = "import os\n"
_STARTED_AS_FILE = "# Save this as"
_ON_DEVICE = """\
import torch

device = torch.device("{address}")
{set_device}x = torch.ones(3, device=device)
print("made on", x.device)
"""


def complete(snippet: str, *, device_count: int, visible_devices: str | None) -> str:
    """Return a snippet that sees the cards as the engine does.

    CUDA numbers the fastest card first unless CUDA_DEVICE_ORDER says otherwise, and hides the cards
    that CUDA_VISIBLE_DEVICES leaves out. It reads both variables once, so the snippet sets them
    before it imports PyTorch. With a single card and nothing hidden, the snippet stays short.

    Args:
        snippet: complete lines of Python.
        device_count: the number of cards that the engine sees; 0 if CUDA is not available.
        visible_devices: the engine's CUDA_VISIBLE_DEVICES; None if it is not set.
    """
    if "cuda" not in snippet or not device_count:
        return snippet
    lines = []
    if visible_devices is not None and "CUDA_VISIBLE_DEVICES" not in snippet:
        lines.append(f'os.environ["CUDA_VISIBLE_DEVICES"] = {visible_devices!r}\n')
    if device_count > 1 or lines:
        lines.insert(0, 'os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"\n')
    if not lines or "CUDA_DEVICE_ORDER" in snippet:
        return snippet
    remark, rest = _split_remark(snippet)
    rest = rest.removeprefix(_IMPORT).lstrip("\n")
    return f"{remark}{_IMPORT}\n{''.join(lines)}\n{rest}"


def runs_as_it_stands(snippet: str) -> bool:
    """Return whether a snippet runs when pasted; some must be started as a file."""
    return not snippet.startswith(_STARTED_AS_FILE)


def snippet_for_device(address: str) -> str:
    """Return lines that make a device the current one and a tensor there, for `complete`."""
    line = "" if is_cpu(address) else f"{torch_module(address)}.set_device(device)\n"
    return _ON_DEVICE.format(address=address, set_device=line)


def _split_remark(snippet: str) -> tuple[str, str]:
    """Return the comment at the start of a snippet, and the lines below it."""
    lines = snippet.splitlines(keepends=True)
    count = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:count]), "".join(lines[count:])
