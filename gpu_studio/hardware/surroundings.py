"""The program's surroundings: WSL, the Linux distribution, and the user's CUDA variables."""

from __future__ import annotations

import os
import platform
from pathlib import Path

# Environment variables of CUDA and PyTorch that a finding may mention.
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
)
_SOFT_CARDS = "SOFT_CARDS_DIR"
_OS_RELEASE = Path("/etc/os-release")


def cuda_variables() -> dict[str, str]:
    """Return the variables of this process that CUDA or PyTorch reads."""
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


def are_cards_simulated() -> bool:
    """Return whether this process uses stand-ins for NVIDIA's libraries.

    The soft cards of ``tests/softcards`` set an environment variable.
    """
    return _SOFT_CARDS in os.environ


def is_wsl(release: str | None = None) -> bool:
    """Return whether this Linux runs inside Windows, by its kernel's ``release``."""
    return "microsoft" in (platform.release() if release is None else release).lower()


def linux_distribution(os_release: Path = _OS_RELEASE) -> str:
    """Return the ids of a Linux and of its ancestors: ``linuxmint ubuntu debian``."""
    try:
        lines = os_release.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    names = (fields.get(key, "").strip("\"'") for key in ("ID", "ID_LIKE"))
    return " ".join(name for name in names if name)
