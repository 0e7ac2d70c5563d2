"""A cheap check of the facts that decide the build of PyTorch: the cards and their driver.

It runs at every start, so it asks no driver and starts no process. On Linux it reads the driver's
version in /sys/module/nvidia, the display devices on the PCI bus, and under WSL the driver's files,
which come from Windows. On Windows it reads the display adapters in the registry. A removed card
stays listed there, which is harmless: its PyTorch works without it. The setup asks the driver only
if the fingerprint differs from the stamp.
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
    """Return a text that changes if a card or the driver changes; empty if there is neither."""
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
    """Return the version of the loaded NVIDIA kernel module (Linux), or "" if there is none."""
    return _text(os.path.join(root, "sys/module/nvidia/version"))


def nvidia_pci_devices(root: str = "/") -> list[str]:
    """Return the NVIDIA cards on the PCI bus (Linux), as "10de:1d01", with or without a driver."""
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
            # The key also has subkeys that are no adapters, some of them protected. An adapter
            # whose driver was removed keeps its subkey without a version.
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
    """Return the names of a key's subkeys; a moved or removed card leaves gaps in the numbers."""
    names: list[str] = []
    while True:
        try:
            names.append(winreg.EnumKey(key, len(names)))
        except OSError:
            return sorted(names)
