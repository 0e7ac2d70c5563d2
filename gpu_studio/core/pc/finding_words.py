"""How findings say things: lists, sentences after a colon, and each system's own next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.pc.devices import Inventory

DRIVER_PAGE = "https://www.nvidia.com/drivers"
UNIX_DRIVER_PAGE = "https://www.nvidia.com/en-us/drivers/unix/"
# It opens NVML, which starts every card that the driver serves.
WAKE_BY_HAND = "nvidia-smi"
TORCH_PAGE = "https://pytorch.org/get-started/locally/"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: ``A, B and C``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def continued(sentence: str) -> str:
    """Return a sentence as it reads after a colon; a name of capitals keeps them."""
    first = sentence.split(" ", 1)[0]
    if first in ("The", "No", "This", "A"):
        return sentence[0].lower() + sentence[1:]
    return sentence


def install_driver(system: str, inventory: Inventory) -> str:
    """Return how NVIDIA's driver is installed: a command where the system has one of its own."""
    if system == "Windows" or inventory.is_wsl:
        return DRIVER_PAGE
    family = inventory.distribution.split()
    if "ubuntu" in family:
        return "sudo ubuntu-drivers install"
    if "debian" in family:
        return "sudo apt install nvidia-driver"
    return UNIX_DRIVER_PAGE


def driver_page(system: str) -> str:
    """Return where all branches of NVIDIA's driver are: systems offer the one they ship alone."""
    return DRIVER_PAGE if system == "Windows" else UNIX_DRIVER_PAGE


def restart(system: str) -> str:
    """Return the command that restarts the PC."""
    return "shutdown /r" if system == "Windows" else "sudo reboot"


def reload_cuda(system: str, *, is_wsl: bool) -> str:
    """Return what brings CUDA back after the PC has slept."""
    if is_wsl:
        return "wsl --shutdown"
    if system == "Linux":
        return "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"
    return restart(system)
