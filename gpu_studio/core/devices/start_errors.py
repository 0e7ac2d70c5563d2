"""The errors with which CUDA does not start: what each means, and what to do about it.

The numbers are those of `cudaError_t` in NVIDIA's driver_types.h, which also says what each means.
What helped people is in the threads that a row names. The words by which an error's text is known
are in `core.error_table`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Advice(NamedTuple):
    """What to do next: in words, and as a command or an address to copy.

    Both may have names in braces: attributes of `why_not.UnusedCards`.
    """

    words: str
    command: str = ""


# Where a step is for, most special first: "WSL container", "container", "flatpak", "snap", "WSL",
# "Linux", "Windows"; "any" is for every place without one of its own.
Steps = dict[str, Advice]


class Meaning(NamedTuple):
    """One error: its meaning after "CUDA could not start:", and the steps."""

    meaning: str
    steps: Mapping[str, Advice]
    source: str


_API = "NVIDIA, CUDA Runtime API, cudaError_t"
_RESTART = Advice("Restart the PC.", "{restart}")
_REINSTALL = Advice("Reinstall the NVIDIA driver.", "{driver_page}")
_DEVICE_FILES = Advice("It needs access to the files /dev/nvidia*.", "ls -l /dev/nvidia*")
_STUBS = Advice("Take folders named “stubs” out of LD_LIBRARY_PATH.")
GIVE_CARD = {
    "docker": Advice("Start the container again with --gpus all."),
    "podman": Advice("Start the container again with --device nvidia.com/gpu=all."),
    "apptainer": Advice("Start the container again with --nv."),
    "lxc": Advice("Add the card and the driver's library to the container's configuration."),
    "kubernetes": Advice("Let the pod ask for the resource nvidia.com/gpu."),
    "container": Advice("Start the container again with access to the card."),
    "any": Advice("Start the container with access to the card, or reinstall the driver."),
}
"""How a container is given a card of NVIDIA's: by its own documentation."""
_MPS = {
    "Linux": Advice("End NVIDIA's MPS service.", "echo quit | nvidia-cuda-mps-control"),
    "any": Advice("End NVIDIA's MPS service on the PC, or unset CUDA_MPS_PIPE_DIRECTORY."),
}
_STOPPED = Meaning("the card had stopped with an error", {"any": _RESTART}, _API)

START_ERRORS: dict[int, Meaning] = {
    2: Meaning(
        "the driver got no memory to start with, of the PC or of the card",
        {
            "Linux": Advice("Close other programs, or raise the limit of memory.", "ulimit -v"),
            "Windows": Advice("Close other programs, or let Windows enlarge its paging file."),
            "WSL": Advice("Close other programs, or give WSL more memory in .wslconfig."),
            "container": Advice("Close other programs, or raise the container's memory limit."),
            "any": Advice("Close other programs."),
        },
        f"{_API}; Windows' limit: the paging file bounds what a driver may commit",
    ),
    3: Meaning(
        "the driver did not start",
        {**GIVE_CARD, "WSL": Advice("Restart WSL.", "wsl --shutdown"), "any": _RESTART},
        f"{_API}; PyTorch's c10/cuda/CUDAFunctions.cpp says “CUDA driver initialization failed”",
    ),
    34: Meaning(
        "a stand-in from the CUDA toolkit (stubs/libcuda.so) was loaded in place of the driver",
        {
            "Linux": _STUBS._replace(command='echo "$LD_LIBRARY_PATH"'),
            "WSL": _STUBS._replace(command='echo "$LD_LIBRARY_PATH"'),
            "Windows": Advice("Take folders named “stubs” out of the variable Path."),
            "any": _STUBS,
        },
        _API,
    ),
    35: Meaning(
        "the NVIDIA driver is too old for this PyTorch",
        {"any": Advice("Update the driver{where}.", "{driver_page}")},
        _API,
    ),
    46: Meaning(
        "the card is taken by another program, or closed to programs by its compute mode",
        {"any": Advice("Look at the programs on it and at its compute mode.", "nvidia-smi")},
        _API,
    ),
    100: Meaning(
        "CUDA finds no card",
        {**GIVE_CARD, "any": Advice("See which cards the driver lists.", "nvidia-smi -L")},
        _API,
    ),
    101: Meaning(
        "a card was asked for that CUDA does not have",
        {"any": Advice("See which cards the driver lists.", "nvidia-smi -L")},
        _API,
    ),
    102: Meaning(
        "this virtual card has no license",
        {"any": Advice("The license comes from whoever runs the virtual machine.")},
        _API,
    ),
    302: Meaning(
        "a part of the driver's library is missing, or could not be loaded",
        {**GIVE_CARD, "any": _REINSTALL},
        _API,
    ),
    304: Meaning(
        "the system refused a call of the driver",
        {
            "Linux": _DEVICE_FILES,
            "container": Advice(
                "Start the container again with /dev/nvidia-uvm, and with "
                "--security-opt seccomp=unconfined if its system calls are filtered."
            ),
            "any": _RESTART,
        },
        f"{_API}; abetlen/llama-cpp-python issue 645",
    ),
    500: Meaning(
        "the driver's library lacks a part that CUDA asks for",
        {
            "WSL container": Advice(
                "Update Docker Desktop to 4.31 or newer, or nvidia-container-toolkit to 1.14.4 or "
                "newer: older ones leave out a library of Windows drivers from 555 on."
            ),
            "container": Advice("Update nvidia-container-toolkit on the PC, then start it again."),
            "WSL": Advice(
                "Update WSL. In a container, update Docker Desktop instead.", "wsl --update"
            ),
            "any": _REINSTALL,
        },
        "NVIDIA/nvidia-container-toolkit issue 520; Docker Desktop release notes 4.31.0",
    ),
    800: Meaning(
        "the driver does not permit it to this user",
        {
            "Linux": _DEVICE_FILES,
            **GIVE_CARD,
            "any": _RESTART,
        },
        _API,
    ),
    801: Meaning(
        "the driver does not support CUDA on this system",
        {"any": Advice("Update the driver{where}.", "{driver_page}")},
        _API,
    ),
    802: Meaning(
        "a service that the driver waits for does not run",
        {"any": _RESTART},
        f"{_API}; pytorch/pytorch issue 35710: the Fabric Manager of PCs with NVSwitch",
    ),
    803: Meaning(
        "the driver's library and its kernel module do not match",
        {
            "lxc": Advice(
                "Install the driver's library of version {version} in the container, without its "
                "kernel module."
            ),
            "container": Advice(
                "Take libcuda out of the image, and start it with access to the card: that brings "
                "the PC's own."
            ),
            "flatpak": Advice("Outside of it, run “flatpak update”."),
            "WSL": Advice(
                "If a Linux driver of NVIDIA's is installed in WSL, remove it: the one of Windows "
                "brings the library."
            ),
            "any": _RESTART,
        },
        f"{_API}; NVIDIA/nvidia-docker issue 1445",
    ),
    804: Meaning(
        "a driver library was loaded that is newer than the driver, which only cards of data "
        "centers allow",
        {
            "container": Advice(
                "Update the PC's driver, or take /usr/local/cuda/compat out of LD_LIBRARY_PATH."
            ),
            "any": Advice(
                "Take its folder (cuda/compat) out of LD_LIBRARY_PATH, or update the driver{where}."
                " Container images bring such a library.",
                "{driver_page}",
            ),
        },
        f"{_API}; HorizonRobotics/GUMP issue 1; lllyasviel/Fooocus issue 2169",
    ),
    805: Meaning(
        "NVIDIA's MPS service does not answer, or has too many programs",
        _MPS,
        _API,
    ),
    999: Meaning(
        "the driver gave an unknown error, which is common after the PC has slept",
        {
            "Linux": Advice(
                "Reload CUDA's kernel module, or restart the PC.",
                "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm",
            ),
            "WSL": Advice("Restart WSL.", "wsl --shutdown"),
            "container": Advice("Reload nvidia_uvm on the PC, then start the container again."),
            "flatpak": Advice("Outside of it, run “sudo modprobe nvidia_uvm”."),
            "any": _RESTART,
        },
        f"{_API}; pytorch/pytorch issue 88639; flatpak/flatpak issue 6047",
    ),
}
START_ERRORS |= dict.fromkeys((214, 700, 702, 719), _STOPPED)
START_ERRORS |= {36: START_ERRORS[35], 303: START_ERRORS[302]}
START_ERRORS |= dict.fromkeys(range(806, 811), START_ERRORS[805])

# Cards of PCs with NVSwitch, whose Fabric Manager has to run before CUDA: NVIDIA, "Fabric Manager
# for NVIDIA NVSwitch Systems".
SWITCHED_CARDS = re.compile(r"\b(?:A100|A800|H100|H200|H800|H20|B100|B200|B300|GB200|GB300)\b")
FABRIC_MANAGER = Advice(
    "On a PC with NVSwitch, start NVIDIA's Fabric Manager.",
    "sudo systemctl start nvidia-fabricmanager",
)
