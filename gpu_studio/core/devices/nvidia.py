"""What a PC with NVIDIA's cards needs to be told: the driver's pages, commands and limits.

The findings ask here for whatever belongs to this maker. The chips and driver branches are in
`cards`, the builds of PyTorch in `core.wheels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts

KERNEL_DRIVER = "nvidia"
DRIVER_PAGE = "https://www.nvidia.com/drivers"
UNIX_DRIVER_PAGE = "https://www.nvidia.com/en-us/drivers/unix/"
# Lists the cards and their processes. It opens NVML, which wakes every card of the driver.
TOOL = "nvidia-smi"
LOAD_MODULE = "sudo modprobe nvidia"
SHOW_PERMISSIONS = "ls -l /dev/nvidia*"
# Nano and TX1, TX2, Xavier, Orin: PyTorch's standard builds have no code for them.
JETSON = frozenset({(5, 3), (6, 2), (7, 2), (8, 7)})
JETSON_PAGE = "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/"
# docs.nvidia.com, driver installation guide, "Kernel Modules": the open module needs the processor
# (GSP) that cards have since Turing. developer.nvidia.com/blog, "NVIDIA Transitions Fully Towards
# Open-Source GPU Kernel Modules": Blackwell needs the open module.
_WITHOUT_GSP = frozenset({"Maxwell", "Pascal", "Volta"})
_OPEN_MODULE_ONLY = frozenset({"Blackwell"})


def install_driver(facts: PcFacts) -> str:
    """Return how to install the driver: the system's own command if it has one, or a page."""
    family = facts.inventory.distribution.split()
    if facts.driver_system == "Windows":
        return DRIVER_PAGE
    if "ubuntu" in family:
        return "sudo ubuntu-drivers install"
    if "debian" in family:
        return "sudo apt install nvidia-driver"
    return UNIX_DRIVER_PAGE


def driver_page(facts: PcFacts) -> str:
    """Return the page with all driver branches; a Linux system offers only its own."""
    return DRIVER_PAGE if facts.driver_system == "Windows" else UNIX_DRIVER_PAGE


def needs_open_module(architecture: str | None) -> bool | None:
    """Return whether a card needs the open one of the driver's kernel modules; None for either."""
    if architecture in _WITHOUT_GSP:
        return False
    return True if architecture in _OPEN_MODULE_ONLY else None


def open_to_all(card: Device, system: str) -> str:
    """Return the command that opens a card to all programs, if its compute mode closed it."""
    if card.compute_mode in (None, "default"):
        return TOOL
    sudo = "" if system == "Windows" else "sudo "
    return f"{sudo}{TOOL} -i {card.pci_bus_id or card.driver_index} -c DEFAULT"


def end_mig(card: Device) -> str:
    """Return the command that makes one card of MIG instances again."""
    return f"sudo {TOOL} -i {card.driver_index} -mig 0"
