"""What is left to do on a PC without a card that PyTorch can use, and the names of such cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.notice import Action

if TYPE_CHECKING:
    from gpu_studio.core.devices.pc_facts import PcFacts

MAC = (
    "This program measures CUDA, which no Mac has. PyTorch's standard build uses a Mac's own GPU "
    "under the name mps (not tested by us)."
)
_ASK_MPS = 'python -c "import torch; print(torch.backends.mps.is_available())"'
_TIME_CPU = "gpu-studio bench matmul --device cpu"


def next_step(facts: PcFacts) -> tuple[str, Action | None]:
    """Return a command or an address to copy, and what the window does instead."""
    if facts.inventory.is_wsl:
        return nvidia.DRIVER_PAGE, None
    if facts.system == "Darwin":
        return _ASK_MPS, None
    return _TIME_CPU, Action.RUN_BENCHMARK


def other_names(facts: PcFacts) -> tuple[str, ...]:
    """Return the names of the cards of all makers but NVIDIA."""
    return (*(card.name for card in facts.others), *facts.inventory.other_gpus)
