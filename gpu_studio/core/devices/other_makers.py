"""What PyTorch offers for the cards that this program does not measure yet, and where to get it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.finding import TORCH_PAGE
from gpu_studio.core.listing import listed
from gpu_studio.core.notice import Action

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.pc_facts import PcFacts


# How PyTorch supports other makers' cards: pytorch.org/get-started/locally, the documentation of
# torch.xpu and torch.mps, and rocm.docs.amd.com, "Install PyTorch", for AMD's own builds. AMD has
# builds for Linux and Windows, each for one chip. This program measures CUDA.
_OTHERS = {
    "AMD": "PyTorch can use newer AMD cards on Linux and Windows with AMD's ROCm build for that "
    "chip (not tested by us)",
    "Intel": "PyTorch can use Intel's Arc and newer graphics through its XPU build (not tested by "
    "us)",
}
_CUDA_ONLY = "CUDA, which this program measures, runs only on NVIDIA cards"
_DRAWS_ALONE = "can draw, but PyTorch cannot use it"
MAC = (
    "This program measures CUDA, which no Mac has. PyTorch's standard build uses a Mac's own GPU "
    "under the name mps (not tested by us)."
)
# Next steps to copy: a package index of PyTorch, a question to PyTorch, and this program's own
# benchmark on the CPU.
_XPU_BUILD = "python -m pip install torch --index-url https://download.pytorch.org/whl/xpu"
# Only from AMD's index, for Linux and Windows: PyPI has empty packages of the same names.
_AMD_BUILD = (
    'python -m pip install "torch[device-{chip}]" --index-url '
    "https://repo.amd.com/rocm/whl-multi-arch/"
)
_AMD_PAGE = "https://rocm.docs.amd.com/"
# llvm.org/docs/AMDGPUUsage.html, "Processors". A laptop's card (RX 6800M) has another chip.
_AMD_CHIPS = tuple(
    (re.compile(rf"\b(?:{names})(?![0-9MS])"), chip)
    for names, chip in (
        ("RX 5[67]00", "gfx1010"), ("RX 5500", "gfx1012"), ("RX 6[89][05]0|W6800", "gfx1030"),
        ("RX 67[05]0", "gfx1031"), ("RX 66[05]0|W6600", "gfx1032"),
        ("RX 6[45]00", "gfx1034"), ("RX 79\\d0|W7[89]00", "gfx1100"),
        ("RX 7[78]00|W7700", "gfx1101"), ("RX 7600|W7[56]00", "gfx1102"),
        ("RX 90[56]0", "gfx1200"), ("RX 9070|R9700", "gfx1201"),
    )
)  # fmt: skip
# What asks a build of PyTorch for another maker's cards whether it can use them.
_ASK_BUILD = {
    ("AMD", "rocm"): 'python -c "import torch; print(torch.cuda.is_available())"',
    ("Intel", "xpu"): 'python -c "import torch; print(torch.xpu.is_available())"',
}
_ASK_MPS = 'python -c "import torch; print(torch.backends.mps.is_available())"'
_TIME_CPU = "gpu-studio bench matmul --device cpu"


def next_step(facts: PcFacts) -> tuple[str, Action | None]:
    """Return a command or an address to copy, and what the window does instead."""
    others = other_names(facts)
    for name in others:
        if (question := _question(name, facts)) is not None:
            return question, None
    if any(name.startswith("Intel Arc") for name in others):
        return _XPU_BUILD, None
    for name in others:
        if _maker(name) == "AMD":
            return _amd_build(name), None
    if any(_maker(name) in _OTHERS for name in others):
        return TORCH_PAGE, None  # the right build depends on the card and the system
    if facts.inventory.is_wsl:
        return nvidia.DRIVER_PAGE, None
    if facts.system == "Darwin":
        return _ASK_MPS, None
    return _TIME_CPU, Action.RUN_BENCHMARK


def _amd_build(name: str) -> str:
    """Return AMD's build for a card, or AMD's page if the name does not identify the chip."""
    for pattern, chip in _AMD_CHIPS:
        if pattern.search(name):
            return _AMD_BUILD.format(chip=chip)
    return _AMD_PAGE


def other_names(facts: PcFacts) -> tuple[str, ...]:
    """Return the names of the cards of all makers but NVIDIA."""
    return (*(card.name for card in facts.others), *facts.inventory.other_gpus)


def uses(others: Sequence[str], facts: PcFacts) -> Iterator[str]:
    """Yield what PyTorch can do with other makers' cards, a clause for each maker."""
    makers = list(dict.fromkeys(_maker(name) for name in others))
    for maker in makers:
        if _question(maker, facts) is not None:
            yield f"this PyTorch is built for it (not tested by us); {_CUDA_ONLY}"
        elif maker in _OTHERS:
            yield f"{_OTHERS[maker]}; {_CUDA_ONLY}"
        else:
            names = [name for name in others if _maker(name) == maker]
            yield f"{listed(names)} {_DRAWS_ALONE}"


def _question(name: str, facts: PcFacts) -> str | None:
    """Return what asks the installed PyTorch for a card, if it is a build for that maker."""
    return _ASK_BUILD.get((_maker(name), facts.engine.build_kind)) if facts.engine else None


def _maker(name: str) -> str:
    return name.split(" ", 1)[0]
