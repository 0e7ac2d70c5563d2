"""What is found of a PC without an NVIDIA card: what is there instead, and what to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.pc.driver_findings import DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND
from gpu_studio.core.pc.finding import Finding
from gpu_studio.core.pc.finding_words import DRIVER_PAGE, TORCH_PAGE, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.pc.pc_facts import PcFacts

# What PyTorch can do with others' cards: pytorch.org/get-started/locally and the documentation of
# torch.xpu and torch.mps. This program measures CUDA.
_OTHERS = {
    "AMD": "PyTorch can use many AMD cards through its ROCm builds, on Linux",
    "Intel": "PyTorch can use Intel's Arc and newer graphics through its XPU build",
}
_DRAWS_ALONE = "can draw, but PyTorch computes nothing on it"
_MAC = "This program measures CUDA, which no Mac has; PyTorch calls a Mac's own GPU mps."
# Next steps that can be copied: an index of PyTorch's own, a question to PyTorch, and this
# program's own run on the CPU alone.
_XPU_BUILD = "python -m pip install torch --index-url https://download.pytorch.org/whl/xpu"
_ASK_MPS = 'python -c "import torch; print(torch.backends.mps.is_available())"'
_TIME_CPU = "gpu-studio bench matmul --device cpu"


def no_nvidia_card(facts: PcFacts) -> Iterator[Finding]:
    """No card of NVIDIA's; others are named with what PyTorch can do with them."""
    absent = (None, LIBRARY_NOT_FOUND, DRIVER_NOT_LOADED)
    if facts.inventory.cards or facts.driver.is_silent or facts.driver.error_code not in absent:
        return
    others = facts.inventory.other_gpus
    sentence = "This PC has no NVIDIA card, so everything here runs on the CPU."
    if facts.inventory.is_wsl:
        sentence = (
            "WSL shows no NVIDIA card, so everything here runs on the CPU. If Windows has one, "
            "its driver has to be installed in Windows, not here."
        )
    elif facts.system == "Darwin":
        sentence += f" {_MAC}"
    if others:
        verb = "is" if len(others) == 1 else "are"
        sentence += f" {listed(others)} {verb} there: " + "; ".join(_uses(others)) + "."
    yield Finding(
        code="no_nvidia_card",
        sentence=sentence,
        evidence=f"Driver: {facts.driver.error or 'it sees no card.'} On the bus: "
        f"{listed(others) or 'no graphics card'}",
        action=_next_step(facts),
    )


def _next_step(facts: PcFacts) -> str:
    others = facts.inventory.other_gpus
    if any(name.startswith("Intel Arc") for name in others):
        return _XPU_BUILD
    if any(_maker(name) in _OTHERS for name in others):
        return TORCH_PAGE  # which build it is depends on the card and on the system
    if facts.inventory.is_wsl:
        return DRIVER_PAGE
    return _ASK_MPS if facts.system == "Darwin" else _TIME_CPU


def _uses(others: Sequence[str]) -> Iterator[str]:
    makers = list(dict.fromkeys(_maker(name) for name in others))
    for maker in makers:
        if maker in _OTHERS:
            yield f"{_OTHERS[maker]}; CUDA, which this program measures, is NVIDIA's alone"
        else:
            names = [name for name in others if _maker(name) == maker]
            yield f"{listed(names)} {_DRAWS_ALONE}"


def _maker(name: str) -> str:
    return name.split(" ", 1)[0]
