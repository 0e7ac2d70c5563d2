"""A cheap look at what could change the choice of PyTorch: the cards and their driver.

Read at every start, so it asks no driver and starts no process. Linux: the driver's version in
/sys/module/nvidia, the display devices on the PCI bus, and under WSL the driver's files, which come
from Windows. Windows: the display adapters of the registry; one that was taken out is still listed
there, and its PyTorch works without it. Only when this differs from the stamp is the driver asked.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_WSL_LIBRARY = "usr/lib/wsl/lib/libcuda.so.1"
_DISPLAY_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"


def hardware_fingerprint(system: str = sys.platform, root: str = "/") -> str:
    """A text that changes when a card or the driver changes; empty where there is neither."""
    if system == "win32":
        import winreg

        return ";".join(_registry_adapters(winreg))
    if system != "linux":
        return ""
    parts = [*nvidia_pci_devices(root)]
    if version := driver_module_version(root):
        parts.append(f"driver {version}")
    try:
        status = os.stat(os.path.join(root, _WSL_LIBRARY))
    except OSError:
        pass
    else:
        parts.append(f"wsl {status.st_size} {status.st_mtime_ns}")
    return ";".join(parts)


def driver_module_version(root: str = "/") -> str:
    """The version of the loaded NVIDIA kernel module (Linux), or "" where there is none."""
    return _text(os.path.join(root, "sys/module/nvidia/version"))


def nvidia_pci_devices(root: str = "/") -> list[str]:
    """The NVIDIA graphics cards on the PCI bus (Linux), as "10de:1d01", with or without driver."""
    folder = os.path.join(root, "sys/bus/pci/devices")
    try:
        addresses = os.listdir(folder)
    except OSError:
        return []
    found = []
    for address in addresses:
        device = os.path.join(folder, address)
        if _text(os.path.join(device, "vendor")) != "0x10de":
            continue
        if _text(os.path.join(device, "class")).startswith("0x03"):
            found.append("10de:" + _text(os.path.join(device, "device"))[2:])
    return sorted(found)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _registry_adapters(winreg: Any) -> list[str]:
    try:
        display_class = winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _DISPLAY_CLASS)
    except OSError:
        return []
    adapters = []
    with display_class:
        for name in _subkeys(winreg, display_class):
            # Other keys stand beside the adapters, some of which may not be opened, and an adapter
            # whose driver was removed keeps its key without a version.
            try:
                with winreg.OpenKey(display_class, name) as adapter:
                    device = winreg.QueryValueEx(adapter, "MatchingDeviceId")[0]
                    version = winreg.QueryValueEx(adapter, "DriverVersion")[0]
            except OSError:
                continue
            if "ven_10de" in str(device).lower():
                adapters.append(f"{device} {version}")
    return adapters


def _subkeys(winreg: Any, key: Any) -> list[str]:
    """The names of the keys in a key; a card that was moved or taken out leaves gaps in them."""
    names: list[str] = []
    while True:
        try:
            names.append(winreg.EnumKey(key, len(names)))
        except OSError:
            return sorted(names)
