"""Starting a program on one card: the card that is meant, and the variables that make it so.

Every runtime has its own variable, and no program says which runtime it uses, so each gets one.
Sources: CUDA Programming Guide, “CUDA Environment Variables”; ROCm, “GPU isolation techniques”;
DPC++, “ONEAPI_DEVICE_SELECTOR”; ggml-vulkan.cpp; Vulkan-Loader, “LoaderInterfaceArchitecture”;
Mesa, “Environment Variables”; NVIDIA's driver for Linux, “PRIME Render Offload”.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

from gpu_studio.core.device_name import CPU
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_studio.core.child_question import ChildCaller
    from gpu_studio.core.devices.devices import Device

_NVIDIA, _AMD, _INTEL = 0x10DE, 0x1002, 0x8086
_VENDORS = {"NVIDIA": _NVIDIA, "AMD": _AMD, "Intel": _INTEL}
_NO_CARD = "-1"
_VULKAN = "gpu_studio.hardware.vulkan"
# A list of numbers for ggml: one that is no number is an empty list, while -1 is an error.
_NO_VULKAN = "none"
_SHORTEST_UUID, _LONGEST_COMMAND = 4, 2000
_WINDOWS_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_ADDRESS = re.compile(r"(cuda|xpu):(\d{1,3})")
# What cmd would take for its own outside of quotes.
_CMD_SIGNS = frozenset(" \t&|<>^()%!,;='`")


class VulkanDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device as Vulkan lists it; ``is_software`` if the processor does the work."""

    name: str
    vendor_id: int
    device_id: int
    uuid: str = ""
    pci_bus_id: str | None = None
    is_software: bool = False


class KeptStart(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was started before: the command as it was typed, and the card's key."""

    command: Annotated[str, Meta(max_length=_LONGEST_COMMAND)]
    card: Annotated[str, Meta(max_length=200)] = CPU


class Shortcut(NamedTuple):
    """A file that starts a program with its variables.

    Attributes:
        name: suggested, with the suffix.
        kind: for a dialog.
        contents: what it contains.
    """

    name: str
    kind: str
    contents: bytes


class StartTarget(NamedTuple):
    """Where a program is started.

    Attributes:
        title: its name in a sentence.
        card: the card; None for the CPU and for what only Vulkan lists.
        vulkan: what only Vulkan lists, such as Mesa's lavapipe.
        key: what names it after ``--on-card``.
    """

    title: str
    card: Device | None = None
    vulkan: VulkanDevice | None = None
    key: str = CPU

    @property
    def is_cpu(self) -> bool:
        return self.card is None and self.vulkan is None

    @property
    def ids(self) -> tuple[int, int] | None:
        """The vendor and the device on the PCI bus; None if they are not known."""
        if self.vulkan is not None:
            return self.vulkan.vendor_id, self.vulkan.device_id
        vendor = _VENDORS.get(self.card.maker) if self.card is not None else None
        if vendor is None or self.card is None or self.card.pci_device_id is None:
            return None
        return vendor, self.card.pci_device_id

    def is_same(self, device: VulkanDevice) -> bool:
        """Return whether Vulkan means this one by a device."""
        if self.vulkan is not None:
            return device.uuid == self.vulkan.uuid
        if self.card is None:
            return False
        if device.pci_bus_id and self.card.pci_bus_id:
            return device.pci_bus_id == self.card.pci_bus_id
        return (device.vendor_id, device.device_id) == self.ids


def targets(cards: Sequence[Device], vulkan: Sequence[VulkanDevice] = ()) -> list[StartTarget]:
    """Return where programs can be started: each place is its number. The CPU is the last.

    Args:
        cards: of this PC.
        vulkan: what Vulkan lists.
    """
    ours = sorted(
        cards, key=lambda card: (not card.is_cudas, (card.is_cudas and card.pci_bus_id) or "")
    )
    names = [card.short_name for card in ours]
    found = [
        StartTarget(
            f"{name} in slot {card.pci_bus_id}" if names.count(name) > 1 else name,
            card=card, key=card.identity,
        )
        for card, name in zip(ours, names, strict=True)
    ]  # fmt: skip
    others = [one for one in vulkan if not any(target.is_same(one) for target in found)]
    found += [StartTarget(one.name.partition(" (")[0], vulkan=one, key=one.uuid) for one in others]
    return [*found, StartTarget("CPU")]


def target_named(word: str, offered: Sequence[StartTarget]) -> StartTarget:
    """Return the target that a word means: a number, PyTorch's name, a UUID, a slot or ``cpu``.

    Raises:
        ValueError: none or several are meant; the text lists them.
    """
    name = word.strip().lower()
    *numbered, cpu = offered
    if name == CPU:
        return cpu
    if name.isdecimal() and len(name) < _SHORTEST_UUID and int(name) < len(numbered):
        return numbered[int(name)]
    if address := _ADDRESS.fullmatch(name):
        of_kind = [one for one in numbered if one.card is not None and one.card.kind == address[1]]
        if int(address[2]) < len(of_kind):
            return of_kind[int(address[2])]
    if len(name) >= _SHORTEST_UUID:
        keys = (name, f"gpu-{name}")
        found = [
            one for one in numbered
            if one.key.lower().startswith(keys)
            or (one.card is not None and (one.card.pci_bus_id or "").lower().endswith(name))
        ]  # fmt: skip
        if len(found) == 1:
            return found[0]
    known = [f"{number} ({one.title})" for number, one in enumerate(numbered)]
    message = f"There is no card “{word[:60]}” here. Choose {listed([*known, CPU], 'or')}."
    raise ValueError(message)


def start_variables(
    target: StartTarget,
    cards: Sequence[Device],
    order: Sequence[VulkanDevice] | None = None,
    system: str = sys.platform,
) -> dict[str, str]:
    """Return the variables that make a program use a target and none other.

    Args:
        target: where it is started.
        cards: of this PC.
        order: what Vulkan lists under `drawing_variables`, in its order; None if it cannot be
            asked, and then nothing is said to ggml.
        system: a value of `sys.platform`.
    """
    variables = {
        **_cuda(target, cards),
        **_hip(target, cards, system),
        "ONEAPI_DEVICE_SELECTOR": _selector(target, cards),
    }
    if _sort_of(target) == _INTEL and len(_of(cards, "Intel")) > 1:
        variables["ZE_ENABLE_PCI_ID_DEVICE_ORDER"] = "1"  # so that the number is that of the slot
    if order is not None:
        places = [str(place) for place, one in enumerate(order) if target.is_same(one)]
        variables["GGML_VK_VISIBLE_DEVICES"] = places[0] if places else _NO_VULKAN
    return variables | drawing_variables(target, cards, system)


CHOOSING = frozenset({
    "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL", "ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER", "GGML_VK_VISIBLE_DEVICES", "VK_LOADER_DEVICE_SELECT",
    "MESA_VK_DEVICE_SELECT", "DRI_PRIME", "__NV_PRIME_RENDER_OFFLOAD", "__GLX_VENDOR_LIBRARY_NAME",
    "__VK_LAYER_NV_optimus",
})  # fmt: skip
"""What chooses cards: of these, a program gets what is set for it and nothing inherited."""


def drawing_variables(
    target: StartTarget, cards: Sequence[Device], system: str = sys.platform
) -> dict[str, str]:
    """Return those of the variables that choose where Vulkan and OpenGL work; Linux has them."""
    if system != "linux" or target.is_cpu:
        return {}
    variables, card = {}, target.card
    is_one_of_a_kind = sum(one.maker == card.maker and one.pci_device_id == card.pci_device_id
                           for one in cards) < 2 if card is not None else True  # fmt: skip
    if target.ids is not None and is_one_of_a_kind:  # two alike are told apart by their slots only
        vendor, device = target.ids
        variables["VK_LOADER_DEVICE_SELECT"] = f"0x{vendor:04x}:0x{device:04x}"
        variables["MESA_VK_DEVICE_SELECT"] = f"{vendor:04x}:{device:04x}!"
    if card is None or len(cards) < 2:
        return variables
    if card.is_cudas:
        variables |= {
            "__NV_PRIME_RENDER_OFFLOAD": "1",
            "__GLX_VENDOR_LIBRARY_NAME": "nvidia",
            "__VK_LAYER_NV_optimus": "NVIDIA_only",
        }
    elif card.pci_bus_id:
        slot = card.pci_bus_id[4:].lower().replace(":", "_").replace(".", "_")
        variables["DRI_PRIME"] = f"pci-{slot}" + ("" if is_one_of_a_kind else "!")
    return variables


def _sort_of(target: StartTarget) -> int | None:
    card = target.card
    if card is None:
        return None
    return _NVIDIA if card.is_cudas else _VENDORS.get(card.maker)


def _of(cards: Sequence[Device], maker: str) -> list[Device]:
    return sorted(
        (one for one in cards if one.maker == maker), key=lambda one: one.pci_bus_id or ""
    )


def _cuda(target: StartTarget, cards: Sequence[Device]) -> dict[str, str]:
    card = target.card
    if card is not None and card.is_cudas:
        own = [one for one in _of(cards, card.maker) if one.is_cudas]
        visible = card.uuid or str(own.index(card))
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": visible}
    # Programs for AMD's cards read it too, and some refuse one that says another thing.
    if _sort_of(target) == _AMD and not _of(cards, "NVIDIA"):
        return {}
    return {"CUDA_VISIBLE_DEVICES": _NO_CARD}


def _hip(target: StartTarget, cards: Sequence[Device], system: str) -> dict[str, str]:
    card, is_linux = target.card, system == "linux"
    if card is None or _sort_of(target) != _AMD:
        hidden = {"HIP_VISIBLE_DEVICES": _NO_CARD}
        return hidden | ({"ROCR_VISIBLE_DEVICES": _NO_CARD} if is_linux else {})
    number = str(_of(cards, "AMD").index(card))
    if not is_linux:
        return {"HIP_VISIBLE_DEVICES": number}
    # ROCr hides the others first, and HIP counts what is left.
    return {"ROCR_VISIBLE_DEVICES": card.uuid or number, "HIP_VISIBLE_DEVICES": "0"}


def _selector(target: StartTarget, cards: Sequence[Device]) -> str:
    card, sort = target.card, _sort_of(target)
    if card is None or sort is None:
        return "*:cpu"
    if sort == _INTEL:
        return f"level_zero:{_of(cards, 'Intel').index(card)}"
    return f"{'cuda' if sort == _NVIDIA else 'hip'}:*;*:cpu"


def split_command(text: str, system: str = sys.platform) -> list[str]:
    """Return the words of a command as it is typed: quotes keep spaces, as in the system's shell.

    Raises:
        ValueError: a quote has no end, or there is no word.
    """
    if system != "win32":
        words = shlex.split(text)
    elif text.count('"') % 2:
        message = "a quote has no end"
        raise ValueError(message)
    else:  # a backslash belongs to a path
        words = [found.replace('"', "") for found in _WINDOWS_WORD.findall(text)]
    if not words or not words[0]:
        message = "there is no program in it"
        raise ValueError(message)
    return words


def vulkan_devices(
    call: ChildCaller, variables: Mapping[str, str], is_over: Callable[[], bool] = lambda: False
) -> list[VulkanDevice] | None:
    """Return what Vulkan lists with these variables; None if its drivers do not answer.

    Args:
        call: calls a child process.
        variables: what a program will get.
        is_over: returns whether the answer is no longer needed.

    Raises:
        StudioError: the answer cannot be read.
    """
    found = call(
        _VULKAN, msgspec.json.encode(variables), longest_s=10.0, most_bytes=1 << 20,
        memory_bytes=None, is_over=is_over,
    )  # fmt: skip
    if found.exit_code != 0:
        return None
    try:
        return msgspec.json.decode(found.content, type=list[VulkanDevice])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = "Vulkan's answer could not be read."
        raise StudioError(FailureKind.INTERNAL, message) from error


# ── what is copied ───────────────────────────────────────────────────────────────────────────────


def shell_lines(variables: Mapping[str, str], command: Sequence[str]) -> dict[str, str]:
    """Return the line that starts a program with variables, by the shell: cmd, PowerShell, sh.

    Args:
        variables: what is set.
        command: the program and its arguments.
    """
    sets = "".join(f'set "{name}={value}" && ' for name, value in variables.items())
    values = "".join(f"$env:{name}={_in_powershell(value)}; " for name, value in variables.items())
    before = "".join(f"{name}={shlex.quote(value)} " for name, value in variables.items())
    return {
        "cmd": f"{sets}{' '.join(map(_in_cmd, command))}",
        "PowerShell": f"{values}& {' '.join(map(_in_powershell, command))}",
        "sh": f"{before}{shlex.join(command)}",
    }


def _in_cmd(word: str) -> str:
    quoted = subprocess.list2cmdline([word])
    return quoted if quoted.startswith('"') or not _CMD_SIGNS & {*word} else f'"{quoted}"'


def _in_powershell(word: str) -> str:
    doubled = word.replace("'", "''")
    return f"'{doubled}'"


_NO_NAME = re.compile(r'[\\/:*?"<>|]+')
_DESKTOP_SIGNS = re.compile(r'(["`$\\])')


def shortcut(
    variables: Mapping[str, str], command: Sequence[str], title: str, system: str = sys.platform
) -> Shortcut:
    """Return a file to open with two clicks, which starts a program with variables.

    Args:
        variables: what is set.
        command: the program and its arguments.
        title: the card's name.
        system: a value of `sys.platform`.
    """
    is_windows = system == "win32"
    program = (PureWindowsPath if is_windows else PurePosixPath)(command[0])
    name = f"{_NO_NAME.sub(' ', program.stem)} on {_NO_NAME.sub(' ', title)}"
    if is_windows:
        starts = {".bat": "call ", ".cmd": "call ", ".lnk": 'start "" '}
        line = starts.get(program.suffix.lower(), "") + " ".join(map(_in_cmd, command))
        sets = [f'set "{key}={value}"' for key, value in variables.items()]
        lines = ["@echo off", "chcp 65001 >nul", *(one.replace("%", "%%") for one in (*sets, line))]
        text = "\r\n".join([*lines, ""])
        return Shortcut(f"{name}.bat", "Batch file (*.bat)", text.encode())
    words = ["env", *(f"{key}={value}" for key, value in variables.items()), *command]
    lines = [
        "[Desktop Entry]", "Type=Application", f"Name={name}",
        f"Exec={' '.join(map(_in_desktop, words))}", "Terminal=true", "",
    ]  # fmt: skip
    return Shortcut(f"{name}.desktop", "Shortcut (*.desktop)", "\n".join(lines).encode())


def _in_desktop(word: str) -> str:
    """Return a word for Exec: quoted, and escaped once more as every text of such a file."""
    quoted = _DESKTOP_SIGNS.sub(r"\\\1", word).replace("\\", "\\\\").replace("%", "%%")
    return f'"{quoted}"'
