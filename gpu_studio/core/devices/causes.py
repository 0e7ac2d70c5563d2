"""Why a card that PyTorch is for, or a driver of it, cannot be used: one table for every maker.

Each row has a mark, what it means, the next step for each place, and its source. The first row
whose mark is seen decides, so the marks that say most come first. A row claims no more than its
mark shows; what else is known of the PC is the finding's evidence, the same for all rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.devices.unused_cards import GIVE_CARD, evidence_of
from gpu_studio.core.error_table import Advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpu_studio.core.devices.unused_cards import UnusedCards


class Row(NamedTuple):
    """One row: the finding's code, its mark, what it means, the steps, and where that is from.

    ``says`` and the steps may have names in braces: attributes of `UnusedCards`. Steps that are a
    number are those of CUDA's error in `resources/errors.json`: 0 is that of the case.
    """

    code: str
    mark: Callable[[UnusedCards], object]
    says: str
    steps: Mapping[str, Advice] | int
    source: str

    def finding(self, case: UnusedCards) -> Finding:
        """Return the finding of a case that has this row's mark."""
        step, cards = case.step(self.steps), case.cards
        return Finding(
            code=self.code,
            sentence=" ".join(filter(None, (case.filled(self.says), step.words))),
            detail=evidence_of(case),
            command=step.command,
            device_uuid=cards[0].identity if case.is_of_one else None,
        )


def _when(condition: Callable[[UnusedCards], object], *rows: Row) -> tuple[Row, ...]:
    """Return rows whose marks count only where a condition holds."""

    def both(mark: Callable[[UnusedCards], object]) -> Callable[[UnusedCards], object]:
        return lambda case: condition(case) and mark(case)

    return tuple(row._replace(mark=both(row.mark)) for row in rows)


def _always(_case: UnusedCards) -> bool:
    return True


def _driver_is(*codes: str) -> Callable[[UnusedCards], object]:
    return lambda case: case.driver.error_code in codes


def _error_is(*codes: int | None) -> Callable[[UnusedCards], object]:
    return lambda case: case.code in codes


def _logs(words: str) -> Callable[[UnusedCards], object]:
    return lambda case: case.logged(words)


def _lacks(*beginnings: str) -> Callable[[UnusedCards], object]:
    return lambda case: any(map(case.lacks_file, beginnings))


def _is_on_linux(case: UnusedCards) -> bool:
    return case.is_on_linux


def _is_boxed(case: UnusedCards) -> bool:
    return case.is_boxed


_CANNOT = "PyTorch cannot use your {names}: "
_NOT_READY = "{subject}: "
_NOT_TAKEN = "The NVIDIA driver does not control your {names}: "
_HELD = "The NVIDIA driver holds your {names}, but could not start it"
_DRIVER_GUIDE = "NVIDIA, Driver Installation Guide"
_TOOLKIT = "NVIDIA Container Toolkit, CDI and --gpus"
_DRIVER_README = "NVIDIA, Linux driver README, “Known Issues”"
_OPEN_ISSUES = "NVIDIA/open-gpu-kernel-modules issues 789 and 935"
_SIGNING = "Linux, Documentation/admin-guide/module-signing.rst"
_PCI = "Linux, Documentation/PCI/pci.rst"
_OPTIONS = "Linux, Documentation/admin-guide/kernel-parameters.txt"
_OWN_LOG = "the driver's own message in the kernel's log"
_UVM = "NVIDIA, Linux driver README, “nvidia-modprobe”; flatpak/flatpak issue 6047"
_ROCM_GUIDE = "AMD, ROCm on Linux, “Prerequisites”; ROCm/legacy-rocm-build issue 3071"
_XPU_GUIDE = "PyTorch, “Getting Started on Intel GPU”"
_RESTART = {"any": Advice("Restart the PC.", "{restart}")}
_SEE_LOG = {"any": Advice("Its reason is in the kernel's log.", "sudo dmesg | grep -i nvrm")}
_OTHER_VERSION = {
    "any": Advice(
        "Switch the PC off for a minute. If that does not help, try another driver version."
    )
}
_GIVE_FILES = {
    "apptainer": Advice("Start the container again with --rocm."),
    "lxc": Advice("Add /dev/kfd and /dev/dri to its configuration."),
    "kubernetes": Advice("Let the pod ask for the resource amd.com/gpu."),
    "container": Advice("Start the container again with --device /dev/kfd --device /dev/dri."),
    "flatpak": Advice("Allow it all devices, for example in Flatseal."),
    "any": Advice("Use an installation outside of it."),
}
_GIVE_NODES = {
    **_GIVE_FILES,
    "apptainer": Advice("Start the container again with --bind /dev/dri."),
    "lxc": Advice("Add /dev/dri to its configuration."),
    "kubernetes": Advice("Let the pod ask for the resource gpu.intel.com/xe."),
    "container": Advice("Start the container again with --device /dev/dri."),
}
_GIVE_GROUP = {
    "docker": Advice("Start the container again with --group-add and the file's group."),
    "podman": Advice("Start the container again with --group-add keep-groups."),
    "container": Advice("Let its user be in the file's group."),
    "flatpak": _GIVE_FILES["flatpak"],
    "any": _GIVE_FILES["any"],
}


def _of_files(code: str, begins: str, source: str) -> tuple[Row, ...]:
    """Return the rows of a device file that this user may not open."""
    says = f"{begins}you may not open {{file_name}}."
    in_nixos = "On NixOS, add {group} to the groups of your user in its configuration."
    return (
        Row(code, lambda c: c.is_boxed and c.file,
            f"{begins}{{sandbox}} may not open {{file_name}}.", _GIVE_GROUP, source),
        Row(code, lambda c: c.file and c.file.is_member, says,
            {"any": Advice("You are in the group {group}: log out and in for it to count.")},
            source),
        Row(code, lambda c: c.group and c.distribution == "nixos", says, {"any": Advice(in_nixos)},
            source),
        Row(code, lambda c: c.group, says,
            {"any": Advice("Add yourself to the group {group}, then log out and in.",
                           'sudo usermod -aG {group} "$USER"')}, source),
        Row(code, lambda c: c.file, says, {"any": Advice("See who may.", "ls -l {file_name}")},
            source),
    )  # fmt: skip


# Any card, whoever made it.
OF_ANY_CARD = (
    Row("card_lent", lambda c: c.lender,
        "Your {names} is lent to a virtual machine: the driver {lender} holds it.", {},
        "Linux, Documentation/driver-api/vfio.rst and drivers/vfio/pci"),
    Row("card_lost", lambda c: any(card.is_off_bus for card in c.cards),
        "Your {names} does not answer on the bus: it is switched off, or has fallen off.",
        {"any": Advice("Restart the PC. If a power-saving tool switched it off, switch it on "
                       "there.", "{restart}")},
        "PCI Local Bus Specification: a slot without an answer reads as ones; e4s2022/e4s 25"),
)  # fmt: skip

# What the driver itself writes into the kernel's log about a card that it could not start.
_OF_THE_LOG = (
    Row("card_lost", _logs("fallen off the bus"),
        "Your {names} has fallen off the bus, says the kernel.", _RESTART, "NVIDIA, XID 79"),
    Row("no_driver", _logs("requires use of the NVIDIA open kernel modules"),
        _NOT_TAKEN + "it needs the driver's open kernel module.",
        {"any": Advice("Install the driver with the open module.", "{driver_page}")}, _OWN_LOG),
    Row("no_driver", _logs("not supported by open nvidia.ko"),
        _NOT_TAKEN + "it needs the driver's proprietary kernel module.",
        {"any": Advice("Install the driver with that module.", "{driver_page}")}, _OWN_LOG),
    Row("no_driver", _logs(r"\bBAR\d? is 0M|I/O region assigned .* is invalid"),
        _HELD + ": it got no addresses (BAR) from the PC.",
        {"any": Advice("In the BIOS, turn on “Above 4G Decoding”, or change Resizable BAR.")},
        f"{_DRIVER_README}; {_OWN_LOG}"),
    Row("no_driver", _logs(r"\bGSP\b"), _HELD + ": the processor on it (GSP) did not start.",
        _OTHER_VERSION, _OPEN_ISSUES),
    Row("no_driver", _logs("RmInitAdapter"), _HELD + " (RmInitAdapter failed).", _OTHER_VERSION,
        _OPEN_ISSUES),
)  # fmt: skip

# NVML cannot be asked at all.
OF_NVIDIAS_DRIVER = (
    Row("driver_library_mismatch", lambda c: c.has_two_versions,
        "The NVIDIA driver's library and its kernel module have different versions.",
        803, "nvml.h, NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    *_when(
        _driver_is("not_installed"),
        Row("no_driver", lambda c: c.signs.sandbox in ("flatpak", "snap"),
            _NOT_READY + "{sandbox} does not have the driver's library.",
            {"flatpak": Advice("Outside of it, run “flatpak update”."), "any": _GIVE_FILES["any"]},
            "Flatpak: org.freedesktop.Platform.GL.nvidia has the version of the PC's driver"),
        Row("no_driver", lambda c: c.is_boxed and c.runs_module,
            _NOT_READY + "its driver runs, but {sandbox} has no access to it.", GIVE_CARD,
            _TOOLKIT),
        Row("no_driver", lambda c: c.runs_module and c.knows_signs,
            _NOT_READY + "its driver runs, but the driver's library is missing.",
            {"any": Advice("Reinstall the NVIDIA driver.", "{install}")}, _DRIVER_GUIDE),
        Row("no_driver", lambda c: c.runs_module,
            _NOT_READY + "its driver runs, but the driver's library is missing here.", GIVE_CARD,
            _TOOLKIT),
        Row("no_driver", _always, _NOT_READY + "{trouble}",
            {"any": Advice("{to_install}", "{install}")}, _DRIVER_GUIDE),
    ),
    *_when(
        lambda c: _is_on_linux(c) and c.driver.error_code == "no_permission",
        *_of_files("no_driver", _NOT_READY, _DRIVER_GUIDE),
        Row("no_driver", _always, _NOT_READY + "{trouble}",
            {**GIVE_CARD,
             "any": Advice("It needs access to the files /dev/nvidia*.", nvidia.SHOW_PERMISSIONS)},
            _DRIVER_GUIDE),
    ),
    Row("no_driver", lambda c: c.is_boxed and c.runs_module,
        _NOT_READY + "its driver runs, but {sandbox} has no access to it.", GIVE_CARD, _TOOLKIT),
    Row("no_driver", _is_boxed, _NOT_READY + "{trouble}",
        {"any": Advice("Start the driver on the PC itself.")}, _DRIVER_GUIDE),
    Row("no_driver", lambda c: c.facts.inventory.is_wsl, _NOT_READY + "{trouble}",
        {"any": Advice("It is the driver of Windows. Restart the PC.", "{restart}")},
        "NVIDIA, CUDA on WSL User Guide"),
    *_when(
        lambda c: _is_on_linux(c) and c.driver.error_code == "not_running",
        Row("no_driver", _logs("key was rejected"),
            _NOT_READY + "Linux refuses the driver, because its key is not enrolled.",
            {"any": Advice("Enroll the key, or turn Secure Boot off.")}, _SIGNING),
        *_OF_THE_LOG,
        Row("no_driver", lambda c: c.options,
            "{subject}: Linux was started with {options}, which keeps its driver away.",
            {"any": Advice("Take that out of the kernel's options.")}, _OPTIONS),
        Row("no_driver", lambda c: c.is_not_installed,
            "{subject}: its driver has no module for Linux {release}.",
            {"any": Advice("Reinstall the driver, which builds it, or start the Linux before.",
                           "{install}")}, _DRIVER_GUIDE),
        Row("no_driver", lambda c: c.runs_module and c.lacks_file("/dev/nvidiactl"),
            _NOT_READY + "its module runs, but its device files are missing.",
            {"any": Advice("Make them.", "sudo nvidia-modprobe -c 0 -u")}, _UVM),
        Row("no_driver", lambda c: c.facts.inventory.secure_boot,
            _NOT_READY + "{trouble} Secure Boot is on, and Linux then loads only signed drivers.",
            {"any": Advice("Start it. If it answers “Key was rejected by service”, enroll its key "
                           "or turn Secure Boot off.", nvidia.LOAD_MODULE)}, _SIGNING),
        Row("no_driver", lambda c: c.holders, _NOT_READY + "the driver {holders} is in its place.",
            {"any": Advice("Restart the PC. If it is there again, reinstall NVIDIA's driver.",
                           "{restart}")}, _DRIVER_GUIDE),
        Row("no_driver", lambda c: c.module_need, _NOT_READY + "{trouble}",
            {"any": Advice("Start it. If that fails: {module_need}", nvidia.LOAD_MODULE)},
            _DRIVER_GUIDE),
        Row("no_driver", _always, _NOT_READY + "{trouble}",
            {"any": Advice("Start the driver, or restart the PC.", nvidia.LOAD_MODULE)},
            _DRIVER_GUIDE),
    ),
    Row("no_driver", _driver_is("not_running"), _NOT_READY + "{trouble}",
        {"any": Advice("Start the driver, or restart the PC.", "{restart}")}, _DRIVER_GUIDE),
    Row("no_driver", _always, _NOT_READY + "{trouble}", _RESTART, "nvml.h"),
)  # fmt: skip

# NVML answers, but does not list a card that is on the bus.
OF_NVIDIAS_CARD = (
    Row("no_driver", _is_boxed, "Your {names} was not given to {sandbox}.", GIVE_CARD, _TOOLKIT),
    *_OF_THE_LOG,
    Row("no_driver", lambda c: c.is_held_by_nvidia, _HELD + ".",
        {"any": Advice("Look in the kernel's log, switch the PC off for a minute, then try another "
                       "driver version.", "sudo dmesg | grep -i nvrm")}, _OPEN_ISSUES),
    Row("no_driver", lambda c: c.holders, _NOT_TAKEN + "the driver {holders} holds it.", {},
        _DRIVER_GUIDE),
    Row("no_driver", lambda c: c.module_need, _NOT_TAKEN + "{module_need}", _SEE_LOG,
        _DRIVER_GUIDE),
    Row("no_driver", _is_on_linux, _NOT_TAKEN + "no driver has taken it.", _SEE_LOG, _DRIVER_GUIDE),
    Row("no_driver", _always, _NOT_TAKEN + "it is not in its list.", _RESTART,
        "nvml.h, nvmlDeviceGetCount"),
)  # fmt: skip


_API = "NVIDIA, CUDA Runtime API, cudaError_t; the sources in resources/errors.json"
# Cards of PCs with NVSwitch, whose Fabric Manager has to run before CUDA: NVIDIA, "Fabric Manager
# for NVIDIA NVSwitch Systems".
_SWITCHED_CARDS = re.compile(r"\b(?:A100|A800|H100|H200|H800|H20|B100|B200|B300|GB200|GB300)\b")
_FABRIC_MANAGER = Advice(
    "On a PC with NVSwitch, start NVIDIA's Fabric Manager.",
    "sudo systemctl start nvidia-fabricmanager",
)
_NOT_STARTED = _CANNOT + "{start_meaning} (error {code})."

# The driver answers, but CUDA does not start.
OF_CUDA = (
    Row("driver_library_mismatch", lambda c: c.code == 804 and c.is_other_library,
        _CANNOT + "{mismatch} (error 804).", 803, _API),
    Row("card_not_usable", lambda c: c.code in (803, 804) and c.is_foreign_library,
        _CANNOT + "{library} was loaded, which does not belong to driver {version}.", 804, _API),
    Row("card_not_usable", lambda c: c.code == 804 and c.is_boxed,
        _CANNOT + "the image of {sandbox} brings a driver library that is newer than the driver "
        "(error 804).", 804, _API),
    Row("card_not_usable", lambda c: c.code == 802 and _SWITCHED_CARDS.search(c.names),
        _CANNOT + "{start_meaning} (error 802).", {"any": _FABRIC_MANAGER}, _API),
    *_when(
        lambda c: _is_on_linux(c) and c.code in (None, 3, 100, 304, 800, 999),
        Row("card_not_usable", _lacks("/dev/nvidia-uvm"),
            _CANNOT + "/dev/nvidia-uvm is missing, through which CUDA works.",
            {**GIVE_CARD,
            "flatpak": Advice("Outside of it, run “sudo modprobe nvidia_uvm”."),
            "any": Advice("Load the module for it.", "sudo modprobe nvidia_uvm")}, _UVM),
        *_of_files("card_not_usable", _CANNOT, _UVM),
    ),
    Row("driver_library_mismatch", _error_is(803), _NOT_STARTED, 0, _API),
    Row("card_not_usable", lambda c: c.start_meaning, _NOT_STARTED, 0, _API),
    Row("card_not_usable", _always, "PyTorch cannot use your {names} now. {reason}",
        {"any": Advice("", "{restart}")}, "PyTorch's own words"),
)  # fmt: skip

_FIRMWARE = _when(
    _is_on_linux,
    Row("no_driver", _logs(r"firmware.*(?:fail|error|-2\b)|wedged"),
        "The driver of your {names} could not load its firmware, says the kernel.",
        {"any": Advice("Update your system's package of firmware (linux-firmware), then restart.")},
        "Linux, Documentation/driver-api/firmware; geerlingguy/raspberry-pi-pcie-devices issue "
        "695"),
)  # fmt: skip
# Linux has no driver for a card of AMD's or Intel's.
OF_LINUX = (
    *_FIRMWARE,
    Row("no_driver", lambda c: c.options,
        "Linux was started with {options}, which keeps the driver of your {names} away.",
        {"any": Advice("Take that out of the kernel's options.")}, _OPTIONS),
    Row("no_driver", lambda c: c.modules,
        "The driver {modules} runs, but has not taken your {names}.",
        {"any": Advice("A newer Linux may know it. Its reason is in the kernel's log.",
                       "sudo dmesg")}, _PCI),
    Row("no_driver", lambda c: c.is_not_installed,
        "This Linux has no module {module_to_load}, the driver of your {names}.",
        {"any": Advice("Use a kernel of your system that has it.")}, _PCI),
    Row("no_driver", _always, "Linux has loaded no driver for your {names}.",
        {"any": Advice("Load it. If that fails, this Linux may be older than the card.",
                       "sudo modprobe {module_to_load}")}, _PCI),
)  # fmt: skip
_HIDDEN = Row(
    "hidden_by_environment",
    lambda c: c.hidden_by,
    "Your {names} is hidden from PyTorch: {hidden_by} is “{hidden_value}”.",
    {"any": Advice("", "{unset}")},
    "HIP, “GPU isolation”; Level Zero, “Affinity Mask”",
)
_AT_LAST = (
    Row("card_not_usable", lambda c: c.is_alone, _CANNOT + "{because}",
        {"any": Advice("", "{maker_page}")}, "torch.cuda.device_count, torch.xpu.device_count"),
    Row("card_not_usable", lambda c: _is_on_linux(c) and c.old_kernel, _CANNOT + "{old_kernel}.",
        {"any": Advice("Update the system.", "{maker_page}")}, "AMD, compatibility matrix"),
    Row("card_not_usable", _is_boxed, _CANNOT + "{because}",
        {"any": Advice("On the PC, it needs what {maker}'s page lists; in {sandbox}, access to its "
                       "device files.", "{maker_page}")}, _XPU_GUIDE),
    Row("card_not_usable", _always, _CANNOT + "{because}",
        {"Windows": Advice("{need}", "{windows_page}"),
         "WSL": Advice("{maker}'s driver in Windows has to be new, and its part for WSL installed.",
                       "{maker_page}"),
         "any": Advice("{need}", "{maker_page}")},
        "PyTorch's own words; vladmandic/sdnext issue 3808"),
)  # fmt: skip
OF_ROCM = (
    _HIDDEN,
    *_when(
        _is_on_linux,
        Row("card_not_usable", lambda c: c.is_boxed and _lacks("/dev/kfd", "/dev/dri/")(c),
            _CANNOT + "{sandbox} was not given its device files.", _GIVE_FILES, _ROCM_GUIDE),
        *_FIRMWARE,
        Row("card_not_usable", lambda c: c.holders not in ("", "amdgpu"),
            _CANNOT + "the driver {holders} holds it, and ROCm needs amdgpu.",
            {"any": Advice("", "{maker_page}")}, _ROCM_GUIDE),
        Row("card_not_usable", lambda c: c.lacks_file("/dev/kfd") and c.modules,
            _CANNOT + "amdgpu runs without its part for computing (no /dev/kfd).",
            {"any": Advice("Use a kernel of your system that has it (CONFIG_HSA_AMD).")},
            "Linux, drivers/gpu/drm/amd/amdkfd/Kconfig"),
        Row("card_not_usable", _lacks("/dev/kfd"),
            _CANNOT + "the driver amdgpu does not run (no /dev/kfd).",
            {"any": Advice("Load it.", "sudo modprobe amdgpu")}, _ROCM_GUIDE),
        *_of_files("card_not_usable", _CANNOT, _ROCM_GUIDE),
        Row("card_not_usable",
            lambda c: c.knows_signs and not (c.is_boxed or c.old_kernel or c.is_alone),
            _CANNOT + "{because}",
            {"any": Advice("Its device files are open. Compare card and Linux with AMD's list.",
                           "{maker_page}")}, _ROCM_GUIDE),
    ),
    *_AT_LAST,
)  # fmt: skip
OF_XPU = (
    _HIDDEN,
    *_when(
        _is_on_linux,
        Row("card_not_usable", lambda c: c.is_boxed and c.lacks_file("/dev/dri/"),
            _CANNOT + "{sandbox} was not given its device files.", _GIVE_NODES, _XPU_GUIDE),
        *_FIRMWARE,
        Row("card_not_usable", lambda c: c.needs_xe and c.holders == "i915",
            _CANNOT + "the driver i915 holds it, and this chip needs xe.",
            {"any": Advice("Use a newer Linux, without i915.force_probe.", "{maker_page}")},
            "Linux, Documentation/gpu/xe"),
        *_of_files("card_not_usable", _CANNOT, _XPU_GUIDE),
        Row("card_not_usable", lambda c: c.lacks_file("/dev/dri/") and c.modules,
            _CANNOT + "its driver made no file in /dev/dri.",
            {"any": Advice("Its reason is in the kernel's log.", "sudo dmesg")}, _XPU_GUIDE),
        Row("card_not_usable", _lacks("/dev/dri/"), _CANNOT + "its driver does not run.",
            {"any": Advice("Load it.", "sudo modprobe {module_to_load}")}, _XPU_GUIDE),
        Row("card_not_usable", lambda c: c.signs.has_level_zero is False,
            _CANNOT + "Intel's driver for computing (Level Zero, libze_intel_gpu) is not found.",
            {"container": Advice("Use an image that has it.", "{maker_page}"),
             "any": Advice("Install it as this page says for your system.", "{maker_page}")},
            _XPU_GUIDE),
        Row("card_not_usable", lambda c: c.signs.has_level_zero and not (c.is_boxed or c.is_alone),
            _CANNOT + "{because}",
            {"any": Advice("Level Zero is there, but may be older than the card.",
                           "{maker_page}")}, _XPU_GUIDE),
    ),
    *_AT_LAST,
)  # fmt: skip
ROWS = (*OF_ANY_CARD, *OF_NVIDIAS_DRIVER, *OF_NVIDIAS_CARD, *OF_CUDA, *OF_LINUX, *OF_ROCM, *OF_XPU)


def found_by(rows: Sequence[Row], case: UnusedCards) -> Iterator[Finding]:
    """Yield the finding of the first row whose mark a case has."""
    row = next((row for row in rows if row.mark(case)), None)
    if row is not None:
        yield row.finding(case)
