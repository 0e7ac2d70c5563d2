"""The errors with which CUDA does not start: what each means, and what to do about it.

The numbers and their official words are those of `cudaError_t` in NVIDIA's driver_types.h, which
also says what each means. What helped people is in the threads that a row names.
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
    """One error: its official words, its meaning after "CUDA could not start:", and the steps."""

    official: str
    meaning: str
    steps: Mapping[str, Advice]
    source: str


_API = "NVIDIA, CUDA Runtime API, cudaError_t"
_RESTART = Advice("Restart the PC.", "{restart}")
_REINSTALL = Advice("Reinstall the NVIDIA driver.", "{driver_page}")
_ON_THE_PC = Advice("Look at the driver outside of {sandbox}, on the PC itself.")
_ACCESS = Advice(
    "Start the container again with access to the card: --gpus all in Docker, "
    "--device nvidia.com/gpu=all in Podman."
)
_MPS = {
    "Linux": Advice("End NVIDIA's MPS service.", "echo quit | nvidia-cuda-mps-control"),
    "any": Advice("End NVIDIA's MPS service on the PC, or unset CUDA_MPS_PIPE_DIRECTORY."),
}
_STOPPED = Meaning("", "the card had stopped with an error", {"any": _RESTART}, _API)

START_ERRORS: dict[int, Meaning] = {
    2: Meaning(
        "out of memory",
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
        "initialization error",
        "the driver did not start",
        {"container": _ACCESS, "WSL": Advice("Restart WSL.", "wsl --shutdown"), "any": _RESTART},
        f"{_API}; PyTorch's c10/cuda/CUDAFunctions.cpp says “CUDA driver initialization failed”",
    ),
    34: Meaning(
        "CUDA driver is a stub library",
        "a stand-in from the CUDA toolkit (stubs/libcuda.so) was loaded in place of the driver",
        {
            "Linux": Advice(
                "Take folders named “stubs” out of LD_LIBRARY_PATH.", 'echo "$LD_LIBRARY_PATH"'
            ),
            "WSL": Advice(
                "Take folders named “stubs” out of LD_LIBRARY_PATH.", 'echo "$LD_LIBRARY_PATH"'
            ),
            "any": Advice("Take folders named “stubs” out of LD_LIBRARY_PATH."),
        },
        _API,
    ),
    35: Meaning(
        "CUDA driver version is insufficient for CUDA runtime version",
        "the NVIDIA driver is too old for this PyTorch",
        {"any": Advice("Update the driver{where}.", "{driver_page}")},
        _API,
    ),
    36: Meaning(
        "API call is not supported in the installed CUDA driver",
        "the NVIDIA driver is too old for this PyTorch",
        {"any": Advice("Update the driver{where}.", "{driver_page}")},
        _API,
    ),
    46: Meaning(
        "CUDA-capable device(s) is/are busy or unavailable",
        "the card is taken by another program, or closed to programs by its compute mode",
        {"any": Advice("Look at the programs on it and at its compute mode.", "nvidia-smi")},
        _API,
    ),
    100: Meaning(
        "no CUDA-capable device is detected",
        "CUDA finds no card",
        {"container": _ACCESS, "any": Advice("See which cards the driver lists.", "nvidia-smi -L")},
        _API,
    ),
    101: Meaning(
        "invalid device ordinal",
        "a card was asked for that CUDA does not have",
        {"any": Advice("See which cards the driver lists.", "nvidia-smi -L")},
        _API,
    ),
    102: Meaning(
        "device doesn't have valid Grid license",
        "this virtual card has no license",
        {"any": Advice("The license comes from whoever runs the virtual machine.")},
        _API,
    ),
    302: Meaning(
        "shared object symbol not found",
        "a part of the driver's library is missing or of another version",
        {"any": _REINSTALL, "container": _ACCESS},
        _API,
    ),
    303: Meaning(
        "shared object initialization failed",
        "a part of the driver's library could not be loaded",
        {"any": _REINSTALL, "container": _ACCESS},
        _API,
    ),
    304: Meaning(
        "OS call failed or operation not supported on this OS",
        "the system refused a call of the driver",
        {
            "Linux": Advice("It needs access to the files /dev/nvidia*.", "ls -l /dev/nvidia*"),
            "container": Advice(
                "Start the container again with /dev/nvidia-uvm, and with "
                "--security-opt seccomp=unconfined if its system calls are filtered."
            ),
            "any": _RESTART,
        },
        f"{_API}; abetlen/llama-cpp-python issue 645",
    ),
    500: Meaning(
        "named symbol not found",
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
        "operation not permitted",
        "the driver does not permit it to this user",
        {
            "Linux": Advice("It needs access to the files /dev/nvidia*.", "ls -l /dev/nvidia*"),
            "any": _ON_THE_PC,
        },
        _API,
    ),
    801: Meaning(
        "operation not supported",
        "the driver does not support CUDA on this system",
        {"any": Advice("Update the driver{where}.", "{driver_page}")},
        _API,
    ),
    802: Meaning(
        "system not yet initialized",
        "a service that the driver waits for does not run",
        {"any": _RESTART},
        f"{_API}; pytorch/pytorch issue 35710: the Fabric Manager of PCs with NVSwitch",
    ),
    803: Meaning(
        "system has unsupported display driver / cuda driver combination",
        "the driver's library and its kernel module do not match",
        {
            "container": Advice(
                "Start the container again with --gpus all, so that it gets the PC's own library."
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
        "forward compatibility was attempted on non supported HW",
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
        "MPS client failed to connect to the MPS control daemon or the MPS server",
        "NVIDIA's MPS service does not answer",
        _MPS,
        _API,
    ),
    806: Meaning(
        "Remote procedural call failed between the MPS server and the MPS client",
        "NVIDIA's MPS service does not answer",
        _MPS,
        _API,
    ),
    807: Meaning(
        "MPS server is not ready to accept new MPS client requests",
        "NVIDIA's MPS service is not ready",
        _MPS,
        _API,
    ),
    808: Meaning(
        "Hardware resources required to create MPS client have been exhausted",
        "NVIDIA's MPS service has too many programs",
        _MPS,
        _API,
    ),
    809: Meaning(
        "Hardware resources required to support device connections have been exhausted",
        "NVIDIA's MPS service has too many programs",
        _MPS,
        _API,
    ),
    999: Meaning(
        "unknown error",
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
_STOPS = {
    214: "uncorrectable ECC error encountered",
    700: "an illegal memory access was encountered",
    702: "the launch timed out and was terminated",
    719: "unspecified launch failure",
}
for _number, _words in _STOPS.items():
    START_ERRORS[_number] = _STOPPED._replace(official=_words)

# Cards of PCs with NVSwitch, whose Fabric Manager has to run before CUDA: NVIDIA, "Fabric Manager
# for NVIDIA NVSwitch Systems".
SWITCHED_CARDS = re.compile(r"\b(?:A100|A800|H100|H200|H800|H20|B100|B200|B300|GB200|GB300)\b")
FABRIC_MANAGER = Advice(
    "On a PC with NVSwitch, start NVIDIA's Fabric Manager.",
    "sudo systemctl start nvidia-fabricmanager",
)

# "… Error 804: forward compatibility was …", "CUDA error 304 at …", "(101) : invalid device …",
# "cuda runtime error (802) : …", "CUDA failure 304: …"; PyTorch's own words for three of them.
_NUMBER = re.compile(
    r"(?:\bError |\berror[ =:]{1,2}|\bfailure |error )\(?(?P<code>\d{1,3})\)?\b|"
    r"(?:^|\s)\((?P<bare>\d{1,3})\)\s*:"
)
_OWN_WORDS = {
    "CUDA driver initialization failed": 3,
    "CUDA unknown error": 999,
    "NVIDIA driver on your system is too old": 35,
    "Got 'out of memory' error while trying to initialize": 2,
}


def start_code(text: str) -> int | None:
    """Return the number of CUDA's error in a text: by itself, or by its official words."""
    own = next((number for phrase, number in _OWN_WORDS.items() if phrase in text), None)
    if own is not None:
        return own
    for found in _NUMBER.finditer(text):
        code = int(found["code"] or found["bare"])
        if code in START_ERRORS:
            return code
    by_length = sorted(START_ERRORS.items(), key=lambda item: -len(item[1].official))
    return next((code for code, error in by_length if error.official in text), None)
