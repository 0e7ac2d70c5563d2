"""Made-up PCs whose card PyTorch cannot use, each with what the doctor has to say of it."""

import re
from typing import Any

import msgspec
import pytest

from gpu_studio.core import operating_system
from gpu_studio.core.devices.access import Obstacle, numbered_cards, obstacle_of
from gpu_studio.core.devices.causes import ROWS, Row
from gpu_studio.core.devices.devices import Device, Driver
from gpu_studio.core.devices.finding import KINDS
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.signs import SANDBOXES, DeviceFile, Signs, lender_of
from gpu_studio.core.devices.unused_cards import hides_all, hides_level_zero
from gpu_studio.core.messages.engine_messages import EngineDescribed, StartError, TorchCard
from gpu_studio.core.program_form import Program, ProgramForm
from tests.core.devices.doctor_facts import CPU_ENGINE, ENGINE, RTX_3060, changed, pc, probe
from tests.core.errors.test_reports import START_CODES

INSTALLED = Program(ProgramForm.INSTALLED, "gpu-studio")
SLOT = "00000000:03:00.0"


def card(maker: str, name: str, device_id: int, **facts: Any) -> Device:
    kinds = {"NVIDIA": "cuda", "AMD": "cuda", "Intel": "xpu"}
    drivers = {"NVIDIA": None, "AMD": "amdgpu", "Intel": "xe"}
    facts = {"pci_bus_id": SLOT, "kernel_driver": drivers[maker], **facts}
    return Device(
        kind=kinds[maker], maker=maker, name=f"{maker} {name}", pci_device_id=device_id, **facts
    )


def unlisted(name: str, device_id: int, driver: str | None = "nvidia", **facts: Any) -> Device:
    """A card of NVIDIA's that is on the bus and not in NVML's list."""
    facts = {"unreadable": "It is not listed.", "unreadable_code": "not_served", **facts}
    return card("NVIDIA", name, device_id, kernel_driver=driver, **facts)


def unstarted(name: str, device_id: int, driver: str | None = None) -> Device:
    return unlisted(name, device_id, driver, unreadable_code="no_driver")


GEFORCE = changed(RTX_3060, maker="NVIDIA", name="NVIDIA GeForce RTX 3090", pci_device_id=0x2204,
                  multiprocessors=82, memory_bus_width_bits=384,
                  memory_total_bytes=24 << 30)  # fmt: skip
H100 = changed(RTX_3060, name="NVIDIA H100 80GB HBM3", pci_device_id=0x2330, architecture="Hopper",
               compute_capability="9.0", multiprocessors=None,
               memory_bus_width_bits=None)  # fmt: skip
HALO = card("AMD", "Radeon 8060S", 0x1586, architecture="gfx1151", is_integrated=True)
NAVI = card("AMD", "Radeon RX 9070 XT", 0x7550, architecture="gfx1201")
RX_580 = card("AMD", "Radeon RX 580", 0x67DF, architecture="gfx803")
RYZEN = card("AMD", "Radeon 780M", 0x15BF, architecture="gfx1103", pci_bus_id="00000000:0E:00.0",
             is_integrated=True)  # fmt: skip
B580 = card("Intel", "Arc B580", 0xE20B)
A380 = card("Intel", "Arc A380", 0x56A5, kernel_driver="i915")
LUNAR = card("Intel", "Arc 140V", 0x64A0, pci_bus_id="00000000:00:02.0", is_integrated=True)
UHD = card("Intel", "UHD Graphics 770", 0x4680, kernel_driver="i915",
           pci_bus_id="00000000:00:02.0", is_integrated=True)  # fmt: skip
LENT = card("Intel", "Arc B390", 0xB080, kernel_driver="xe-vfio-pci",
            pci_bus_id="00000000:00:02.1", unreadable="It is lent.",
            unreadable_code="not_served")  # fmt: skip

ABSENT = Driver(error="No NVIDIA driver is installed.", error_code="not_installed",
                evidence="NVML error 12")  # fmt: skip
STOPPED = Driver(error="The NVIDIA driver is installed, but it is not running.",
                 error_code="not_running", evidence="NVML error 9")  # fmt: skip
CLOSED = Driver(error="This user may not talk to the NVIDIA driver.", error_code="no_permission",
                evidence="NVML error 4")  # fmt: skip
UPDATED = Driver(error="Restart the PC.", error_code="driver_updated", evidence="NVML error 18",
                 version="570.86.15", library_version="580.95.05")  # fmt: skip


def cuda(code: int | None, text: str = "", library: str = "", **facts: Any) -> EngineDescribed:
    """A PyTorch for CUDA that does not start, with the error as its engine describes it."""
    text = text or f"Error {code}: words"
    return msgspec.structs.replace(
        ENGINE, cuda_available=False, arch_list=(), cuda_reason="CUDA could not start.",
        start_error=StartError(text=text, code=code, library=library), **facts,
    )  # fmt: skip


def other(kind: str, reason: str, *cards: TorchCard, **facts: Any) -> EngineDescribed:
    build = {"rocm": {"hip_build": "7.2", "torch_version": "2.13.0+rocm7.2"},
             "xpu": {"xpu_build": "20250301", "torch_version": "2.13.0+xpu"}}[kind]  # fmt: skip
    started = {"cuda_available": bool(cards), "device_count": len(cards), "cards": cards}
    return EngineDescribed(
        pid=1, accelerator="cuda" if kind == "rocm" else "xpu", cuda_reason=reason or None,
        start_error=None if cards else StartError(text=reason), **build, **started, **facts,
    )  # fmt: skip


def counted(card: Device, number: int = 0) -> TorchCard:
    return TorchCard(torch_index=number, name=card.name, kind=card.kind, maker=card.maker,
                     pci_bus_id=card.pci_bus_id, architecture=card.architecture)  # fmt: skip


ROCM = other("rocm", "No HIP GPUs are available.")
XPU = other("xpu", "No XPU devices are available.")


def file(name: str, **facts: Any) -> DeviceFile:
    return DeviceFile(name=name, may_open=facts.pop("may_open", True), **facts)


KFD, NODE = file("/dev/kfd"), file("/dev/dri/renderD128", slot=SLOT)
CLOSED_KFD = file("/dev/kfd", may_open=False, group="render")
NVIDIA_FILES = (file("/dev/nvidiactl"), file("/dev/nvidia0"), file("/dev/nvidia-uvm"))


def signs(*files: DeviceFile, **facts: Any) -> Signs:
    return Signs(files=files, **facts)


def scene(title: str, *cards: Device, **facts: Any) -> Any:
    """Return one made-up PC.

    Facts: engine, driver, signs, system, is_wsl, distribution, variables, secure_boot of the PC;
    code, words, command (its beginning, "" for none), never (words that no finding may have) of
    what is right, and beside, the codes of the other findings.
    """
    return pytest.param(cards, facts, id=title)


DOCKER = {"sandbox": "docker"}
SCENES = [
    # ── the public reports, by their sources ─────────────────────────────────────────────────
    scene("HorizonRobotics/GUMP#1: error 804 in a container", GEFORCE, engine=cuda(804),
          driver=Driver(version="525.89.02", library_version="525.89.02"),
          signs=signs(*NVIDIA_FILES, **DOCKER), code="card_not_usable", command="",
          words="image of this Docker container brings a driver library that is newer",
          never="Restart|was updated"),
    scene("transcriptionstream#13: error 500 in Docker Desktop", GEFORCE, engine=cuda(500),
          driver=Driver(version="555.99"), is_wsl=True, signs=signs(file("/dev/dxg"), **DOCKER),
          code="card_not_usable", words="Update Docker Desktop", command="", never="--shutdown",
          beside=["wsl_limits"]),
    scene("open-gpu-kernel-modules#789: GSP", unlisted("GeForce RTX 3090", 0x2204),
          driver=Driver(version="550.144.03"), engine=cuda(None),
          signs=signs(kernel_log=("NVRM: GPU 0000:03:00.0: RmInitAdapter: Cannot initialize GSP "
                                  "firmware RM",)),
          code="no_driver", words="holds your RTX 3090, but could not start it: the processor",
          command="", never="virtual machine|open kernel module"),
    scene("the same with a closed log", unlisted("GeForce RTX 3090", 0x2204),
          driver=Driver(version="550.144.03"), engine=cuda(None), code="no_driver",
          words="kernel's log, switch the PC off for a minute, then try another driver version",
          command="sudo dmesg", never="virtual machine|GSP|BAR"),
    scene("e4s2022/e4s#25: revision ff",
          unlisted("GeForce RTX 3080 Mobile", 0x249D, is_off_bus=True), engine=cuda(101),
          driver=Driver(version="535.1"), code="card_lost",
          words="switched off, or has fallen off", command="sudo reboot",
          never="virtual machine", evidence="revision ff"),
    scene("VoiceStudio#1274: /dev/kfd is closed in a container", HALO, engine=ROCM,
          signs=signs(file("/dev/kfd", may_open=False, group="992"), NODE, **DOCKER),
          code="card_not_usable", words="this Docker container may not open /dev/kfd. Start the "
          "container again with --group-add", command="", never="usermod|log out"),
    scene("sdnext#3808: no XPU devices", B580, engine=XPU, code="card_not_usable",
          words="cannot use your Arc B580", command="https://docs.pytorch.org"),
    scene("a virtual function under xe-vfio-pci", LENT, engine=CPU_ENGINE, code="card_lent",
          words="lent to a virtual machine", command="", never="install"),
    # ── other makers, other groups, other places ─────────────────────────────────────────────
    scene("AMD: a closed /dev/kfd", NAVI, engine=ROCM, signs=signs(CLOSED_KFD, NODE),
          code="card_not_usable", words="Add yourself to the group render",
          command='sudo usermod -aG render "$USER"', evidence="closed to you; group render"),
    scene("AMD: in the group, but not logged in again", NAVI, engine=ROCM,
          signs=signs(msgspec.structs.replace(CLOSED_KFD, is_member=True), NODE),
          code="card_not_usable", words="log out and in", command=""),
    scene("AMD: the closed node is another card's", NAVI, engine=ROCM, code="card_not_usable",
          signs=signs(KFD, NODE, file("/dev/dri/renderD129", may_open=False, group="video",
                                      slot="00000000:04:00.0")),
          words="device files are open. Compare card and Linux", never="renderD129"),
    scene("AMD on NixOS", NAVI, engine=ROCM, signs=signs(CLOSED_KFD, NODE), distribution="nixos",
          code="card_not_usable", words="On NixOS", command=""),
    scene("AMD: a group that no shell may see", NAVI, engine=ROCM, code="card_not_usable",
          signs=signs(file("/dev/kfd", may_open=False, group="a; rm -rf ~"), NODE),
          command="ls -l /dev/kfd", words="may not open"),
    scene("AMD: no /dev/kfd, amdgpu runs", NAVI, engine=ROCM,
          signs=signs(NODE, modules=("amdgpu",)), code="card_not_usable",
          words="without its part for computing", command="", never="modprobe"),
    scene("AMD: no /dev/kfd and no amdgpu", changed(NAVI, kernel_driver=None), engine=ROCM,
          signs=signs(), code="card_not_usable", words="amdgpu does not run",
          command="sudo modprobe amdgpu"),
    scene("AMD: the driver radeon", changed(NAVI, kernel_driver="radeon"), engine=ROCM,
          signs=signs(NODE), code="card_not_usable", words="the driver radeon holds it"),
    scene("AMD: firmware is missing", NAVI, engine=ROCM, code="no_driver",
          signs=signs(NODE, modules=("amdgpu",), kernel_log=(
              "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_12_0_1_pfp.bin failed with "
              "error -2",)), words="could not load its firmware", command="",
          evidence="gc_12_0_1_pfp"),
    scene("AMD: unbound, amdgpu runs",
          changed(NAVI, kernel_driver=None, unreadable="No.", unreadable_code="no_driver"),
          engine=CPU_ENGINE, signs=signs(modules=("amdgpu",)),
          code="no_driver", words="The driver amdgpu runs, but has not taken your",
          command="sudo dmesg", beside=["build_for_card"]),
    scene("AMD: no driver, and none is loaded",
          changed(NAVI, kernel_driver=None, unreadable="No.", unreadable_code="no_driver"),
          engine=ROCM, signs=signs(), code="no_driver", words="Linux has loaded no driver for your",
          command="sudo modprobe amdgpu"),
    scene("AMD: nomodeset", changed(NAVI, kernel_driver=None, unreadable="No.",
                                    unreadable_code="no_driver"),
          engine=ROCM, signs=signs(options=("nomodeset",)), code="no_driver", command="",
          words="started with nomodeset, which keeps the driver of your"),
    scene("AMD: a kernel without amdgpu", changed(NAVI, kernel_driver=None, unreadable="No.",
                                                  unreadable_code="no_driver"),
          engine=ROCM, signs=signs(installed=("i915",)), code="no_driver", command="",
          words="has no module amdgpu"),
    scene("AMD: hidden by a variable", NAVI, engine=ROCM, signs=signs(KFD, NODE),
          variables={"HIP_VISIBLE_DEVICES": "3"}, code="hidden_by_environment",
          words="HIP_VISIBLE_DEVICES is “3”", command="unset HIP_VISIBLE_DEVICES"),
    scene("AMD: a container without the files", NAVI, engine=ROCM, signs=signs(**DOCKER),
          code="card_not_usable", words="--device /dev/kfd --device /dev/dri", command=""),
    scene("AMD in WSL, which shows no card", engine=ROCM, is_wsl=True, signs=signs(),
          driver=ABSENT, code="card_not_usable", words="AMD's driver in Windows",
          evidence="no /dev/dxg", beside=["no_nvidia_card"]),
    scene("AMD on Windows", changed(NAVI, kernel_driver=None), engine=ROCM, system="Windows",
          code="card_not_usable", words="newest Adrenalin driver", command="https://www.amd.com"),
    scene("AMD: PyTorch for NVIDIA", NAVI, engine=msgspec.structs.replace(
              ENGINE, cuda_available=False, arch_list=()), driver=ABSENT,
          code="build_for_card", words="install PyTorch rocm-gfx1201"),
    scene("AMD: an old chip that no build is for", RX_580, engine=ROCM, driver=ABSENT,
          signs=signs(KFD, NODE), code="no_build_for_card", words="no build of PyTorch"),
    scene("AMD: one of two is not listed", NAVI,
          changed(NAVI, name="AMD Radeon RX 9070", pci_bus_id="00000000:04:00.0"),
          engine=other("rocm", "", counted(NAVI), arch_list=("gfx1201",)), signs=signs(KFD, NODE),
          code="card_not_usable", words="cannot use your Radeon RX 9070: it is not among",
          beside=["not_tested", "ok"]),
    scene("Intel: a closed render node", B580, engine=XPU, code="card_not_usable",
          signs=signs(file("/dev/dri/renderD128", may_open=False, group="render", slot=SLOT)),
          words="you may not open /dev/dri/renderD128", command='sudo usermod -aG render "$USER"'),
    scene("Intel: no Level Zero", B580, engine=XPU, signs=signs(NODE, has_level_zero=False),
          code="card_not_usable", words="libze_intel_gpu) is not found", command="https://docs."),
    scene("Intel: Level Zero is there", B580, engine=XPU, signs=signs(NODE, has_level_zero=True),
          code="card_not_usable", words="may be older than the card", never="is not found"),
    scene("Intel: no driver runs", changed(B580, kernel_driver=None), engine=XPU, signs=signs(),
          code="card_not_usable", words="its driver does not run", command="sudo modprobe xe"),
    scene("Intel: the driver made no files", A380, engine=XPU, signs=signs(modules=("i915",)),
          code="card_not_usable", words="made no file in /dev/dri", command="sudo dmesg"),
    scene("Intel: i915 holds a chip for xe", changed(LUNAR, kernel_driver="i915"), engine=XPU,
          signs=signs(file("/dev/dri/renderD128")), code="card_not_usable",
          words="the driver i915 holds it, and this chip needs xe"),
    scene("Intel: SYCL was told to use OpenCL", B580, engine=XPU, signs=signs(NODE),
          variables={"ONEAPI_DEVICE_SELECTOR": "opencl:*"}, code="hidden_by_environment",
          command="unset ONEAPI_DEVICE_SELECTOR"),
    scene("Intel: a card that fails beside the processor's graphics", A380, RYZEN, engine=XPU,
          code="card_not_usable", words="Arc A380", beside=["other_build_for_card"]),
    scene("Intel: a card works, the processor's graphics are not listed", B580, UHD,
          engine=other("xpu", "", counted(B580)), code="not_tested", beside=["ok"]),
    # ── an offer for the graphics of a processor beside a card that fails ────────────────────
    scene("NVIDIA without a driver beside a Ryzen", unstarted("GeForce RTX 3060", 0x2503), RYZEN,
          engine=CPU_ENGINE, driver=ABSENT, code="no_driver", beside=["other_build_for_card"]),
    # ── NVIDIA's driver ──────────────────────────────────────────────────────────────────────
    scene("NVIDIA: nouveau is in use", unstarted("GeForce RTX 3060", 0x2503, "nouveau"),
          driver=STOPPED, engine=cuda(None), signs=signs(modules=("nouveau",)), code="no_driver",
          words="nouveau is in its place", command="sudo reboot"),
    scene("NVIDIA: Secure Boot refused it", unstarted("GeForce RTX 3060", 0x2503), driver=STOPPED,
          engine=cuda(None), secure_boot=True, code="no_driver", command="",
          signs=signs(kernel_log=("Loading of module with unavailable key was rejected: nvidia",)),
          words="its key is not enrolled"),
    scene("NVIDIA: Secure Boot is on", unstarted("GeForce RTX 3060", 0x2503), driver=STOPPED,
          engine=cuda(None), secure_boot=True, signs=signs(), code="no_driver",
          words="If it answers “Key was rejected", command="sudo modprobe nvidia"),
    scene("NVIDIA: the closed module refused a Blackwell card",
          unstarted("GeForce RTX 5090", 0x2B85), driver=STOPPED, engine=cuda(None),
          signs=signs(kernel_log=("NVRM: installed in this system requires use of the NVIDIA open "
                                  "kernel modules.",)), code="no_driver",
          words="it needs the driver's open kernel module. Install the driver with the open",
          command="https://www.nvidia.com"),
    scene("NVIDIA: no device files", unstarted("GeForce RTX 3060", 0x2503, "nvidia"),
          driver=STOPPED, engine=cuda(None), signs=signs(modules=("nvidia",)), code="no_driver",
          words="its device files are missing", command="sudo nvidia-modprobe -c 0 -u"),
    scene("NVIDIA: no driver in a Flatpak", unstarted("GeForce RTX 3060", 0x2503, "nvidia"),
          driver=ABSENT, engine=cuda(None), signs=signs(sandbox="flatpak"), code="no_driver",
          words="flatpak update", command="", never="modprobe nvidia$"),
    scene("NVIDIA: a container without the card", unstarted("GeForce RTX 3060", 0x2503, "nvidia"),
          driver=ABSENT, engine=cuda(None), signs=signs(**DOCKER), code="no_driver",
          words="has no access to it. Start the container again with --gpus all", command="",
          never="Install|einstall"),
    scene("NVIDIA: the library is missing on the PC",
          unstarted("GeForce RTX 3060", 0x2503, "nvidia"), distribution="ubuntu debian",
          driver=ABSENT, engine=cuda(None), signs=signs(modules=("nvidia",)), code="no_driver",
          words="library is missing. Reinstall",
          command="sudo ubuntu-drivers install", never="ontainer"),
    scene("NVIDIA: a container was given one card of two", GEFORCE,
          unlisted("GeForce RTX 3060", 0x2503), engine=ENGINE,
          signs=signs(*NVIDIA_FILES, **DOCKER), code="no_driver",
          words="was not given to this Docker container", command="", beside=["ok"]),
    scene("NVIDIA: a container of WSL without the card", driver=ABSENT, engine=cuda(None),
          is_wsl=True, signs=signs(**DOCKER), code="no_nvidia_card", never="install|Windows",
          words="If the PC has one: start the container again with --gpus all"),
    scene("NVIDIA: closed device files", unstarted("GeForce RTX 3060", 0x2503, "nvidia"),
          driver=CLOSED, engine=cuda(None), code="no_driver", words="the group vglusers",
          signs=signs(file("/dev/nvidiactl", may_open=False, group="vglusers")),
          command='sudo usermod -aG vglusers "$USER"'),
    scene("NVIDIA: versions differ", unstarted("GeForce RTX 3060", 0x2503, "nvidia"),
          driver=UPDATED, engine=cuda(803), signs=signs(), code="driver_library_mismatch",
          words="different versions. Restart the PC", command="sudo reboot",
          evidence="library 580.95.05"),
    scene("NVIDIA: versions differ in a container", unstarted("GeForce RTX 3060", 0x2503, "nvidia"),
          driver=UPDATED, engine=cuda(803), signs=signs(**DOCKER), command="",
          code="driver_library_mismatch", words="brings the PC's own", never="Restart"),
    scene("NVIDIA: a new kernel without the module", unstarted("GeForce RTX 3060", 0x2503),
          driver=STOPPED, engine=cuda(None), signs=signs(installed=("nouveau", "amdgpu")),
          distribution="ubuntu", code="no_driver", words="has no module for Linux",
          command="sudo ubuntu-drivers install", never="modprobe"),
    scene("NVIDIA: nomodeset is no reason", unstarted("GeForce RTX 3060", 0x2503),
          driver=STOPPED, engine=cuda(None), code="no_driver", words="Start the driver",
          signs=signs(installed=("nvidia",), options=("nomodeset",)), never="nomodeset"),
    scene("NVIDIA: left out by the kernel's options", unstarted("GeForce RTX 3060", 0x2503),
          driver=STOPPED, engine=cuda(None), code="no_driver", command="",
          signs=signs(installed=("nvidia",), options=("modprobe.blacklist=nvidia",)),
          words="started with modprobe.blacklist=nvidia, which keeps"),
    scene("NVIDIA: no addresses", unlisted("GeForce RTX 4090", 0x2684), engine=cuda(None),
          signs=signs(kernel_log=("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:03:00.0)",)), code="no_driver",
          words="Above 4G Decoding", command=""),
    scene("NVIDIA: an external card was unplugged", unlisted("GeForce RTX 4090", 0x2684),
          engine=cuda(None), code="card_lost", words="fallen off the bus", command="sudo reboot",
          signs=signs(kernel_log=("NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.",))),
    scene("NVIDIA: the log is about another card", unlisted("GeForce RTX 4090", 0x2684),
          engine=cuda(None), code="no_driver", words="could not start it", never="fallen",
          signs=signs(kernel_log=("NVRM: Xid (PCI:0000:09:00): 79, GPU has fallen off the bus.",))),
    scene("NVIDIA: the closed module runs beside a Blackwell card", GEFORCE,
          unlisted("GeForce RTX 5090", 0x2B85, None), engine=ENGINE, code="no_driver",
          signs=signs(nvidia_module="NVRM version: NVIDIA UNIX x86_64 Kernel Module  575.51.02"),
          words="a Blackwell card needs the driver's open kernel module", beside=["ok"]),
    scene("NVIDIA: RmInitAdapter failed", unlisted("GeForce RTX 4090", 0x2684), engine=cuda(None),
          signs=signs(kernel_log=("NVRM: GPU 0000:03:00.0: RmInitAdapter failed! (0x26:0xffff)",)),
          code="no_driver", words="(RmInitAdapter failed)", command="", never="GSP|BAR"),
    scene("NVIDIA: the open module refused a Pascal card", GEFORCE,
          unlisted("GeForce GTX 1060", 0x1C03, None), engine=ENGINE,
          signs=signs(kernel_log=("NVRM: GPU 0000:03:00.0 is not supported by open nvidia.ko "
                                  "because it does not include the required GSP",)),
          code="no_driver", words="needs the driver's proprietary kernel module", beside=["ok"]),
    scene("NVIDIA: nouveau holds one of two", GEFORCE,
          unlisted("GeForce RTX 3060", 0x2503, "nouveau"), engine=ENGINE, signs=signs(),
          code="no_driver", words="the driver nouveau holds it", beside=["ok"]),
    scene("NVIDIA: nothing has taken one of two", GEFORCE,
          unlisted("GeForce RTX 3060", 0x2503, None), engine=ENGINE, signs=signs(),
          code="no_driver", words="no driver has taken it", command="sudo dmesg", beside=["ok"],
          never="virtual machine"),
    scene("NVIDIA: one of two is not listed on Windows", GEFORCE,
          unlisted("GeForce RTX 3060", 0x2503, None), engine=ENGINE, system="Windows",
          code="no_driver", words="not in its list", command="shutdown /r", beside=["ok"]),
    scene("NVIDIA: the library is missing, and no mark is known",
          unstarted("GeForce RTX 3060", 0x2503, "nvidia"), driver=ABSENT, engine=cuda(None),
          code="no_driver", words="missing here. Start the container with access to the card, or "
          "reinstall the driver", command=""),
    scene("NVIDIA: no driver at all", unstarted("GeForce RTX 3060", 0x2503, "nouveau"),
          driver=ABSENT, engine=CPU_ENGINE, signs=signs(modules=("nouveau",)), code="no_driver",
          distribution="debian", words="Install the NVIDIA driver with your system's driver tool",
          command="sudo apt install nvidia-driver"),
    scene("NVIDIA: the driver of a container's PC does not run",
          unstarted("GeForce RTX 3060", 0x2503), driver=STOPPED, engine=cuda(None),
          signs=signs(**DOCKER), code="no_driver", words="on the PC itself", command=""),
    scene("NVIDIA: files that a container may not open",
          unstarted("GeForce RTX 3060", 0x2503, "nvidia"), driver=CLOSED, engine=cuda(None),
          signs=signs(file("/dev/nvidiactl", may_open=False, group="44"), **DOCKER),
          code="no_driver", words="this Docker container may not open /dev/nvidiactl. Start the "
          "container again with --group-add", command=""),
    # ── CUDA's codes ─────────────────────────────────────────────────────────────────────────
    scene("802 with NVSwitch", H100, engine=cuda(802), code="card_not_usable",
          words="Fabric Manager", command="sudo systemctl start nvidia-fabricmanager"),
    scene("802 at home", GEFORCE, engine=cuda(802), code="card_not_usable", never="Fabric",
          words="Restart the PC", command="sudo reboot"),
    scene("803 by a library from elsewhere", GEFORCE, code="card_not_usable",
          engine=cuda(803, library="/usr/local/cuda-12.4/compat/libcuda.so.550.54.15"),
          driver=Driver(version="525.89.02", library_version="525.89.02"),
          words="libcuda.so.550.54.15 was loaded, which does not belong to driver 525.89.02"),
    scene("804 after an update", GEFORCE, engine=cuda(804), code="driver_library_mismatch",
          driver=Driver(version="570.86.15", library_version="580.95.05"), words="Restart"),
    scene("999 on Linux", GEFORCE, engine=cuda(999), code="card_not_usable",
          signs=signs(*NVIDIA_FILES), words="common after the PC has slept",
          command="sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
    scene("999 without /dev/nvidia-uvm", GEFORCE, engine=cuda(999), signs=signs(*NVIDIA_FILES[:2]),
          code="card_not_usable", words="/dev/nvidia-uvm is missing", never="slept",
          command="sudo modprobe nvidia_uvm"),
    scene("999 in WSL", GEFORCE, engine=cuda(999), is_wsl=True, signs=signs(file("/dev/dxg")),
          code="card_not_usable", command="wsl --shutdown", beside=["wsl_limits"]),
    scene("an unknown error", GEFORCE, engine=cuda(None, "Something new"), words="CUDA could not",
          code="card_not_usable", command="sudo reboot", evidence="Something new"),
]  # fmt: skip


def found(cards: tuple[Device, ...], facts: dict[str, Any]) -> Any:
    names = ("driver", "signs", "is_wsl", "distribution", "variables", "secure_boot")
    inventory = pc(*cards, **{name: facts[name] for name in names if name in facts})
    return find(inventory, facts["engine"], system=facts.get("system", "Linux"), machine="x86_64",
                program=INSTALLED, probe=facts.get("probe"))  # fmt: skip


@pytest.mark.parametrize(("cards", "facts"), SCENES)
def test_each_pc_is_told_its_own_reason_and_step(cards, facts):
    findings = found(cards, facts)
    first = findings[0]
    codes = [one.code for one in findings]
    assert codes == [facts["code"], *facts.get("beside", [])], findings
    assert facts.get("words", "") in first.sentence
    assert facts.get("evidence", "") in first.detail
    if "command" in facts:
        assert first.command.startswith(facts["command"]), first
        assert bool(facts["command"]) is bool(first.command), first
    if "never" in facts:
        for one in findings:
            assert not re.search(facts["never"], f"{one.sentence} {one.command}"), one
    assert_fits(findings, facts)


def assert_fits(findings, facts):
    """No sentence is cut or doubled, and no command is for another place."""
    marks = facts.get("signs")
    is_windows = facts.get("system") == "Windows"
    is_boxed = marks is not None and marks.sandbox
    for one in findings:
        assert re.fullmatch(r"[A-Z].*[.]", one.sentence), one
        assert ".." not in one.sentence
        assert len(one.sentence) <= 300, one
        assert "{" not in one.sentence + one.command + one.detail
        assert one.detail
        command = one.command
        assert not (is_windows and command.startswith(("sudo", "ls ", "unset", "echo"))), one
        assert not (is_boxed and command.startswith(("sudo", "shutdown", "wsl", "docker"))), one
        assert not (facts.get("is_wsl") and command.startswith(("sudo modprobe", "sudo reboot")))
        is_restarting = command.startswith(("shutdown /r", "shutdown.exe"))
        assert is_windows or facts.get("is_wsl") or not is_restarting, one


def test_each_row_decides_about_a_pc(monkeypatch):
    """A row that none of these PCs reaches is dead, or its mark is wrong."""
    reached = set()
    real = Row.finding

    def noted(row, case):
        reached.add((row.code, row.says))
        return real(row, case)

    monkeypatch.setattr(Row, "finding", noted)
    for one in SCENES:
        found(*one.values)
    for number in START_CODES:
        found((GEFORCE,), {"engine": cuda(number)})
    monkeypatch.setattr(operating_system, "release", lambda: "5.4.0-generic")
    (first, *_) = found((HALO,), {"engine": ROCM})
    assert "needs Linux" in first.sentence
    assert {(row.code, row.says) for row in ROWS} == reached


def test_each_row_has_a_kind_and_a_source():
    assert {row.code for row in ROWS} <= set(KINDS)
    assert all(len(row.source) > 5 for row in ROWS)


@pytest.mark.parametrize("number", START_CODES)
@pytest.mark.parametrize("place", ["Linux", "Windows", "WSL", "docker"])
def test_each_code_has_its_meaning_and_a_step_for_each_place(number, place):
    marks = signs(*NVIDIA_FILES, sandbox=place if place in SANDBOXES else "")
    facts = {"engine": cuda(number), "is_wsl": place == "WSL", "driver": Driver(version="580.1"),
             "system": "Windows" if place == "Windows" else "Linux",
             "signs": None if place == "Windows" else marks}  # fmt: skip
    findings = found((GEFORCE,), facts)
    first = findings[0]
    assert f"(error {number})" in first.sentence
    assert len(first.sentence.split(f"(error {number}). ")[1].split()) >= 2, "a step"
    assert_fits(findings, facts)


def test_different_codes_get_different_advice():
    """One medicine for all was the fault: only codes that mean the same share their words."""
    said = {}
    for code in (2, 3, 34, 35, 46, 100, 101, 304, 500, 802, 803, 804, 999):
        first = found((GEFORCE,), {"engine": cuda(code), "driver": Driver(version="580.1")})[0]
        said[first.sentence] = code
    assert len(said) == 13


def test_a_new_process_that_cannot_start_is_explained_as_well():
    error = StartError(text="Error 500: named symbol not found", code=500)
    facts = {"engine": ENGINE, "probe": probe(error="CUDA could not start.", start_error=error)}
    first = found((GEFORCE,), facts)[0]
    assert first.code == "card_not_usable"
    assert "error 500" in first.sentence


@pytest.mark.parametrize(
    ("engine", "expected"),
    [(ROCM, Obstacle.NO_CUDA), (XPU, Obstacle.OTHER_BUILD), (CPU_ENGINE, Obstacle.OTHER_BUILD),
     (other("rocm", "", counted(RYZEN)), Obstacle.NOT_LISTED),
     (other("rocm", "", counted(RYZEN), arch_list=("gfx1103",)), Obstacle.OTHER_BUILD)],
)  # fmt: skip
def test_a_row_says_that_the_right_build_fails_and_offers_no_other_one(engine, expected):
    (numbered,) = numbered_cards([NAVI], None, engine.build_kind, engine.cards)
    assert obstacle_of(numbered, engine) is expected


@pytest.mark.parametrize(
    ("value", "count", "hides"),
    [("", 2, True), ("-1", 2, True), ("2", 2, True), ("1", 2, False), ("0,5", 1, False),
     ("5,0", 2, True), ("0.1", 1, False), ("GPU-abc", 1, False), ("0", 0, False)],
)  # fmt: skip
def test_a_list_hides_all_cards_only_where_that_is_sure(value, count, hides):
    assert hides_all(value, count) is hides


@pytest.mark.parametrize(
    ("value", "hides"),
    [("opencl:*", True), ("level_zero:gpu", False), ("*:gpu", False), ("!opencl:*", False),
     ("opencl:gpu;level_zero:0", False), ("", False)],
)  # fmt: skip
def test_a_selector_hides_intel_s_cards_only_without_level_zero(value, hides):
    assert hides_level_zero(value, 1) is hides


@pytest.mark.parametrize("driver", ["vfio-pci", "xe-vfio-pci", "vfio_pci", "i915_vfio_pci",
                                    "nvgrace-gpu-vfio-pci", "pci-stub", "xen-pciback"])  # fmt: skip
def test_a_card_under_any_driver_for_virtual_machines_is_lent(driver):
    assert lender_of(driver) == driver
    assert not lender_of("nvidia")
    assert not lender_of(None)
